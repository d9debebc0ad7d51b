"""Clusters: hosts with one or several NICs, the ranks that use them, and the topology file that a site would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from held_out.fabrics import Fabric
from held_out.topology_text import routing_lines, topology_yaml

Ints = npt.NDArray[np.int64]
GIGABIT = 1000  # Mb/s
SPEED = 100 * GIGABIT


@dataclass(frozen=True)
class Cluster:
    """Hosts, NICs and ranks.

    Attributes:
        fabric: its endpoints are the NICs, rail by rail: NIC r of host h is endpoint r * H + h.
        hosts: (H,) names.
        rails: NICs of a host.
        per_nic: ranks that share a NIC.
        far: rails whose NICs are at the socket that is far from their ranks.
        slow_hosts: declared speed, Mb/s, of the NICs of some hosts, by the number of the host.
        slow_rails: declared speed, Mb/s, of all NICs of some rails, by the number of the rail.
    """

    fabric: Fabric
    hosts: tuple[str, ...]
    rails: int = 1
    per_nic: int = 1
    far: tuple[int, ...] = ()
    slow_hosts: Mapping[int, int] = field(default_factory=dict)
    slow_rails: Mapping[int, int] = field(default_factory=dict)

    @property
    def per_host(self) -> int:
        """Ranks of a host."""
        return self.rails * self.per_nic

    @property
    def ranks(self) -> int:
        """Ranks of the cluster; rank k of host h is h * per_host + k."""
        return len(self.hosts) * self.per_host

    @property
    def rank_host(self) -> Ints:
        """(ranks,) number of the host."""
        return np.arange(self.ranks) // self.per_host

    @property
    def rank_rail(self) -> Ints:
        """(ranks,) number of the rail."""
        return np.arange(self.ranks) % self.per_host // self.per_nic

    @property
    def rank_endpoint(self) -> Ints:
        """(ranks,) the NIC of the rank."""
        return self.rank_rail * len(self.hosts) + self.rank_host

    def endpoints_of(self, host: str, nic: str = "") -> list[int]:
        """The NICs of a host, or the NIC of that name."""
        number, rails = self.hosts.index(host), range(self.rails)
        return [rail * len(self.hosts) + number for rail in rails if nic in ("", self.nic(rail))]

    def endpoints_of_rail(self, rail: int) -> Ints:
        """The NICs of a rail, one for each host."""
        return np.arange(len(self.hosts)) + rail * len(self.hosts)

    @staticmethod
    def nic(rail: int) -> str:
        """The name of a NIC on its host."""
        return f"hsn{rail}"

    def speed(self, host: int, rail: int) -> int:
        """The declared speed of a NIC, Mb/s."""
        return self.slow_hosts.get(host, self.slow_rails.get(rail, SPEED))


def _labels(hosts: Sequence[str], rails: int) -> tuple[str, ...]:
    """Names of endpoints: `node01` of hosts with one NIC, else `node01/hsn0`, rail by rail."""
    if rails == 1:
        return tuple(hosts)
    return tuple(f"{host}/{Cluster.nic(rail)}" for rail in range(rails) for host in hosts)


def _refuse_uneven(fabric: Fabric) -> None:
    """Raise unless all NICs of a host are reached over the same spine, as forwarding tables by host say."""
    if fabric.routing == "static" and fabric.n % max(len(paths) for paths in fabric.paths.values()):
        raise ValueError("the number of hosts is no multiple of the number of paths")


def single(fabric: Fabric, per_nic: int = 1) -> Cluster:
    """Hosts with one NIC each."""
    return Cluster(fabric, fabric.hosts, per_nic=per_nic)


def rails_on_one_leaf(fabric: Fabric, rails: int, per_nic: int = 1, far: tuple[int, ...] = ()) -> Cluster:
    """All NICs of a host on the switch of the host."""
    _refuse_uneven(fabric)
    wide = replace(fabric, hosts=_labels(fabric.hosts, rails), host_switch=np.concatenate([fabric.host_switch] * rails))
    return Cluster(wide, fabric.hosts, rails, per_nic, far)


def planes(fabric: Fabric, count: int, per_nic: int = 1, far: tuple[int, ...] = ()) -> Cluster:
    """Copies of a fabric, a NIC of each host on each: no path leads from one to another."""
    _refuse_uneven(fabric)
    size, links = len(fabric.switches), len(fabric.links)
    paths = {
        (a + plane * size, b + plane * size): tuple(
            tuple(link + plane * links for link in path) for path in alternatives
        )
        for plane in range(count)
        for (a, b), alternatives in fabric.paths.items()
    }

    def named(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"p{plane + 1}.{name}" for plane in range(count) for name in names)

    whole = Fabric(
        _labels(fabric.hosts, count),
        named(fabric.switches),
        np.concatenate([fabric.host_switch + plane * size for plane in range(count)]),
        named(fabric.groups),
        np.concatenate([fabric.links + plane * size for plane in range(count)]),
        paths,
        fabric.routing,
    )
    return Cluster(whole, fabric.hosts, count, per_nic, far)


def topology_text(cluster: Cluster, cables: bool = True) -> str:
    """The topology file of a cluster; hosts with several NICs name them."""
    fabric = cluster.fabric
    if cluster.rails == 1:
        return topology_yaml(fabric, cables)
    lines = ["format: 1", "switches:"]
    used = range(len(fabric.switches)) if cables else sorted(set(fabric.host_switch.tolist()))
    lines += [f"  {fabric.switches[switch]}: {{group: {fabric.groups[switch]}}}" for switch in used]
    lines.append("hosts:")
    for host in cluster.hosts:
        at = [fabric.switches[fabric.host_switch[endpoint]] for endpoint in cluster.endpoints_of(host)]
        nics = ", ".join(f"{cluster.nic(rail)}: {switch}" for rail, switch in enumerate(at))
        lines.append(f"  {host}: {{{nics}}}")
    if cables and len(fabric.links):
        lines.append("links:")
        lines += [f"  - [{fabric.switches[a]}, {fabric.switches[b]}]" for a, b in fabric.links[::2].tolist()]
        lines += routing_lines(fabric, cluster.hosts * cluster.rails)
    return "\n".join(lines) + "\n"

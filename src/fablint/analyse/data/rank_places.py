"""Where every rank sits: its host, switch and NIC, and whether the host has CPUs enough for its ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fablint.model import Placement, Run, Topology

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """A run's placement with the names behind its codes; a code is a position in the tuple of names."""

    placement: Placement
    hosts: tuple[str, ...]
    nics: tuple[str, ...]  # HOST/NIC
    nic: Codes  # (n,) -1 where the run does not say
    number: npt.NDArray[np.int32]  # (n,) position of each rank's host among the topology's, -1 where it is none
    crowded: npt.NDArray[np.bool_]  # (hosts,) more ranks than CPUs
    containers: bool = False  # do hosts share a machine, and its CPUs?
    line_rate: npt.NDArray[np.float64] | None = None  # (hosts,) bytes/s that NICs negotiated; None: not known of all

    @property
    def host(self) -> Codes:
        """(n,) code of each rank's host."""
        return self.placement.host

    @property
    def switch(self) -> Codes:
        """(n,) code of each rank's switch, -1 where no topology names it."""
        return self.placement.switch

    @property
    def group(self) -> Codes:
        """(n,) code of each rank's group, -1 where no topology names it."""
        return self.placement.group

    @property
    def switches(self) -> tuple[str, ...]:
        """Switches with hosts in the run."""
        return self.placement.switches


def locate(run: Run, topology: Topology | None) -> Places:
    """Places of the run's ranks."""
    hosts = tuple(run.hosts)
    placement = Placement.of(run, topology)
    nics, nic = _nics(run, hosts, placement.host)
    return Places(
        placement,
        hosts,
        nics,
        nic,
        _numbers(hosts, topology)[placement.host],
        _crowded(run, placement.host),
        run.attributes.get("machines", len(hosts)) < len(hosts),
        _line_rates(run, hosts),
    )


def _line_rates(run: Run, hosts: tuple[str, ...]) -> npt.NDArray[np.float64] | None:
    """(hosts,) bytes/s of the fastest NIC of each host."""
    nics = run.attributes.get("nics") or {}
    speeds = [
        max(
            (float(speed) for nic in nics.get(host, ()) if isinstance(speed := nic.get("speed_mbps"), int | float)),
            default=0.0,
        )
        for host in hosts
    ]
    return np.array(speeds) * 1e6 / 8 if speeds and all(speed > 0 for speed in speeds) else None


def _numbers(hosts: tuple[str, ...], topology: Topology | None) -> npt.NDArray[np.int32]:
    """(hosts,) their positions in the topology."""
    known = {name: index for index, name in enumerate(topology.host_switch)} if topology else {}
    return np.array([known.get(name, known.get(name.split(".")[0], -1)) for name in hosts], dtype=np.int32)


def _nics(run: Run, hosts: tuple[str, ...], rank_host: Codes) -> tuple[tuple[str, ...], Codes]:
    """Names `HOST/NIC` and their codes, per rank."""
    names = run.attributes.get("rank_nic") or [""] * rank_host.size
    found: dict[str, int] = {}
    codes = np.full(rank_host.size, -1, dtype=np.int64)
    for rank, (host, nic) in enumerate(zip(rank_host, names, strict=True)):
        if nic:
            codes[rank] = found.setdefault(f"{hosts[host]}/{nic}", len(found))
    return tuple(found), codes


def _crowded(run: Run, rank_host: Codes) -> npt.NDArray[np.bool_]:
    """(hosts,) Which hosts have more ranks than CPUs that these may use; all of them when the run cannot tell which.

    Hosts that are containers of one machine share its CPUs: what `check` measures of them allows for that.
    """
    hosts = len(run.hosts)
    if not run.attributes.get("instrument", {}).get("oversubscribed", False):
        return np.zeros(hosts, dtype=bool)
    cores: list[set[int]] = [set() for _ in range(hosts)]
    for host, folded in zip(rank_host, run.attributes.get("rank_cores", ()), strict=False):
        cores[host] |= unfold_cores(folded)
    crowded = np.bincount(rank_host, minlength=hosts) > np.array([len(found) for found in cores])
    containers = run.attributes.get("machines", hosts) < hosts
    return crowded if crowded.any() or containers else np.ones(hosts, dtype=bool)


def unfold_cores(folded: str) -> set[int]:
    """`0-3,8` as a set."""
    cores: set[int] = set()
    for part in filter(None, folded.split(",")):
        first, _, last = part.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    return cores

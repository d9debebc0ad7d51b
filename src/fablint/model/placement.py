"""Where the ranks of a run sit in a fabric, and the scope of their pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fablint.model.run import Run
from fablint.model.topology import Scope, Topology

if TYPE_CHECKING:
    import numpy as np


SCOPES = tuple(Scope)  # arrays hold the scope of a pair as an index into this


@dataclass(frozen=True)
class Placement:
    """Where every rank sits, as integers: all that is needed to tell the scope of a pair."""

    host: np.ndarray  # (n,) int32, index into the run's hosts
    switch: np.ndarray  # (n,) int32, index into `switches`; -1 where no topology tells
    group: np.ndarray  # (n,) int32, index into `groups`; -1 where no topology tells
    switches: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: Run, topology: Topology | None = None) -> Placement:
        """Placement of the ranks of a run. Hosts that the topology does not know get switch and group -1.

        A run's `h00.site.org` is also found as `h00`.
        """
        import numpy as np

        host = np.asarray(run.attributes["rank_host"], dtype=np.int32)
        known = [_attachment(full, topology) if topology else "" for full in run.hosts]
        at = [known[code] for code in host]
        if topology and topology.nic_switch:
            nics = run.attributes.get("rank_nic") or [""] * host.size
            at = [
                topology.nic_switch.get(f"{run.hosts[code].split('.')[0]}/{nic}")
                or topology.nic_switch.get(f"{run.hosts[code]}/{nic}", known[code])
                for code, nic in zip(host, nics, strict=True)
            ]
        switches = sorted(set(at) - {""})
        group_of = {name: topology.switches[name].group or name for name in switches} if topology else {}
        groups = sorted(set(group_of.values()))
        switch_index = {name: index for index, name in enumerate(switches)} | {"": -1}
        group_index = {name: index for index, name in enumerate(groups)}
        of_switch = np.array([group_index[group_of[name]] for name in switches] + [-1], dtype=np.int32)
        switch = np.array([switch_index[name] for name in at], dtype=np.int32)
        return cls(host, switch, of_switch[switch], tuple(switches), tuple(groups))

    def scopes(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Scope of the pairs (src, dst), ranks that broadcast against each other: uint8 indices into `SCOPES`."""
        import numpy as np

        code = {scope: np.uint8(index) for index, scope in enumerate(SCOPES)}  # small codes: four times faster
        far = np.where(self.group[src] == self.group[dst], code[Scope.LOCAL], code[Scope.GLOBAL])
        near = np.where(self.switch[src] == self.switch[dst], code[Scope.EDGE], far)
        known = (self.switch[src] >= 0) & (self.switch[dst] >= 0)
        between = np.where(known, near, code[Scope.UNKNOWN])
        return np.where(self.host[src] == self.host[dst], code[Scope.INTRA_NODE], between)


def _attachment(host: str, topology: Topology) -> str:
    """The switch of a run's host, empty where the topology does not know it."""
    return topology.host_switch.get(host) or topology.host_switch.get(host.split(".")[0], "")

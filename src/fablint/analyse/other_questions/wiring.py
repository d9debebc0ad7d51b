"""The switches that a run is judged by: declared and checked, or inferred from its times."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fablint.analyse.other_questions.miswiring import shortest_round_trips, verify
from fablint.analyse.other_questions.topology_inference import infer_topology
from fablint.analyse.settings import Settings
from fablint.model import Finding, Note, Placement, Run, Topology
from fablint.text import notes as noted


@dataclass(frozen=True)
class Wiring:
    """The topology to judge by, the ranks in it, hosts that are connected elsewhere than declared, and notes."""

    topology: Topology | None
    placement: Placement
    misplaced: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()


def wiring_of(run: Run, topology: Topology | None, settings: Settings) -> Wiring:
    """Return the topology to judge by: checked where it was declared, inferred from the times where these show one.

    Hosts that are connected elsewhere than declared have no switch in it and no neighbours to be compared with.

    Parameters
    ----------
    run
        The run.
    topology
        As declared, with the hosts named as in the run; None: not declared.
    settings
        Error probability.
    """
    round_trips, placement = shortest_round_trips(run), Placement.of(run, topology)
    if round_trips is None or len(run.hosts) < 2:
        return Wiring(topology, placement)
    if topology is None:
        inferred = infer_topology(round_trips, placement)
        if inferred is None:
            return Wiring(None, placement)
        note = noted.inferred_switches(len(inferred.switches), inferred.source)
        return Wiring(inferred, Placement.of(run, inferred), notes=(note,))
    misplaced = verify(round_trips, placement, settings)
    names = {finding.name for finding in misplaced}
    if not names:
        return Wiring(topology, placement)
    hosts = {host: switch for host, switch in topology.host_switch.items() if host not in names}
    nics = {nic: switch for nic, switch in topology.nic_switch.items() if nic.host not in names}
    rewired = replace(topology, host_switch=hosts, nic_switch=nics)
    return Wiring(rewired, Placement.of(run, rewired), tuple(misplaced))

"""Which hosts reach each other, with small frames and with those of the full MTU: facts for the first launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fablint.preflight.address_conflicts import contested_ends
from fablint.preflight.fleet import Fleet
from fablint.preflight.pings.dead_paths import HostPair
from fablint.preflight.pings.mesh import Ping, reach_of
from fablint.preflight.pings.reach_faults import ReachFaults
from fablint.preflight.pings.triage import Rail, is_answered, rails_of


@dataclass
class PairReach:
    """Whether the ping of each pair of hosts was answered. A pair with several NICs needs an answer on each rail."""

    answered: dict[HostPair, bool] = field(default_factory=dict)  # frames of any size
    full_size: dict[HostPair, bool] = field(default_factory=dict)  # of answered pairs: those of the full MTU
    sizes: dict[HostPair, tuple[int, int]] = field(default_factory=dict)  # bytes: frames that are lost, that pass


def pair_reach(fleet: Fleet) -> PairReach:
    """Return the facts of all rails.

    Not among them are pings that do not show whether messages arrive: of a rail without any answer, where ICMP may be
    filtered, of hosts that answer none but have answers, and of NICs that lose a large share of all pings.
    """
    result, reach = PairReach(), reach_of(fleet.hosts)
    for rail in rails_of(reach, contested_ends(fleet)) if reach is not None else ():
        _add(result.answered, rail.answers, rail, [(ping, is_answered(ping)) for ping in rail.pings])
        _add(result.full_size, rail.sizes, rail, [(ping, not ping.kind) for ping in rail.full_size])
        for ping in rail.full_size:
            if ping.kind and reach is not None:
                size = min(reach.targets[end].mtu for end in ping[:2])
                result.sizes[_hosts(ping)] = (size, ping.passes)
    return result


def _add(facts: dict[HostPair, bool], faults: ReachFaults, rail: Rail, pings: Iterable[tuple[Ping, bool]]) -> None:
    """Add the pings of a rail that show whether messages arrive."""
    one_way = {*faults.rx_failed, *faults.tx_failed, *rail.losses.ends}
    for ping, holds in pings if not faults.all_failed else ():
        if holds or one_way.isdisjoint(ping[:2]):
            facts[_hosts(ping)] = holds and facts.get(_hosts(ping), True)


def _hosts(ping: Ping) -> HostPair:
    return frozenset((ping.source.host, ping.target.host))

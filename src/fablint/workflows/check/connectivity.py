"""What the pings of preflight mean for the launches: MPI connects ranks at its start, which not all hosts reach.

A host that reaches no other, or none beyond its switch, is faulty. Other pairs without an answer are due to a path: the
path is at fault, and the fewest hosts are excluded without which all others reach each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fablint.model import ComponentRef, Finding, State, Topology
from fablint.model.component import in_series
from fablint.model.preflight_results import PING, Fitness, Outcome, Result
from fablint.model.verdict import EvidenceRecord
from fablint.preflight import DeadPath, Fleet, Host, HostPair, explain_dead_pairs, pair_reach, smallest_cover
from fablint.text import actions as advise, evidence as seen
from fablint.workflows.host_preflight import PreflightResult

_ROUTE, _FULL_SIZE = "net.ping.route", "net.ping.mtu"
_FEWEST_OF_FAULT = 3  # pairs without an answer: fewer are a doubt
_SAME = 2  # pairs: a single one has a finding of preflight

Sizes = Mapping[HostPair, tuple[int, int]]


@dataclass(frozen=True)
class Connectivity:
    """Hosts that cannot be launched with the others, and why."""

    fitness: Fitness  # without the results that paths explain
    paths: Sequence[Finding] = ()
    faulty: Mapping[str, Finding] = field(default_factory=dict)  # hosts that reach none beyond their switch
    excluded: Mapping[str, Finding] = field(default_factory=dict)  # healthy hosts, so that the others connect

    @property
    def unconnected(self) -> Mapping[str, Finding]:
        """All hosts without which the ranks of the others connect."""
        return {**self.faulty, **self.excluded}


def connectivity_of(preflight: PreflightResult, topology: Topology | None) -> Connectivity:
    """Return what the pings between the hosts of a check show.

    Parameters
    ----------
    preflight
        Snapshots of the hosts with the answers of their pings, and the results of all checks.
    topology
        Which host is connected to which switch; None: unknown.
    """
    collected, fitness = preflight.collected, preflight.fitness
    reach = pair_reach(Fleet([Host(one) for one in collected.snapshots.values()], collected.silent))
    silent, long = (explain_dead_pairs(pairs, topology) for pairs in (reach.answered, reach.full_size))
    faulty: dict[str, Finding] = {}
    paths: list[Finding] = []
    for sizes, dead_paths in ((None, silent), (reach.sizes, long)):
        for path in dead_paths:
            if path.name.kind == "host":
                faulty.setdefault(path.name.ends[0][0], _of_host(path, sizes))
            elif len(path.dead) >= _SAME:
                paths.append(_of_path(path, sizes, topology))
    pairs = [pair for path in (*silent, *long) for pair in path.pairs if pair.isdisjoint(faulty)]
    order = [*collected.snapshots]
    cover = smallest_cover((pair for pair in pairs if pair <= set(order)), order)
    excluded = {host: _of_excluded(host, [pair - {host} for pair in pairs if host in pair]) for host in cover}
    results = _without_explained(fitness.results, silent, long, faulty)
    return Connectivity(replace(fitness, results=results), paths, faulty, excluded)


def _without_explained(
    results: Iterable[Result], silent: Sequence[DeadPath], long: Sequence[DeadPath], faulty: Collection[str]
) -> list[Result]:
    """Return the results but those about pings that a finding about a path reports in their place."""
    dead = [{pair for path in paths if len(path.dead) >= _SAME for pair in path.dead} for paths in (silent, long)]
    routes = dead[0] | dead[1]
    hosts = {
        check: frozenset().union(*pairs) - {*faulty} for check, pairs in zip((PING, _FULL_SIZE), dead, strict=True)
    }

    def is_explained(result: Result) -> bool:
        if result.outcome not in (Outcome.FAIL, Outcome.WARN):
            return False
        return result.host in hosts.get(result.check, ()) or (
            result.check == _ROUTE and frozenset((result.host, result.peer)) in routes
        )

    return [one for one in results if not is_explained(one)]


def _of_path(path: DeadPath, sizes: Sizes | None, topology: Topology | None) -> Finding:
    component = ComponentRef.of(path.name.kind, *path.name.ends)
    ends = set(component.nodes)
    cables = topology.cables if topology is not None else ()
    between = [ComponentRef.of("cable", one.a, one.b) for one in cables if {one.a, one.b} == ends]
    return Finding(
        state=State.FAULT if len(path.dead) >= _FEWEST_OF_FAULT else State.SUSPECT,
        components=(component,),
        evidence=(_evidence(path, sizes),),
        ambiguity_group=tuple(dict.fromkeys(between)),
        next_step=advise.inspect_path_mtu() if sizes else advise.inspect_path_tables(),
    )


def _of_host(path: DeadPath, sizes: Sizes | None) -> Finding:
    host = path.name.ends[0][0]
    component = ComponentRef.of("host", host)
    return Finding(
        state=State.FAULT,
        components=(component,),
        evidence=(_evidence(path, sizes),),
        ambiguity_group=in_series(host),
        next_step=advise.compare_mtu(component) if sizes else advise.ping_host(component),
    )


def _evidence(path: DeadPath, sizes: Sizes | None) -> EvidenceRecord:
    sides = [tuple(sorted(side)) for side in path.sides] or [tuple(sorted(frozenset().union(*path.dead)))] * 2
    pairs: seen.PingFields = {"first": sides[0], "second": sides[1], "dead": len(path.dead), "tried": path.tried}
    if sizes is None:
        return seen.no_ping(**pairs)
    lost, passes = zip(*(sizes[pair] for pair in path.dead), strict=True)
    return seen.no_long_ping(bytes=min(lost), passes=min(passes), **pairs)


def _of_excluded(host: str, partners: Iterable[HostPair]) -> Finding:
    component = ComponentRef.of("host", host)
    return Finding(
        state=State.NOT_JUDGED,
        components=(component,),
        evidence=(seen.excluded_to_connect(tuple(sorted(frozenset().union(*partners)))),),
        next_step=advise.repair_start(component),
    )

"""A run whose views were judged one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from fablint.analyse.explain.view import ViewResult, judge_view
from fablint.analyse.explain.view_search import View
from fablint.analyse.findings.retransmissions import Retransmissions, retransmissions
from fablint.analyse.null_model.recorded_facts import Facts, HostFacts, facts_of
from fablint.analyse.observations.message_paths import SharedPaths
from fablint.analyse.observations.samples import UsableRow, select_usable_rows
from fablint.analyse.settings import Settings
from fablint.model import Finding, Note, Placement, Run, Topology
from fablint.model.registry import TRANSPORTS
from fablint.topology.routing import Routes, routes_of


@dataclass(frozen=True)
class JudgedRun:
    """A run whose views were judged one by one, and what they were judged with."""

    run: Run
    topology: Topology | None
    placement: Placement
    routes: Routes | None
    settings: Settings
    others: Sequence[Finding]  # of other stages
    facts: Facts  # what is recorded of the hosts
    rows: Sequence[UsableRow]
    views: Sequence[ViewResult]
    resent: Retransmissions

    @property
    def clearing(self) -> list[ViewResult]:
        """Views that show healthy components as well. Follow-up measurements alone judge what they were made for."""
        healthy = [view for view in self.views if view.is_evidence_of_health]
        healthy = [view for view in healthy if not view.isolates] or healthy
        return [view for view in healthy if not (self.placement.shared_machines and view.quantity == "latency")]

    @property
    def peer_copies(self) -> frozenset[str]:
        """Names of the rows of copies between the GPUs of a host."""
        within_host = {transport.name for transport in TRANSPORTS.values() if transport.is_within_host}
        return frozenset(row.name for row in self.run.rows if row.facts.carrier.transport in within_host)

    @property
    def is_complete(self) -> bool:
        """True if all that was planned was measured, and nothing is damaged."""
        states = {self.run.state, *(row.facts.state for row in self.run.rows)}
        return states == {"complete"} and not self.run.damaged


def judge_run(
    run: Run,
    topology: Topology | None,
    placement: Placement,
    settings: Settings,
    others: Sequence[Finding],
    host_facts: HostFacts,
    step: Callable[[int, int], None] | None = None,
) -> tuple[JudgedRun, list[Note]]:
    """Judge each size of each row, and return a note for each row that cannot be judged.

    Parameters: as of `diagnose`; `topology` names the hosts as the run does, and `placement` has its ranks in it.
    """
    routes = routes_of(topology) if topology and topology.cables and placement.switches else None
    rows, left_out = select_usable_rows(run, placement, settings)
    settings = replace(settings, look=max((1 + len(usable.more) for usable in rows), default=1))
    sizes = [(usable, size) for usable in rows for size in usable.row.sizes]
    declared, facts = topology is not None and not topology.inferred, facts_of(run, placement, host_facts)
    of_sizes = [
        View(usable.flows(size, placement), placement, routes, settings, len(sizes), facts) for usable, size in sizes
    ]
    views, cells = [], list(accumulate(view.flows.observations.sent.size for view in of_sizes))
    shared_paths = SharedPaths(placement, routes)
    for view, done in zip(of_sizes, cells, strict=True):
        views.append(judge_view(view, shared_paths, declared=declared))
        if step is not None and done < cells[-1]:
            step(done, cells[-1])
    resent = retransmissions(run, placement, routes, settings)
    return JudgedRun(run, topology, placement, routes, settings, others, facts, rows, views, resent), left_out

"""How findings are worded: effects, sizes, what else it could be, what to do next."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model import ComponentKind, ComponentRef, Endpoint, Finding, Run, Topology
from fablint.model.verdict import Action, Note
from fablint.text import actions as advise, notes as noted

NEXT_STEP: dict[ComponentKind, advise.OfOne] = {  # the action for a faulty component
    "host": advise.test_host,
    "nic": advise.move_nic,
    "gpu": advise.test_gpu,
    "switch": advise.inspect_switch,
    "cable": advise.inspect_cable,
    "link": advise.inspect_link,
    "route": advise.inspect_route,
}

# Actions that replace those with more partners where each host was measured with all others.
_WITHOUT_MORE = {
    advise.measure_more_partners_of.name: advise.measure_component.name,
    advise.measure_more_partners.name: advise.measure_more_messages.name,
    advise.measure_longer.name: advise.measure_more_messages.name,
}
_AGAIN = {  # actions that measure again, beside `measure_*`
    kind.name for kind in (advise.retest, advise.resume, advise.inspect_route, advise.inspect_direction)
}


def next_step(component: ComponentRef) -> tuple[Action, ...]:
    """Return what to do about a component; nothing for a kind that has no action."""
    return NEXT_STEP[component.kind](component) if component.kind in NEXT_STEP else ()


def between_switches(
    component: ComponentRef, others: Iterable[ComponentRef], run: Run, topology: Topology | None
) -> tuple[Action, ...]:
    """Return what to do about a link `s0>s1` or cable `s0=s1`, with the ports where the topology knows them.

    Where `others` are indistinguishable from the component and all have one switch in common, its ports come first.
    """
    nodes = [
        {node for end in ref.ends for node in end.nodes}
        for ref in (component, *others)
        if ref.kind in ("link", "cable")
    ]
    common = set.intersection(*nodes)
    if len(nodes) > 1 and len(common) == 1:
        return advise.read_exit_drops(ComponentRef.of("switch", *common)) + advise.retest(run=run_name(run))
    ports = topology.ports if topology else {}
    ends = [
        ComponentRef.of("port", Endpoint(nodes=end.nodes, part=ports.get((end.label, other.label), "")))
        for end, other in (component.ends, component.ends[::-1])
    ]
    swap = advise.swap_link_cable if component.directed else advise.swap_switch_cable
    return swap(*ends) + advise.retest(run=run_name(run))


def run_name(run: Run) -> str:
    """Name of the run directory in advice; empty for a run of another tool, which fablint cannot measure again."""
    return "" if run.facts.imported is not None else run.path.name if run.path else "RUN"


def is_resumable(run: Run) -> bool:
    """Tell whether fablint can measure the run again: it is neither of a simulated fabric nor of another tool."""
    return run.facts.is_measured


def unfinished(run: Run) -> list[Note]:
    """Notes on what was not measured to its end."""
    notes = [noted.run_incomplete(state=run.state, resumable=is_resumable(run))] if run.state != "complete" else []
    rows = [(row.name, row.facts) for row in run.rows if row.facts.state != "complete"]
    return notes + [noted.row_incomplete(row=name, state=row.state, reason=row.reason) for name, row in rows]


def with_possible_steps(finding: Finding, run: Run, *, complete: bool, has_all_partners: bool) -> Finding:
    """Return a finding without what cannot be done: to measure a simulated fabric, to resume a run of another tool.

    Nothing of a `complete` run is left to resume, and a run that measured each host with all others
    (`has_all_partners`) has no more partners.
    """
    steps = finding.next_step
    if has_all_partners:
        steps = tuple(step.model_copy(update={"kind": _WITHOUT_MORE.get(step.kind, step.kind)}) for step in steps)
    if run.facts.simulated is not None:
        steps = tuple(step for step in steps if step.kind not in _AGAIN and not step.kind.startswith("measure_"))
    elif complete or run.facts.imported is not None:
        steps = tuple(step for step in steps if step.kind != advise.resume.name)
    return finding if steps == finding.next_step else finding.model_copy(update={"next_step": steps})

"""A component is in one state: what a finding names, or lists as an alternative, is in no OK line."""

from __future__ import annotations

import pytest
from fabric_cases import QUIET, ROUND_TRIP, STREAM, faulty

from fablint.analyse import diagnose, with_additional
from fablint.analyse.concerned import ConcernedComponents
from fablint.model import ComponentRef, Diagnosis, Endpoint, Finding, State
from fablint.simulate import fat_tree, multi_rail
from fablint.simulate.fault_syntax import parse_fault

TREE, PLANES = fat_tree(4, 2), multi_rail(fat_tree(4, 2), 2)
of = ComponentRef.of


def judged(*faults: str, fabric=TREE) -> Diagnosis:
    run = faulty(fabric, *map(parse_fault, faults), noise=QUIET).measure(None, (ROUND_TRIP, STREAM))
    return diagnose(run, fabric.topology)


def names(diagnosis: Diagnosis, state: State, kind: str) -> set[str]:
    """Hosts, switches or links of the findings in a state, one by one."""
    findings = [one for one in diagnosis.verdict.findings if one.state is state and one.component == kind]
    if kind in ("link", "cable", "route"):
        return {f"{a}>{b}" for one in findings for a, b in one.directions}
    return {name for one in findings for name in one.nodes}


@pytest.mark.parametrize(
    ("fabric", "fault"),
    [
        (TREE, "host:h05:-30%"),
        (TREE, "switch:leaf1:-30%"),
        (TREE, "switch:spine0:-30%"),
        (TREE, "cable:leaf0=spine1:-30%"),
        (PLANES, "nic:h05/hsn1:-30%"),
    ],
)
def test_no_component_of_a_finding_is_ok(fabric, fault: str) -> None:
    verdict = judged(fault, fabric=fabric).verdict
    concerned = ConcernedComponents.of(verdict.findings)
    assert {State.FAULT, State.SUSPECT} & {finding.state for finding in verdict.findings}
    for finding in verdict.findings:
        if finding.state is State.OK:
            assert finding.component != "host" or finding.nodes.isdisjoint(concerned.hosts)
            assert finding.component != "switch" or finding.nodes.isdisjoint(concerned.switches)
            assert not any(concerned.has_link(*ends) for ends in finding.directions)
    at_fault = {host for one in verdict.findings if one.state is State.FAULT for host in one.hosts}
    assert at_fault.isdisjoint(
        {host for one in verdict.findings if one.state is State.NOT_JUDGED for host in one.hosts}
    )


def reported(state: State, component: ComponentRef, *alternatives: ComponentRef) -> Finding:
    return Finding(state=state, components=(component,), ambiguity_group=alternatives)


@pytest.mark.parametrize("state", [State.FAULT, State.SUSPECT, State.CONFOUNDED])
@pytest.mark.parametrize(
    ("component", "alternatives", "hosts", "switches"),
    [
        (of("host", "h03"), (), {"h03"}, set()),
        (of("nic", Endpoint(nodes=("h03",), part="hsn0")), (), {"h03"}, set()),
        (of("cable", "h03", "leaf0"), (), {"h03"}, set()),
        (of("port", "leaf0", "h03"), (), {"h03"}, set()),
        (of("route", "h03", "h09"), (), {"h03", "h09"}, set()),
        (of("switch", "leaf2"), (), set(), {"leaf2"}),
        (of("host", "h03"), (of("host", "h07"), of("switch", "leaf1")), {"h03", "h07"}, {"leaf1"}),
        (of("link", "leaf0", "spine1"), (of("host", "h02"),), {"h02"}, set()),
    ],
)
def test_findings_that_join_later_take_their_components_out_of_ok(
    state, component, alternatives, hosts, switches
) -> None:
    healthy = judged()
    joined = with_additional(healthy, [reported(state, component, *alternatives)])
    assert names(joined, State.OK, "host") == names(healthy, State.OK, "host") - hosts
    assert names(joined, State.OK, "switch") == names(healthy, State.OK, "switch") - switches


def test_a_host_at_fault_is_judged_whatever_named_it() -> None:
    lacking = Finding(state=State.NOT_JUDGED, components=(of("host", ["h03", "h04"]),))
    both = with_additional(judged(), [lacking, reported(State.FAULT, of("host", "h03"))])
    assert names(both, State.NOT_JUDGED, "host") == {"h04"}
    alone = with_additional(judged(), [lacking, reported(State.FAULT, of("host", ["h03", "h04"]))])
    assert names(alone, State.NOT_JUDGED, "host") == set()


def test_both_links_of_a_cable_and_all_links_of_a_switch_are_concerned() -> None:
    cable = ConcernedComponents.of([reported(State.SUSPECT, of("cable", "s1", "s2"))])
    assert cable.has_link("s1", "s2")
    assert cable.has_link("s2", "s1")
    assert not cable.has_link("s1", "s3")
    link = ConcernedComponents.of([reported(State.FAULT, of("link", "s1", "s2"), of("port", "s1", "s2"))])
    assert link.has_link("s1", "s2")
    assert not link.has_link("s2", "s1")
    for component in (of("switch", "s1"), of("cable", "s1", title="all cables")):
        assert ConcernedComponents.of([reported(State.FAULT, component)]).has_link("s7", "s1")


@pytest.mark.parametrize("hosts", [["h00"], ["h02", "h03", "h04"]])
def test_hosts_that_are_not_judged_are_not_counted(hosts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bounds are too wide, although they were measured with all others."""
    from fablint.analyse.explain import view

    bounds = view.host_bounds

    def wide(effects, placement):
        bound = bounds(effects, placement)
        bound[[placement.hosts.index(host) for host in hosts]] = 0.5
        return bound

    monkeypatch.setattr(view, "host_bounds", wide)
    diagnosis = judged()
    assert names(diagnosis, State.NOT_JUDGED, "host") == {*hosts}
    assert diagnosis.verdict.coverage.hosts_judged == 16 - len(hosts)

"""Two groups of three switches whose cables are presumed: messages leave the first group over its first switch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analyse_cases import named
from path_cases import EDGE_S, HOP_S, Seconds, Small

from fablint.analyse import diagnose
from fablint.analyse.findings.common_causes import explained
from fablint.analyse.findings.paths.assumed_paths import through_neighbours
from fablint.discover import add_assumed_cables
from fablint.model import Diagnosis, Finding, State, Topology
from fablint.text.evidence_sentences import sentences
from finding_cases import component, finding, group, note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

LATE_S = 1e-3
GROUPS = Small(6, 3, per_group=3, noise=0.02)
PRESUMED = add_assumed_cables(GROUPS.topology)
INSIDE = finding(State.FAULT, "cable", "s0=s1", evidence="slow")
OUTWARD = finding(State.FAULT, "link", "s1>g0", evidence="slower")


def late(first: int, second: int) -> float:
    """Latency of a path where the cable from s0 to s1 is late, over which s1 reaches the other group as well."""
    ends = {first, second}
    return HOP_S + (LATE_S if ends == {0, 1} or (1 in ends and max(ends) > 2) else 0.0)


def far_away(first: int, second: int) -> float:
    """The same, where the only path between the groups takes somewhat more than twice the time on a switch."""
    return late(first, second) + (1.1 * EDGE_S if (first > 2) != (second > 2) else 0.0)


def judged(fabric: Small, seed: int) -> Diagnosis:
    return diagnose(fabric.run(seed, "list", ("latency", "bandwidth")), PRESUMED)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("added", [late, far_away])
def test_a_late_cable_inside_a_group_is_the_reason_of_late_messages_to_others(added, seed: int) -> None:
    assert named(judged(replace(GROUPS, added=added), seed), State.FAULT) == {("cable", "s0=s1", None)}


def through_first_switches(seconds: float) -> Seconds:
    """Latency of paths over one cable between the first switches of two groups, where a switch adds these `seconds`."""

    def added(first: int, second: int) -> float:
        switches = 1 + sum(end % 3 != 0 for end in (first, second)) if (first > 2) != (second > 2) else 1
        return switches * seconds

    return added


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("seconds", [HOP_S, EDGE_S])
def test_groups_that_their_first_switches_connect_are_healthy_however_late_a_switch_is(
    seconds: float, seed: int
) -> None:
    """Assumed cables have no length: messages from the other switches cross one or two switches more."""
    found = judged(replace(GROUPS, added=through_first_switches(seconds), noise=0.003), seed)
    assert found.verdict.exit_code == 0, found.verdict.findings
    assert any("more switches explain" in note for note in note_texts(found.verdict))


@pytest.mark.parametrize("seed", range(4))
def test_a_path_out_of_a_group_that_no_switches_explain_is_at_fault(seed: int) -> None:
    def added(first: int, second: int) -> float:
        late_s = LATE_S if 2 in (first, second) and max(first, second) > 2 else 0.0
        return through_first_switches(HOP_S)(first, second) + late_s

    found = judged(replace(GROUPS, added=added, noise=0.003), seed)
    assert named(found, State.FAULT) == {("cable", "s2=g0", None)}


@pytest.mark.parametrize("far", [2, 6])
def test_the_only_path_between_two_groups_is_as_late_as_up_to_four_switches(far: int) -> None:
    """Beside messages on a switch; pairs are counted that are slower than that, whatever their spread is."""

    def added(first: int, second: int) -> float:
        is_far = (first > 2) != (second > 2)
        return through_first_switches(HOP_S)(first, second) + (far * EDGE_S if is_far else 0.0)

    found = judged(replace(GROUPS, added=added, noise=0.003), 1).verdict
    assert found.exit_code == (0 if far == 2 else 1)
    for evidence in (record for one in found.findings for record in one.evidence if record.kind == "path_slow"):
        assert evidence.values["slow"] == evidence.values["pairs"] == 81


def standing(*claims: Finding, topology: Topology = PRESUMED) -> list[Finding]:
    return explained(claims, through_neighbours(claims, topology))


def reported(*claims: Finding, topology: Topology = PRESUMED) -> dict[str, State]:
    return {finding.name: finding.state for finding in standing(*claims, topology=topology)}


def test_a_path_out_of_a_group_is_no_further_fault_after_one_inside() -> None:
    (kept,) = standing(OUTWARD, INSIDE)
    assert kept.name == "s0=s1"
    assert PINNED["messages between s1 and other"] in sentences(kept.evidence)


def test_it_is_a_suspect_beside_a_suspect_inside() -> None:
    found = standing(OUTWARD, INSIDE.model_copy(update={"state": State.SUSPECT}))
    assert [one.state for one in found] == [State.SUSPECT, State.SUSPECT]
    assert group(found[-1]) == ("cable s0=s1",)


def test_it_is_a_fault_where_nothing_inside_is_slow() -> None:
    elsewhere = INSIDE.model_copy(update={"components": (component("cable", "s3=s4"),)})
    of_another = INSIDE.model_copy(update={"components": (component("cable", "s0=s2"),)})
    assert reported(OUTWARD) == {"s1>g0": State.FAULT}
    assert reported(OUTWARD, elsewhere, of_another).keys() == {"s1>g0", "s3=s4", "s0=s2"}


def test_a_declared_switch_without_hosts_is_no_gate() -> None:
    spine = OUTWARD.model_copy(update={"components": (component("link", "s1>core"),)})
    assert reported(spine, INSIDE, topology=GROUPS.topology).keys() == {"s1>core", "s0=s1"}

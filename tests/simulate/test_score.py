"""Truth and score: what looks the same is a class, and every finding is right, in the class, or wrong."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simulate_cases import DEEP, FLY, RAILS, ROUND_TRIP, STREAM, TREE, silent

from fablint.model import Finding, State
from fablint.simulate import (
    Fault,
    Score,
    SimulatedRow,
    TrueFault,
    full_mesh,
    random_faults,
    read_truth,
    score,
    write_truth,
)
from fablint.simulate.rounds import all_rounds
from finding_cases import component, finding, ref

FAR = [
    np.array([[host, (host + 4 * step) % 16] for host in range(16) if host < (host + 4 * step) % 16]) for step in (2,)
]


def fault(kind: str, name: str, direction=None, alternatives=(), state=State.FAULT) -> Finding:
    return finding(state, kind, name, direction=direction, ambiguity_group=alternatives)


def truth(*faults: Fault, rounds=None, rows=(STREAM,), fabric=TREE) -> tuple[TrueFault, ...]:
    simulated = silent(fabric, *faults)
    plan = all_rounds(simulated.ranks) if rounds is None else rounds
    return simulated.truth(simulated.measure(plan, rows))


def group(known: TrueFault) -> dict[str, str | None]:
    """Directions of the members of the ambiguity group, by label."""
    return {member.label: direction for member, direction in known.equivalents.items()}


def missed(part: str, *wrong: str) -> Score:
    return Score(missed=1, missed_names=(part,), wrong=len(wrong), wrong_names=wrong)


HOST = Fault(ref("host", "h05"), "tx", bandwidth_factor=0.8)
LINK = Fault(ref("link", "leaf0", "spine1"), bandwidth_factor=0.7)
CABLE = Fault(ref("cable", "leaf2", "spine3"), bandwidth_factor=0.7)


@pytest.mark.parametrize(
    ("faulty", "findings", "expected"),
    [
        (HOST, [fault("host", "h05", "tx")], Score(exact=1, direction_right=1, direction_decidable=1)),
        (HOST, [fault("host", "h05", "both")], Score(exact=1, direction_decidable=1)),
        (HOST, [fault("cable", "h05=leaf1", "tx")], Score(in_class=1, direction_right=1, direction_decidable=1)),
        (HOST, [fault("nic", "h05/nic0", "rx")], Score(in_class=1, direction_decidable=1)),
        (HOST, [fault("link", "h05>leaf1")], Score(in_class=1, direction_right=1, direction_decidable=1)),
        (HOST, [fault("link", "leaf1>h05")], Score(in_class=1, direction_decidable=1)),
        (HOST, [], missed("host h05 tx -20 %")),
        (HOST, [fault("host", "h05", "tx", state=State.SUSPECT)], missed("host h05 tx -20 %")),
        (HOST, [fault("host", "h06")], missed("host h05 tx -20 %", "host h06")),
        (HOST, [fault("switch", "leaf1")], missed("host h05 tx -20 %", "switch leaf1")),
        (LINK, [fault("link", "leaf0>spine1")], Score(exact=1, direction_right=1, direction_decidable=1)),
        (LINK, [fault("cable", "leaf0=spine1", "both")], Score(in_class=1, direction_decidable=1)),
        (LINK, [fault("link", "spine1>leaf0")], missed("link leaf0>spine1 -30 %", "link spine1>leaf0")),
        (
            LINK,
            [fault("switch", "spine1", alternatives=(component("link", "leaf0>spine1"),))],
            Score(in_class=1, direction_decidable=1),
        ),
        (
            LINK,
            [fault("switch", "spine1", alternatives=(component("port", "leaf0=spine1"),))],
            missed("link leaf0>spine1 -30 %", "switch spine1"),
        ),
        (CABLE, [fault("cable", "spine3=leaf2")], Score(exact=1, direction_right=1, direction_decidable=1)),
        (
            CABLE,
            [fault("link", "spine3>leaf2"), fault("link", "leaf2>spine3")],
            Score(exact=1, direction_right=1, direction_decidable=1),
        ),
        (CABLE, [fault("link", "spine3>leaf2")], Score(in_class=1, direction_decidable=1)),
        (Fault(ref("switch", "spine2"), bandwidth_factor=0.8), [fault("switch", "spine2")], Score(exact=1)),
        (Fault(ref("host", "h05"), moved_to="leaf2"), [fault("config", "h05")], Score(exact=1)),
        (
            Fault(ref("host", "h05"), scatter=5.0),
            [fault("host", "h05")],
            Score(wrong=1, wrong_names=("host h05",)),
        ),
        (Fault(ref("host", "h05"), duplex_factor=0.5), [], Score()),  # nothing measured both ways at once
    ],
)
def test_scores(faulty: Fault, findings: list[Finding], expected: Score) -> None:
    assert score(findings, truth(faulty)) == expected


def test_round_trips_do_not_tell_the_direction() -> None:
    late = Fault(ref("link", "leaf0", "spine1"), added_latency_s=1e-6)
    (known,) = truth(late, rows=(ROUND_TRIP,))
    assert not known.decidable
    assert {"spine1>leaf0", "leaf0=spine1"} & set(group(known)) == set()  # the reverse paths take other spines
    assert score([fault("link", "leaf0>spine1")], [known]) == Score(exact=1)
    (host,) = truth(Fault(ref("host", "h05"), "tx", added_latency_s=1e-6), rows=(ROUND_TRIP,))
    assert {"leaf1>h05", "h05=leaf1", "h05/nic0"} <= set(group(host))


def test_what_the_rounds_do_not_tell_apart_is_one_class() -> None:
    """Far partners only: the last cable to a host is in series with its own."""
    (known,) = truth(Fault(ref("host", "h05"), "rx", bandwidth_factor=0.8), rounds=FAR)
    assert group(known)["spine1>leaf1"] is None
    assert group(known)["h05=leaf1"] == "rx"
    found = score([fault("link", "spine1>leaf1")], [known])
    assert found == Score(in_class=1, direction_right=1, direction_decidable=1)
    (apart,) = truth(Fault(ref("host", "h05"), "rx", bandwidth_factor=0.8))
    assert "spine1>leaf1" not in group(apart)
    (other,) = truth(Fault(ref("link", "spine1", "leaf1"), bandwidth_factor=0.8), rounds=FAR)
    assert group(other)["h05"] == "rx"
    assert score([fault("host", "h05", "rx")], [other]).direction_right == 1
    assert score([fault("host", "h05", "tx")], [other]).direction_right == 0


def test_a_lone_host_is_one_with_its_switch() -> None:
    """Whatever leaves the switch enters or leaves its only host."""
    (known,) = truth(Fault(ref("switch", "s1"), bandwidth_factor=0.8), fabric=full_mesh(4, 1))
    assert group(known)["h01"] == "both"


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), fabric=st.sampled_from([DEEP, FLY, TREE]))
def test_the_truth_itself_scores_full_marks(seed: int, fabric) -> None:
    rounds = all_rounds(len(fabric.hosts))
    faults = random_faults(fabric, 2, np.random.default_rng(seed), rounds=rounds)
    simulated = silent(fabric, *faults)
    known = simulated.truth(simulated.measure(rounds, [STREAM]))
    perfect = [fault(true.component.kind, true.component.label, true.direction) for true in known]
    found = score(perfect, known)
    assert (found.exact, found.in_class, found.wrong, found.missed) == (2, 0, 0, 0)
    assert found.direction_right == found.direction_decidable == sum(true.component.kind != "switch" for true in known)
    assert score([], known).missed == 2


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), fabric=st.sampled_from([DEEP, FLY, TREE]))
def test_twins_slow_the_very_same_measurements(seed: int, fabric) -> None:
    rounds = [all_rounds(len(fabric.hosts))[index] for index in (0, 5, 6)]
    (one,) = random_faults(fabric, 1, np.random.default_rng(seed), rounds=rounds)
    simulated = silent(fabric, one)
    run = simulated.measure(rounds, [SimulatedRow("bandwidth", (1 << 20,), statistics=("max",))])
    (known,) = simulated.truth(run)
    if fabric is FLY:
        assert isinstance(known.ambiguity_group, tuple)  # which messages cross is left to chance there
        return
    slow = run.rows[0].arrays["time_max"] > 1.05 * np.nanmin(run.rows[0].arrays["time_max"])
    for member, direction in known.equivalents.items():
        twin = silent(fabric, Fault(member, direction or "both", bandwidth_factor=one.bandwidth_factor))
        again = twin.measure(rounds, [SimulatedRow("bandwidth", (1 << 20,), statistics=("max",))]).rows[0]
        np.testing.assert_array_equal(again.arrays["time_max"] > 1.05 * np.nanmin(again.arrays["time_max"]), slow)


def test_truth_survives_the_disk(tmp_path: Path) -> None:
    known = truth(HOST, LINK, CABLE, rounds=FAR)
    write_truth(tmp_path, known)
    assert read_truth(tmp_path) == known
    assert '"ambiguity_group"' in (tmp_path / "truth.json").read_text()


def test_one_of_two_nics_is_no_class_with_its_host() -> None:
    (known,) = truth(Fault(component("nic", "h01/hsn1"), bandwidth_factor=0.8), fabric=RAILS)
    assert "h01" not in group(known)
    assert group(known)["h01=p1.leaf0"] == "both"


def test_scores_add_up() -> None:
    total = Score(exact=1, wrong_names=("a",)) + Score(exact=2, missed=1, wrong_names=("b",))
    assert total == Score(exact=3, missed=1, wrong_names=("a", "b"))

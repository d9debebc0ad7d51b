"""What counts as a right verdict on a cluster whose faults are known."""

from __future__ import annotations

from typing import Any

import pytest

from checked_cluster import Faulty, Outcome

HOST = Faulty((frozenset({"nid1"}),))
SENDER = Faulty(HOST.ends, one_way=True)
CABLE = Faulty((frozenset({"s0", "group0"}), frozenset({"s1", "group1"})))
LINK = Faulty(CABLE.ends, one_way=True)


def finding(text: str, direction: str | None = None, *, state: str = "FAULT", group: tuple[str, ...] = ()) -> Any:
    component, name = text.split()
    words = {"component": component, "name": name, "ambiguity_group": group}
    return {"state": state, "direction": direction, "quantity": "bandwidth", "effect": -0.5, "text": words}


@pytest.mark.parametrize(
    ("faulty", "found"),
    [
        (HOST, finding("host nid1")),
        (HOST, finding("host nid[1-2]", state="SUSPECT")),
        (HOST, finding("cable nid1=s0")),
        (HOST, finding("switch s0", group=("NIC of nid1", "cable nid1=s0"))),
        (SENDER, finding("host nid1", "tx")),
        (CABLE, finding("cable s0=s1", "both")),
        (CABLE, finding("link s1>s0")),
        (LINK, finding("link s0>s1")),
        (LINK, finding("route group0>group1", state="SUSPECT")),
    ],
)
def test_a_fault_may_be_named_alone_or_in_a_group(faulty: Faulty, found: Any) -> None:
    assert Outcome(1, 1.0, [found]).wrong([faulty]) == []


@pytest.mark.parametrize(
    ("faulty", "found"),
    [
        (HOST, finding("host nid2")),
        (HOST, finding("route nid1=nid2", state="SUSPECT")),
        (SENDER, finding("host nid1", "rx")),
        (SENDER, finding("host nid1", "both")),
        (CABLE, finding("cable s0=s2")),
        (CABLE, finding("switch s1", "rx")),
        (LINK, finding("link s1>s0")),
        (LINK, finding("cable s0=s1", "both")),
    ],
)
def test_another_component_or_direction_is_wrong(faulty: Faulty, found: Any) -> None:
    wrong = Outcome(1, 1.0, [found]).wrong([faulty])
    assert any(text.startswith("not named") for text in wrong)
    assert any(text.startswith("false FAULT") for text in wrong) == (found["state"] == "FAULT")


def test_a_pass_with_a_fault_is_wrong_and_a_healthy_cluster_may_be_undecided() -> None:
    assert "PASS with a fault" in Outcome(0, 1.0).wrong([HOST])
    assert Outcome(3, 1.0).wrong([]) == []
    assert Outcome(1, 1.0, [finding("host nid1")]).wrong([]) == ["false FAULT host nid1 bandwidth -50%"]
    assert Outcome(4, 1.0, error="unfit").wrong([]) == ["no verdict: unfit"]

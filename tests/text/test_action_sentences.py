"""Sentences for the actions of a next step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fablint.model import ComponentRef, Endpoint, Finding, State
from fablint.model.verdict import Action, advise
from fablint.text.action_sentences import ACTIONS, advice

NIC = ComponentRef.of("nic", Endpoint(nodes=("h07",), part="hsn1"))
PORT = ComponentRef.of("port", Endpoint(nodes=("s3",), part="12"))
SOURCE = Path(__file__).parents[2] / "src" / "fablint"


def test_the_table_has_the_kinds_that_the_source_uses() -> None:
    modules = [path.read_text() for path in SOURCE.rglob("*.py") if path.name != "action_sentences.py"]
    advised = {kind for text in modules for kind in re.findall(r'advise\(\s*"(\w+)"', text)}
    quoted = {word for text in modules for word in re.findall(r'"(\w+)"', text)}
    assert advised <= ACTIONS.keys() <= quoted


@pytest.mark.parametrize(
    ("next_step", "text"),
    [
        ((), ""),
        (
            advise("swap_cable", NIC, PORT) + advise("retest", run="a.run"),
            "swap cable between h07 hsn1 and s3 port 12, then `fablint retest a.run`",
        ),
        (
            advise("resume") + advise("measure_more_pairs"),
            "finish the run (fablint resume), or measure more pairs across them",
        ),
        (advise("log_in") + advise("recompute_routes"), f"{ACTIONS['log_in']}; {ACTIONS['recompute_routes']}"),
        (
            advise("read_cable_drops", NIC, direction="rx"),
            "read the error and drop counters of the NIC of h07/hsn1; then reseat or swap its cable",
        ),
    ],
)
def test_a_next_step_is_one_sentence(next_step: tuple[Action, ...], text: str) -> None:
    assert advice(next_step) == text


def test_actions_can_be_read_back_and_compared() -> None:
    finding = Finding(
        state=State.OK, components=(NIC,), next_step=advise("swap_cable", NIC, PORT) + advise("retest", run="")
    )
    again = Finding.model_validate_json(finding.model_dump_json())
    assert (again, len({finding.next_step, again.next_step})) == (finding, 1)

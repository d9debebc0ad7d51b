"""Sentences for the actions of a next step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from fablint.model import ComponentRef, Endpoint, Finding, State
from fablint.model.verdict import Action
from fablint.text import actions as advise
from fablint.text.actions import KINDS, advice

NIC = ComponentRef.of("nic", Endpoint(nodes=("h07",), part="hsn1"))
ROUTE = ComponentRef.of("route", "h1", "h2")
PORT = ComponentRef.of("port", Endpoint(nodes=("s3",), part="12"))
SOURCE = Path(__file__).parents[2] / "src" / "fablint"


def test_every_kind_is_advised_and_nothing_else_makes_actions() -> None:
    modules = [path.read_text() for path in SOURCE.rglob("*.py") if path.name != "actions.py"]
    advised = {kind for text in modules for kind in re.findall(r"\badvise\.(\w+)", text)}
    assert advised >= KINDS.keys()
    assert not [text for text in modules if re.search(r"\bAction\(", text.replace("class Action(", ""))]


EXAMPLES = {ComponentRef: ROUTE, str: "s1", int: 3, bool: True, tuple[str, ...]: ("s1",)}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_has_a_sentence_of_its_components_and_values(name: str) -> None:
    kind, words = KINDS[name], KINDS[name].words
    if isinstance(words, str):
        fields, named = [EXAMPLES[hint] for hint in get_args(kind.__orig_class__)[0]], {}
    else:
        hints = {field: hint for field, hint in get_type_hints(words).items() if field != "return"}
        fields = [ROUTE for hint in hints.values() if hint is ComponentRef]
        named = {field: EXAMPLES.get(hint) for field, hint in hints.items() if hint is not ComponentRef}
        words = words(*fields, **named)
    step = kind(*fields, **named)
    assert len(set(re.findall(r"\{(\d)", words))) == fields.count(ROUTE) == len(step[0].components)
    assert step[0].kind == name and advice(step)


@pytest.mark.parametrize(
    ("next_step", "text"),
    [
        ((), ""),
        (
            advise.swap_cable(NIC, PORT) + advise.retest(run="a.run"),
            "swap cable between h07 hsn1 and s3 port 12, then `fablint retest a.run`",
        ),
        (
            advise.resume() + advise.measure_more_pairs(),
            "finish the run (fablint resume), or measure more pairs across them",
        ),
        (advise.log_in() + advise.recompute_routes(), f"{KINDS['log_in'].words}; {KINDS['recompute_routes'].words}"),
        (
            advise.read_cable_drops(NIC, direction="rx"),
            "read the error and drop counters of the NIC of h07/hsn1; then reseat or swap its cable",
        ),
    ],
)
def test_a_next_step_is_one_sentence(next_step: tuple[Action, ...], text: str) -> None:
    assert advice(next_step) == text


def test_actions_can_be_read_back_and_compared() -> None:
    finding = Finding(state=State.OK, components=(NIC,), next_step=advise.swap_cable(NIC, PORT) + advise.retest(run=""))
    again = Finding.model_validate_json(finding.model_dump_json())
    assert (again, len({finding.next_step, again.next_step})) == (finding, 1)

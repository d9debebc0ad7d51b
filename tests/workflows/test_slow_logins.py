"""A host whose login takes far longer than those of the others delays each launch: it is named with the seconds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fablint.cluster import everywhere
from fablint.model import Allocation
from fablint.snapshot import read_answers
from fablint.workflows.check.preflight_findings import slow_logins
from finding_cases import texts

# A fake of ssh: the login to hosts called `late...` takes a while, the program is executed here.
FAKE_SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case $1 in -o|-l) shift;; esac; shift; done
case $1 in late*) sleep 2.5;; esac
shift
exec /bin/sh -c "$*"
"""


def test_the_login_to_each_host_is_measured(staged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ssh"
    program.write_text(FAKE_SSH)
    program.chmod(0o755)
    staged.variables["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    hosts = Allocation(("n1", "late2", "n3"), "hosts that were named")
    answers = {answer.host: answer for answer in everywhere(staged, hosts, ("sh", "-c", "echo done"))}
    seconds = read_answers(answers.values()).login_s
    assert [answer.output for answer in answers.values()] == ["done\n"] * 3
    assert seconds["late2"] >= 2.5
    assert seconds["n1"] < seconds["late2"]


@pytest.mark.parametrize(
    ("login_s", "note"),
    [
        ({"n1": 0.3, "n2": 8.21, "n3": 0.4, "n4": 0.3}, "a login to n2 over ssh takes 8.2 s, 0.3 s on most hosts: "),
        ({"n1": 0.3, "n2": 8.2}, "a login to n2 over ssh takes 8.2 s, 0.3 s on most hosts: "),
        (
            {**{f"n{at:02d}": 0.5 for at in range(20)}, "n03": 5.0, "n04": 9.0},
            "a login to n[03-04] over ssh takes up to 9.0 s, 0.5 s on most hosts: each launch waits for it",
        ),
        ({"n1": 0.1, "n2": 1.9, "n3": 0.1}, ""),  # a busy host
        ({"n1": 4.0, "n2": 8.0, "n3": 5.0}, ""),  # slow everywhere
        ({"n1": 30.0}, ""),
        ({}, ""),
    ],
)
def test_a_slow_login_is_one_that_is_far_slower_than_the_others(login_s: dict[str, float], note: str) -> None:
    notes = texts(slow_logins(login_s))
    assert len(notes) == bool(note)
    assert "".join(notes).startswith(note)

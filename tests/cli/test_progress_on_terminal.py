"""Progress on a terminal is erased before anything else is printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from terminal import on_terminal, screen_of

# A verb in the middle of its work: the bar is shown, then STATEMENT.
PROGRAM = """
import sys
from fablint import cli
from fablint.cli.session import Session
from fablint.workflows import measurement
from fablint.errors import IncompleteError
from fablint.system import System

class FakeClock(System):
    now_s = 0.0
    def monotonic(self):
        FakeClock.now_s += 3
        return FakeClock.now_s

SESSION = Session(machine=FakeClock)

def measure(context, plan, output, options=()):
    context.progress.step("row 1 of 2, latency", 3, 40, 12.0)
    STATEMENT

measurement.measure = measure
sys.exit(cli._exit_code(SESSION, ["measure", "-n", "2", "-r", "latency"]))
"""

STATEMENTS = {
    "error": ("raise IncompleteError('cannot write x')", 3, ["fablint: cannot write x"]),
    "warning": ("SESSION.warn('rank 1 failed'); sys.exit(3)", 3, ["fablint: rank 1 failed"]),
    "chatter": ("SESSION.say('report: x'); sys.exit(0)", 0, ["fablint: report: x"]),
    "result": ("SESSION.result('PASS\\nn1  fit', {}); sys.exit(0)", 0, ["PASS", "n1  fit"]),
    "note": ("context.progress.note('n3 is left out'); sys.exit(0)", 0, ["n3 is left out"]),
    "internal error": ("raise RuntimeError('odd')", 5, ["fablint: internal error: RuntimeError: odd: rerun"]),
    "two": ("SESSION.warn('a'); context.progress.step('x', 4, 40); SESSION.warn('b'); sys.exit(0)", 0, list("ab")),
}


def program(statement: str) -> str:
    return PROGRAM.replace("STATEMENT", statement)


@pytest.mark.parametrize("case", STATEMENTS)
def test_a_line_that_is_printed_stands_alone(tmp_path: Path, case: str) -> None:
    statement, status, expected = STATEMENTS[case]
    expected = [f"fablint: {line}" for line in expected] if case == "two" else expected
    seen = on_terminal([sys.executable, "-c", program(statement)], tmp_path)
    assert seen.status == status, seen
    assert [line[: len(said)] for line, said in zip(seen.screen, expected, strict=True)] == expected


def test_a_terminal_that_cannot_move_its_cursor_has_lines(tmp_path: Path) -> None:
    statement = "context.progress.step('x', 4, 40); SESSION.warn('lost'); sys.exit(0)"
    seen = on_terminal([sys.executable, "-c", program(statement)], tmp_path, TERM="dumb")
    assert list(seen.screen) == ["row 1 of 2, latency: 3 of 40, 12 s left", "x: 4 of 40", "fablint: lost"]


def test_the_screen_of_these_tests_shows_what_a_terminal_does() -> None:
    assert screen_of("a bar 3/40fablint: x\r\n") == ["a bar 3/40fablint: x"]
    assert screen_of("a bar 3/40\r\x1b[2Kfablint: x\r\n") == ["fablint: x"]
    assert screen_of("one\r\ntwo\r\n\x1b[1A\x1b[2Knew") == ["one", "new"]
    assert screen_of("\x1b[?25l\x1b[1;31mred\x1b[0m \r\n\r\n") == ["red"]

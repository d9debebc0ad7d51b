"""Progress: nothing for short jobs, a line now and then off a terminal, a bar on one; lines of JSON for programs."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from terminal import screen_of

from fablint.measure import ConsoleProgress, JsonLinesProgress
from fablint.system import System


class FakeClock(System):
    time_s = 0.0

    def monotonic(self) -> float:
        return self.time_s


def shown(*, terminal: bool, at: list[float]) -> str:
    """What is on the screen after 100 steps' worth of reports at the given seconds."""
    clock, screen = FakeClock(), io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=80, color_system=None)
    with ConsoleProgress(clock, console) as progress:
        for done, clock.time_s in enumerate(at, 1):
            progress.step("latency", done, 100, 100.0 - done)
    return screen.getvalue()


def test_a_short_job_shows_nothing():
    assert shown(terminal=False, at=[0.1, 1.0, 1.9]) == ""
    assert shown(terminal=True, at=[0.1, 1.0, 1.9]) == ""


def test_off_a_terminal_lines_come_every_two_seconds():
    text = shown(terminal=False, at=[0.5, 2.0, 2.5, 3.9, 4.1, 6.5])
    assert text.splitlines() == [
        "latency: 2 of 100, 98 s left",
        "latency: 5 of 100, 95 s left",
        "latency: 6 of 100, 94 s left",
    ]


def test_off_a_terminal_a_line_is_not_repeated():
    clock, screen = FakeClock(), io.StringIO()
    with ConsoleProgress(clock, Console(file=screen, force_terminal=False, width=80)) as progress:
        for clock.time_s in (3.0, 6.0, 9.0):
            progress.step("osu_latency, sizes", 0, 23)
    assert screen.getvalue() == "osu_latency, sizes: 0 of 23\n"


def test_on_a_terminal_there_is_a_bar():
    text = shown(terminal=True, at=[2.5, 3.0])
    assert "latency" in text
    assert "2/100" in text
    assert "98 s left" in text


def test_off_a_terminal_a_task_without_steps_has_lines_ever_further_apart(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr("fablint.measure.progress.QUIET_S", 0.01)
    with ConsoleProgress(System(), Console(file=screen, force_terminal=False, width=80)).working("judging 3 hosts"):
        while len(screen.getvalue().splitlines()) < 2:
            pass
    assert set(screen.getvalue().splitlines()) == {"judging 3 hosts: 0 s"}


def test_on_a_terminal_a_task_without_steps_leaves_no_line(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr("fablint.measure.progress.QUIET_S", 0.01)
    console = Console(file=screen, force_terminal=True, width=80, color_system=None)
    with ConsoleProgress(System(), console).working("judging 3 hosts"):
        while "judging 3 hosts: 0 s" not in screen.getvalue():
            pass
    assert screen_of(screen.getvalue().replace("\n", "\r\n")) in ([], [""])


@pytest.mark.parametrize(("total", "left"), [(1, "0 s left"), (100, "16 min left")])
def test_the_time_left_of_a_task_follows_from_the_share_that_is_done(monkeypatch, total, left):
    screen = io.StringIO()
    monkeypatch.setattr("fablint.measure.progress.QUIET_S", 0.01)
    clock = FakeClock()
    with ConsoleProgress(clock, Console(file=screen, force_terminal=False, width=80)).working("judging") as step:
        clock.time_s += 10
        step(1, total)
        while left not in screen.getvalue():
            pass
    assert f"judging: 10 s, {left}" in screen.getvalue().splitlines()


def test_a_short_task_without_steps_shows_nothing():
    screen = io.StringIO()
    with ConsoleProgress(System(), Console(file=screen, force_terminal=False)).working("judging 3 hosts"):
        pass
    assert screen.getvalue() == ""


def test_each_event_is_one_line_whatever_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    progress = JsonLinesProgress(FakeClock())
    progress.note("fablint: two\nlines of \u2028 text")
    progress.note("fablint: FAULT host h1", "finding", finding={"component": "host"})
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"event": "note", "text": "two\nlines of \u2028 text"},
        {"event": "finding", "text": "FAULT host h1", "finding": {"component": "host"}},
    ]


def test_steps_are_thinned_out(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    progress = JsonLinesProgress(clock)
    for done in range(10):
        progress.step("row 1 of 2, edge-latency", done, 10, 9.0 - done)
        clock.time_s += 0.2
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["done"] for event in events] == [0, 3, 6, 9]
    assert events[1] == {"event": "step", "task": "row 1 of 2, edge-latency", "done": 3, "total": 10, "left_s": 6.0}

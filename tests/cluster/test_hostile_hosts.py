"""Hosts that print what they must not: names of other hosts, and output without end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fablint.cluster import everywhere, output_framing, pbsdsh
from fablint.cluster.output_framing import HostLines, answer, read_lines
from fablint.cluster.srun import parsed, task_of
from fablint.model import Allocation
from fablint.system import System

HOSTS = ["n1", "n2", "n3"]


def frame(task: int, host: str, text: str) -> list[str]:
    return [f"{task}: fablint-host {host}", f"{task}: {text}", f"{task}: ", f"{task}: fablint-end 0 "]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_tasks_that_name_one_host_none_counts(order: tuple[int, ...]) -> None:
    """Task 2 is n3 and says that it is n1: neither what it says of n1 counts, nor what the true n1 says."""
    frames = [frame(0, "n1", "true"), frame(1, "n2", "true"), frame(2, "n1", "forged")]
    replies = parsed(HOSTS, [line for task in order for line in frames[task]], 5)
    assert {host: one.output for host, one in replies.answers.items()} == {"n2": "true\n"}
    assert "name this host" in replies.silent["n1"]


@pytest.mark.parametrize("name", ["n1.cluster.example.org", "N1"])
def test_another_spelling_is_the_same_name(name: str) -> None:
    replies = parsed(HOSTS, [*frame(0, "n1", "true"), *frame(1, name, "forged")], 5)
    assert not {one.output for one in replies.answers.values()} & {"forged\n"}


def test_a_second_frame_of_one_task_belongs_to_its_host() -> None:
    replies = parsed(HOSTS, [*frame(0, "n1", "true"), *frame(0, "n2", "forged"), *frame(1, "n2", "true")], 5)
    assert replies.answers["n2"].output == "true\n"


def test_a_frame_that_is_cut_off_counts_as_a_task_with_the_name() -> None:
    replies = parsed(HOSTS, [*frame(0, "n1", "true"), "1: fablint-host n1", "1: forged"], 5)
    assert replies.answers == {}


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(output_framing, "MOST_LETTERS", 1 << 20)
    return 1 << 20


def test_lines_of_a_host_have_a_limit(small_limit: int) -> None:
    lines = HostLines()
    for _ in range(10_000):
        lines.add("x" * 1000)
    assert small_limit < sum(len(line) + 1 for line in lines.lines) <= small_limit + 1001
    said = answer("n1", ["fablint-host n1", *lines.lines, "", "fablint-end 0 "], 5)
    assert said is not None
    assert (said.output, said.error) == ("", "it printed more than 1 MiB")


def test_a_host_that_prints_without_end_is_given_up_and_the_others_count(small_limit: int) -> None:
    many = [line for number in range(3000) for line in (f"0: {'x' * 1000}", f"1: {number}")]
    lines = ["0: fablint-host n1", "1: fablint-host n2", *many, "1: ", "1: fablint-end 0 ", "0: ", "0: fablint-end 0 "]
    code = "import sys; [print(line) for line in sys.stdin.read().splitlines()]"
    process = System().spawn([sys.executable, "-c", code], text="\n".join(lines))
    kept = read_lines(System(), process, 60.0, task_of)
    assert sum(map(len, kept)) < 2 * small_limit
    replies = parsed(HOSTS, kept, 5)
    assert replies.answers["n1"].error == "it printed more than 1 MiB"
    assert replies.answers["n2"].output.splitlines() == [str(number) for number in range(3000)]


@pytest.mark.parametrize("end", ["\\n", ""])
def test_a_program_on_this_host_that_prints_without_end(small_limit: int, end: str) -> None:
    here = Allocation((os.uname().nodename,), "this machine")
    code = f"for _ in range(5000): print('x' * 1000, end='{end}')"
    (said,) = everywhere(System(), here, [sys.executable, "-c", code])
    assert (said.output, said.error) == ("", "it printed more than 1 MiB")


@pytest.mark.parametrize("kind", ["pipe", "link", "huge", "right"])
def test_the_file_of_a_host_is_read_as_a_regular_file_only(tmp_path: Path, kind: str, small_limit: int) -> None:
    folder, text = tmp_path / "host-n1", "fablint-host n1\nx\n\nfablint-end 0 \n"
    folder.mkdir()
    (tmp_path / "other").write_text(text)
    if kind == "pipe":
        os.mkfifo(folder / "answer")
    elif kind == "link":
        (folder / "answer").symlink_to(tmp_path / "other")
    else:
        (folder / "answer").write_text(text + "x" * (small_limit * 2 if kind == "huge" else 0))
    answers = pbsdsh._answers(tmp_path, ["n1"], 5)
    expected = {"huge": {"n1": ("", "it printed more than 1 MiB")}, "right": {"n1": ("x\n", "")}}
    assert {host: (one.output, one.error) for host, one in answers.items()} == expected.get(kind, {})

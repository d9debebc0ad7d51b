"""A program on every host: locally, and over a fake ssh that runs here what it should run elsewhere."""

from __future__ import annotations

import sys

import pytest

from fablint.cluster import everywhere, find_hosts
from fablint.model import Allocation, Answer
from pinned import pinned_by

PINNED = pinned_by("cluster.toml", __file__)

FAKE_SSH = """#!/bin/sh
# A fake of ssh: runs the command here, in the name of the host; some hosts are faulty.
while [ "${1#-}" != "$1" ]; do case $1 in -o|-l) shift;; esac; shift; done
host=$1
shift
case $host in
    refuses) echo "user@refuses: Permission denied (publickey)." >&2; exit 255;;
    stalls) exec sleep 60;;
    greets) echo "Welcome to the cluster!"; echo "fablint-endless fun";;
esac
FAKE_HOST=$host exec /bin/sh -c "$*"
"""


@pytest.fixture
def fake_ssh(staged, tmp_path):
    program = tmp_path / "ssh"
    program.write_text(FAKE_SSH)
    program.chmod(0o755)
    staged.variables["PATH"] = f"{tmp_path}:{staged.variables['PATH']}"
    return staged


def hosts(*names):
    return Allocation(names, "--hosts")


def ask(system, *names, argv=("cat",), text="", timeout_s=10.0):
    return everywhere(system, hosts(*names), argv, text, timeout_s)


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\n\n\n", "\n", "  a b\tc\n", "é ☂\n", "x" * 300_000])
def test_output_comes_back_as_it_was(staged, text):
    whole = text if not text or text.endswith("\n") else f"{text}\n"
    assert ask(staged, "localhost", text=text) == [Answer("localhost", whole)]


def test_a_program_that_fails_says_why_and_keeps_its_output(staged):
    code = "import sys; print('half'); print('one', file=sys.stderr); print('no NIC', file=sys.stderr); sys.exit(3)"
    assert ask(staged, "localhost", argv=(sys.executable, "-c", code)) == [Answer("localhost", "half\n", "no NIC")]
    assert ask(staged, "localhost", argv=("sh", "-c", "exit 7")) == [Answer("localhost", "", "exit status 7")]
    (answer,) = ask(staged, "localhost", argv=("no-such-program",))
    assert "no-such-program" in answer.error


def test_a_program_that_does_not_end(staged):
    argv = ("sh", "-c", "echo begun; sleep 50")
    assert ask(staged, "localhost", argv=argv, timeout_s=3) == [Answer("localhost", "begun\n", "no end after 3 s")]


def test_stderr_is_kept_apart(staged):
    argv = ("sh", "-c", "echo out; echo err >&2")
    assert ask(staged, "localhost", argv=argv) == [Answer("localhost", "out\n")]


def test_over_ssh_each_host_has_its_own_answer(fake_ssh):
    argv = ("sh", "-c", "echo $FAKE_HOST; cat", "%h")
    answers = ask(fake_ssh, "n3", "greets", "n1", argv=argv, text="hi\n")
    assert answers == [Answer(name, f"{name}\nhi\n") for name in ("n3", "greets", "n1")]


WORDS = ("it's", 'a "b"', "$HOME", "`id`", "%hosts", "%{hosts}", "%h", "a\nb", "*", "\\n", "-n", "", "!x", "é")


def test_words_reach_the_host_unharmed(fake_ssh):
    code = "import sys; print(ascii(sys.argv[1:]))"
    (answer, _) = ask(fake_ssh, "n1", "n2", argv=(sys.executable, "-c", code, *WORDS))
    assert answer == Answer("n1", f"{list(WORDS)!a}\n")


def test_silent_hosts_are_reported_and_the_others_answer(fake_ssh):
    found = {a.host: a for a in ask(fake_ssh, "n1", "refuses", "stalls", "n2", argv=("echo", "up"), timeout_s=1)}
    assert found["n1"].output == found["n2"].output == "up\n"
    assert found["refuses"].error == PINNED["user@refuses: Permission denied"]
    assert found["stalls"].error == "does not answer ssh within 4 s"


def test_hosts_are_asked_all_at_once(fake_ssh, tmp_path):
    """So that those that are dead cost their time once: each answers only when all have been asked."""
    (tmp_path / "here").mkdir()
    wait = 'touch "$1/$FAKE_HOST"; while [ "$(ls "$1" | wc -l)" -lt 40 ]; do sleep 0.1; done; echo met'
    names = [f"n{number}" for number in range(40)]
    answers = ask(fake_ssh, *names, argv=("sh", "-c", wait, "sh", str(tmp_path / "here")), timeout_s=60)
    assert [answer.output for answer in answers] == ["met\n"] * 40


def test_no_ssh_at_all(staged, tmp_path):
    staged.variables["PATH"] = str(tmp_path)
    assert {answer.error for answer in ask(staged, "n1", "n2")} == {"there is no ssh on the PATH"}


def test_no_hosts(staged):
    assert everywhere(staged, hosts(), ("true",)) == []


def test_hosts_given_by_name_are_reached_over_ssh(fake_ssh):
    for name in [*fake_ssh.variables]:
        if name.startswith(("SLURM_", "PBS_")):
            del fake_ssh.variables[name]
    allocation = find_hosts(fake_ssh, ["n1", "n2"])
    assert [answer.output for answer in everywhere(fake_ssh, allocation, ("echo", "x"))] == ["x\n", "x\n"]

"""The Tab key: real shells with the completion files that the wheel installs."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from test_startup import CODE, JUDGING, SHOWING, STORING

from fablint.cli import cli
from fablint.cli.options import SUITES

SHARE = Path(__file__).parents[2] / "share"
BASH, ZSH, FISH = (
    SHARE / "bash-completion" / "completions" / "fablint",
    SHARE / "zsh" / "site-functions" / "_fablint",
    SHARE / "fish" / "vendor_completions.d" / "fablint.fish",
)
TAB, ALL, HOME = "\t", "\033*", "\001"  # complete; insert all completions; to the start of the line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two run directories, one of them in a folder of its own, and the output of another tool."""
    folder = tmp_path_factory.mktemp("completion")
    for run in ("night.run", "kept/day.run"):
        (folder / run).mkdir(parents=True)
        (folder / run / "zarr.json").write_text("{}")
    (folder / "osu.out").write_text("")
    return folder


def environment(**settings: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TERM": "dumb", **settings}


@pytest.fixture(scope="module")
def typed_in_bash(folder: Path) -> Mapping[str, str]:
    """What is on the command line of an interactive bash after a text and a key, by both."""
    texts = (
        *(f"fablint {word}{TAB}" for word in ("check --dry", "history tr", "analyse kept/", "analyse osu")),
        *(f"fablint {word}{ALL}" for word in ("", "bench osu_get_", "check --suite ", "analyse ")),
    )
    leader, follower = pty.openpty()
    settings = environment(PS1="$ ", INPUTRC="/dev/null", HISTFILE="", COLUMNS="1000")
    words = ["bash", "--norc", "--noprofile", "-i"]
    bash = subprocess.Popen(words, cwd=folder, stdin=follower, stdout=subprocess.PIPE, stderr=follower, env=settings)
    os.close(follower)
    # Echo prints what was completed instead of running it.
    lines = [f"source {BASH}", *(f"{text}{HOME}echo " for text in texts), "exit"]
    os.write(leader, "".join(f"{line}\n" for line in lines).encode())
    assert bash.stdout is not None
    printed = bash.stdout.read().decode().splitlines()
    bash.wait()
    os.close(leader)
    return dict(zip(texts, printed, strict=True))


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("check --dry", "check --dry-run"),
        ("history tr", "history trend"),
        ("analyse kept/", "analyse kept/day.run"),
        ("analyse osu", "analyse osu.out"),
    ],
)
def test_tab_in_bash_completes(typed_in_bash: Mapping[str, str], text: str, completed: str) -> None:
    assert typed_in_bash[f"fablint {text}{TAB}"] == f"fablint {completed}"


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("", cli.commands),
        ("bench osu_get_", ["osu_get_latency", "osu_get_bw", "osu_get_acc_latency"]),
        ("check --suite ", SUITES),
        ("analyse ", ["night.run"]),
    ],
)
def test_bash_offers_all(typed_in_bash: Mapping[str, str], text: str, completed: Iterable[str]) -> None:
    offered = typed_in_bash[f"fablint {text}{ALL}"].split()
    assert offered == ["fablint", *text.split()[: text.count(" ")], *completed]


def printed_by(words: list[str], folder: Path) -> str:
    settings = environment()
    return subprocess.run(
        words, cwd=folder, env=settings, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    ).stdout


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(folder: Path) -> None:
    code = f"source {FISH}; complete -C 'fablint bench osu_get_la'; complete -C 'fablint analyse n'"
    assert printed_by(["fish", "--no-config", "-c", code], folder).splitlines() == ["osu_get_latency", "night.run"]


# Types a command line in a zsh of its own, as a user does, and prints the line after the Tab key.
ZSH_SESSION = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=({folder} \$fpath); autoload -U compinit; compinit -D -u"
zpty -w shell $'{text}\t\001print -r -- =\005='
zpty -w shell exit
zpty -r -m shell line '*=fablint*='
print -r -- $line
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(folder: Path) -> None:
    code = ZSH_SESSION.format(folder=ZSH.parent, text="fablint bench osu_get_la")
    assert "osu_get_latency" in printed_by(["zsh", "-f", "-c", code], folder)


@pytest.mark.parametrize("words", ["fablint ", "fablint check --", "fablint bench osu_", "fablint analyse "])
def test_completion_imports_little(folder: Path, words: str) -> None:
    position = str(words.count(" "))
    settings = environment(_FABLINT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=position)
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    code, *modules = done.stderr.splitlines()[-1].split()
    packages = {name.partition(".")[0] for name in modules}
    assert code == "0"
    assert done.stdout.startswith("plain,")
    assert packages & (JUDGING | STORING | SHOWING | {"numpy"}) == set()

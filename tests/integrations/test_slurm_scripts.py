"""Slurm's health check, prolog and epilog with a stand-in of scontrol (test_slurm_health.py: with Slurm)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from host_tree import host_with_link_down

FOLDER = Path(__file__).parents[2] / "integrations" / "slurm"
FAULT = "scontrol update NodeName=nid001 State=DRAIN Reason='net.link.up hsn0 link down (fablint)'"
REASON = "net.link.up hsn0 link down (fablint)"
PREFLIGHT_FAULT = "echo '{}'; exit 1"
IDLE, DRAINED = "NodeName=nid001 State=IDLE", "NodeName=nid001 State=IDLE+DRAIN Reason=admin"


@dataclass
class Node:
    """A folder with stand-ins of fablint and scontrol, and the scripts beside them."""

    folder: Path

    def program(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def fablint(self, preflight: str, act: str = "") -> None:
        """Stand-in: a shell text for each of the two verbs."""
        self.program("fablint", f"case $1 in preflight) {preflight} ;; act) {act or ':'} ;; esac")

    def run(self, script: str, state: str = IDLE, scripts: Path = FOLDER, **environ: str) -> int:
        log = self.folder / "calls"
        self.program("scontrol", f'case $1 in show) echo "{state}" ;; *) printf "%s\\n" "$@" >>{log} ;; esac')
        self.program("logger", f'printf "%s\\n" "$3" >>{self.folder / "log"}')
        settings = self.folder / "settings.sh"
        if not settings.exists():
            settings.write_text(
                f"FABLINT={self.folder}/fablint\nFABLINT_HOME={self.folder}/home\nFABLINT_TIME_LIMIT=0.5\n"
            )
        path = {"PATH": f"{self.folder}:/usr/bin:/bin", "SLURMD_NODENAME": "nid001", "FABLINT_SETTINGS": str(settings)}
        done = subprocess.run(
            [scripts / script], env=path | environ, capture_output=True, text=True, timeout=30, check=False
        )
        return done.returncode

    @property
    def drained(self) -> list[str]:
        """Arguments of the calls of scontrol that change something."""
        calls = self.folder / "calls"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_fault_drains_with_its_reason(node: Node) -> None:
    node.fablint(PREFLIGHT_FAULT, f'echo "{FAULT}"')
    assert node.run("healthcheck") == 0
    assert node.drained == ["update", "NodeName=nid001", "State=DRAIN", f"Reason={REASON}"]
    assert (node.run("prolog"), node.run("epilog")) == (1, 1)


@pytest.mark.parametrize("script", ["healthcheck", "prolog", "epilog"])
@pytest.mark.parametrize(
    ("preflight", "act"),
    [
        ("echo '{}'; exit 0", ":"),  # a healthy host
        ("echo '{}'; exit 3", "exit 0"),  # not understood
        ("echo ImportError >&2; exit 1", "echo ImportError >&2; exit 1"),  # a broken Python ends with 1 as a fault does
        ("exit 5", f'echo "{FAULT}"'),  # an internal error, and a result of an earlier call
        ("exit 127", f'echo "{FAULT}"'),
        ("sleep 20", f'echo "{FAULT}"'),
        (PREFLIGHT_FAULT, f'echo "{FAULT}"; exit 6'),  # more hosts than act may drain
        (PREFLIGHT_FAULT, "echo 'rm -rf /'"),
        (PREFLIGHT_FAULT, f'echo "{FAULT.replace("nid001", "nid002")}"'),  # the fault of another host
    ],
)
def test_what_is_no_fault_of_this_host_drains_nothing(node: Node, script: str, preflight: str, act: str) -> None:
    node.fablint(preflight, act)
    begun = time.monotonic()
    assert (node.run(script), node.drained) == (0, [])
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("script", ["healthcheck", "prolog", "epilog"])
def test_what_is_missing_or_broken_drains_nothing(node: Node, script: str) -> None:
    settings = node.folder / "settings.sh"
    settings.write_text("FABLINT=/nowhere/fablint\nFABLINT_HOME=/proc/nowhere\n")
    assert node.run(script) == 0
    settings.write_text("if then fi (((\n")
    assert node.run(script) == 0
    shutil.copy(FOLDER / script, node.folder / "bare")
    assert node.run("bare", scripts=node.folder) == 0, "without common.sh"
    assert node.drained == []


def test_a_reason_is_one_argument_and_never_a_command(node: Node) -> None:
    line = "scontrol update NodeName=nid001 State=DRAIN Reason='x'\\''; touch pwned; echo '\\''y'"
    (node.folder / "line").write_text(line + "\n")
    node.fablint(PREFLIGHT_FAULT, f"cat {node.folder / 'line'}")
    node.run("healthcheck")
    assert node.drained == ["update", "NodeName=nid001", "State=DRAIN", "Reason=preflight (fablint)"]
    assert not list(node.folder.rglob("pwned"))


def test_nodes_that_share_a_home_keep_their_own_results(node: Node) -> None:
    node.fablint("echo '{}'; exit 0")
    node.run("healthcheck")
    node.run("healthcheck", SLURMD_NODENAME="nid002")
    assert {path.name for path in (node.folder / "home").iterdir()} == {
        "last-preflight-nid001.json",
        "last-preflight-nid002.json",
    }


def test_an_administrators_reason_is_kept(node: Node) -> None:
    node.fablint(PREFLIGHT_FAULT, f'echo "{FAULT}"')
    assert (node.run("healthcheck", state=DRAINED), node.drained) == (0, [])


def test_a_prolog_uses_a_recent_result(node: Node) -> None:
    node.fablint(f"echo x >>{node.folder}/examined; echo '{{}}'; exit 0")
    for script in ("healthcheck", "prolog", "prolog"):
        assert node.run(script) == 0
    examined = node.folder / "examined"
    assert len(examined.read_text().split()) == 1
    os.utime(node.folder / "home" / "last-preflight-nid001.json", (1, 1))
    node.run("prolog")
    assert len(examined.read_text().split()) == 2


def test_the_words_of_act_are_understood(node: Node, fablint_in_process) -> None:
    """The line that fablint prints for a fault of a host, with the real `act`."""
    tree = host_with_link_down(node.folder / "tree")
    preflight = fablint_in_process("preflight", "-q", "--json", "--sysroot", tree)
    (node.folder / "preflight.json").write_text(preflight.stdout)
    assert json.loads(preflight.stdout)["exit_code"] == 1
    act = fablint_in_process("act", "-q", node.folder / "preflight.json", "--drain", "--scheduler", "slurm")
    (node.folder / "act.txt").write_text(act.stdout)
    node.fablint(f"cat {node.folder}/preflight.json; exit 1", f"cat {node.folder}/act.txt")
    node.run("healthcheck")
    assert node.drained[:3] == ["update", "NodeName=nid001", "State=DRAIN"]
    assert node.drained[3].startswith("Reason=net.link.up hsn0 ")

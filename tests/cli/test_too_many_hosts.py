"""A slip such as `n[1-99999999999]` is one line and status 2 in every option and file that takes a node set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fablint.cli import _exit_code
from fablint.cli.session import Session
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

SLIP = "n[1-99999999999]"
NOTHING = {"pairs_planned": 0, "pairs_measured": 0, "hosts": 0, "hosts_judged": 0}
VERDICT = {
    "format": 2,
    "verdict": "fault",
    "exit_code": 1,
    "findings": [{"state": "FAULT", "components": [{"kind": "host", "ends": [{"nodes": SLIP}]}]}],
    "coverage": NOTHING,
}
FILES = {
    "hosts": f"n1\n{SLIP}\n",
    "hosts.yaml": f'format: 1\nswitches: {{s0: {{}}}}\nhosts: {{"{SLIP}": s0}}\n',
    "switches.yaml": f'format: 1\nswitches: {{"{SLIP}": {{}}}}\nhosts: {{n1: s1}}\n',
    "verdict.json": json.dumps(VERDICT),
    "job": f"{SLIP}\n",
}
CALLS = {
    "check -w": ["check", "-w", SLIP],
    "check -x": ["check", "-w", "n1,n2", "-x", SLIP],
    "check --hostfile": ["check", "--hostfile", "hosts"],
    "check --submit": ["check", "--submit", "-w", SLIP],
    "preflight -w": ["preflight", "-w", SLIP],
    "preflight -x": ["preflight", "-w", "n1", "-x", SLIP],
    "preflight --hostfile": ["preflight", "--hostfile", "hosts"],
    "preflight --topology": ["preflight", "--topology", "switches.yaml"],
    "discover -w": ["discover", "-w", SLIP],
    "discover -x": ["discover", "-w", "n1", "-x", SLIP],
    "discover --hostfile": ["discover", "--hostfile", "hosts"],
    "discover --from": ["discover", "--from", "hosts.yaml"],
    "plan --hosts": ["plan", "--hosts", SLIP],
    "plan --topology": ["plan", "--topology", "switches.yaml"],
    "bench --hosts": ["bench", "osu_latency", "--hosts", SLIP],
    "bench --servers": ["bench", "netsan_put", "--servers", SLIP, "--clients", "n1"],
    "import --hosts": ["import", "hosts", "--hosts", SLIP, "-o", "y.run"],
    "act": ["act", "verdict.json"],
    "act --drain": ["act", "verdict.json", "--drain"],
}
JOBS = {
    "Slurm": {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": SLIP},
    "PBS": {"PBS_JOBID": "7", "PBS_NODEFILE": "job"},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files, outside of any job."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for name in ("SLURM_JOB_ID", "PBS_NODEFILE"):
        monkeypatch.delenv(name, raising=False)


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert _exit_code(Session(), argv) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    (line,) = seen.err.splitlines()
    return line


@pytest.mark.parametrize("call", CALLS)
def test_in_options_and_files(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"'{SLIP}' stands for more than 250,000 names" in refused(CALLS[call], capsys)


@pytest.mark.parametrize("job", JOBS)
def test_of_a_job(job: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in JOBS[job].items():
        monkeypatch.setenv(name, value)
    assert f"'{SLIP}' stands for more than 250,000 names" in refused(["check"], capsys)


def test_a_switch_that_was_not_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f'format: 1\nswitches: {{s0: {{}}}}\nhosts: {{n1: s0}}\nlinks:\n- ["{SLIP}", s0]\n'
    (tmp_path / "links.yaml").write_text(text)
    said = refused(["plan", "--topology", "links.yaml"], capsys)
    assert PINNED["links 0 unknown switch slip"].filled(slip=SLIP).ends(said)

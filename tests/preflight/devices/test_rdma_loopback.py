"""Soft-RoCE in a virtual machine, on the rdmavm test bed: the collector measures a real device."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from preflight_help import of

from fablint.model import Answer
from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.host import tools
from fablint.preflight.host import Host
from fablint.snapshot import command_to_collect, read_answers

RDMAVM = Path(__file__).parents[4] / "shared" / "rdmavm" / "rdmavm"
CANNOT_RUN = 77


@pytest.fixture(scope="module")
def rdmavm() -> Path:
    """The test bed with its image, which is made once on a machine: a minute."""
    if not RDMAVM.exists():
        pytest.skip("the rdmavm test bed is not beside the checkout")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("not installed: qemu-system-x86_64")
    try:
        made = subprocess.run([RDMAVM, "build"], capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("rdmavm makes no image within 4 minutes: the mirror is slow")
    if made.returncode:
        pytest.skip(f"rdmavm makes no image: {made.stderr.strip()[-200:]}")
    return RDMAVM


def test_a_soft_roce_device_writes_to_itself(rdmavm: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(command_to_collect("full")[1])
    words = ["bash", "-c", f"cd {tmp_path} && python3 program.py full 0.1 60 && ps ax -o comm >after"]
    done = subprocess.run(
        [rdmavm, "run", "-s", str(tmp_path), "--", *words], capture_output=True, text=True, timeout=300
    )
    if done.returncode == CANNOT_RUN:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    snapshot = read_answers([Answer("node0", done.stdout)]).snapshots["node0"]
    said = snapshot.command("ib_write_bw/rxe0")
    assert said.status == 0, (said, done.stderr)
    assert re.search(r"GID index\s*: 1\b", said.text)
    (result,) = [one for one in of(tools.IbLoopbackRate, Host(snapshot)) if one.target == "rxe0"]
    assert result.outcome is Outcome.SKIP
    assert result.message.endswith("Gb/s, no speed or similar NIC to compare with")
    after = (tmp_path / "after").read_text()
    assert "bash" in after
    assert "ib_write_bw" not in after

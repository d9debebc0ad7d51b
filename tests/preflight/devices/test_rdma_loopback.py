"""Soft-RoCE in a virtual machine, on the rdmavm test bed: the collector measures a real device."""

from __future__ import annotations

import re
from pathlib import Path

from preflight_help import of

from fablint.model import Answer
from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.host import tools
from fablint.preflight.host import Host
from fablint.snapshot import command_to_collect, read_answers
from rdmavm import RunInVm


def test_a_soft_roce_device_writes_to_itself(rdmavm: RunInVm, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(command_to_collect("full")[1])
    done = rdmavm(tmp_path, "bash", "-c", f"cd {tmp_path} && python3 program.py full 0.1 60 && ps ax -o comm >after")
    snapshot = read_answers([Answer("node0", done.stdout)]).snapshots["node0"]
    said = snapshot.command("ib_write_bw/rxe0")
    assert said.status == 0, (said, done.stderr)
    assert re.search(r"GID index\s*: 1\b", said.text)
    (result,) = [one for one in of(tools.IB_LOOPBACK_RATE, Host(snapshot)) if one.target == "rxe0"]
    assert result.outcome is Outcome.SKIP
    assert result.message.endswith("Gb/s, no speed or similar NIC to compare with")
    after = (tmp_path / "after").read_text()
    assert "bash" in after
    assert "ib_write_bw" not in after

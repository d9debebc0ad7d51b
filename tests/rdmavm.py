"""The rdmavm test bed: a virtual machine with Soft-RoCE devices."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

RunInVm = Callable[..., subprocess.CompletedProcess[str]]

_RDMAVM = Path(__file__).parents[2] / "shared" / "rdmavm" / "rdmavm"
_CANNOT_RUN = 77


def start_rdmavm() -> RunInVm:
    """Return what runs a command on node0 with a shared folder. The image is made once on a machine: a minute."""
    if not _RDMAVM.exists():
        pytest.skip("the rdmavm test bed is not beside the checkout")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("not installed: qemu-system-x86_64")
    try:
        made = subprocess.run([_RDMAVM, "build"], capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("rdmavm makes no image within 4 minutes: the mirror is slow")
    if made.returncode:
        pytest.skip(f"rdmavm makes no image: {made.stderr.strip()[-200:]}")

    def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [_RDMAVM, "run", "-s", str(folder), "--", *words], capture_output=True, text=True, timeout=540
        )
        if done.returncode == _CANNOT_RUN:
            pytest.skip(done.stderr.strip().splitlines()[-1])
        return done

    return run

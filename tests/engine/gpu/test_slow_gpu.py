"""A GPU whose copies from its host are slow is named.

The driver is the fake of engine/tests/fakes, which takes a time for each copy, and four times that for its slow GPU.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from real_mpi import Mpi

from fablint.analyse import diagnose
from fablint.model import State
from fablint.store import read_run
from fact_cases import attributes_of, with_facts
from finding_cases import note_texts
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

RANKS = 8
SLOW = 3


@pytest.mark.parametrize("copy", ["to-device", "to-host", "within-device"])
def test_a_gpu_with_slow_copies_is_named(
    mpi: Mpi, fake_gpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: str
) -> None:
    for name, value in (("DEVICES", RANKS), ("RATE", 2_500_000), ("SLOW", SLOW)):
        monkeypatch.setenv(f"FAKE_GPU_{name}", str(value))
    row = f"gpu_loopback --memory cuda --copy {copy} --sizes 128K --window 1 --samples 3 --warmup 1 --repeats 3"
    ended = mpi.run(RANKS, *row.split(), "-q", "-o", tmp_path / "a.run")
    assert ended.status == 0, ended.errors
    run = read_run(tmp_path / "a.run")
    for oversubscribed, state in ((True, State.CONFOUNDED), (False, State.FAULT)):
        # Hosts with GPUs have a CPU for each rank, as this machine may not.
        instrument = {**attributes_of(run)["instrument"], "oversubscribed": oversubscribed}
        verdict = diagnose(with_facts(run, instrument=instrument)).verdict
        gpu = next(finding for finding in verdict.findings if finding.component == "gpu")
        assert (gpu.state, gpu.components[0].text) == (state, f"gpu {run.hosts[0]}/0000:{0x1A + 16 * SLOW:02x}:00.0")
        assert [evidence.kind for evidence in gpu.evidence] == ["gpu_copies"]
        assert PINNED["GPUs compared with each other"].filled(ranks=RANKS) in note_texts(verdict)
        assert verdict.verdict == ("incomplete" if oversubscribed else "fault")

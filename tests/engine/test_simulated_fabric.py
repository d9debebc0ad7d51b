"""The real engine on simulated fabrics with known faults: SimGrid's SMPI and the simfabric test bed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fablint.measure.engine import find_sources, translation_units
from fablint.store import missing_rounds, read_run

BED = Path(__file__).parents[3] / "shared" / "simfabric"

pytestmark = [
    pytest.mark.skipif(not (BED / "simfabric").exists(), reason="the simfabric test bed is not beside the checkout"),
    pytest.mark.skipif(shutil.which("smpicxx") is None, reason="no smpicxx: SimGrid is not installed"),
]


@pytest.fixture(scope="session")
def smpi_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine as SMPI runs it: a shared object that simfabric loads once per rank."""
    folder = tmp_path_factory.mktemp("smpi")
    sources = find_sources()
    objects = []
    compilers = []
    for number, unit in enumerate(translation_units(sources)):
        objects.append(folder / f"{number}.o")
        argv = ["smpicxx", "-std=c++17", "-O1", "-fPIC", f"-I{sources}", "-c", str(unit), "-o", str(objects[-1])]
        compilers.append(subprocess.Popen(argv))
        if len(compilers) % 2 == 0:  # as many at a time as CI has cores
            assert all(compiler.wait() == 0 for compiler in compilers)
    assert all(compiler.wait() == 0 for compiler in compilers)
    engine = folder / "fablint-engine"
    subprocess.run(["smpicxx", *map(str, objects), "-o", str(engine)], check=True)
    return engine


def simulate(folder: Path, engine: Path, fabric: list[str], arguments: list[str]) -> dict[str, object]:
    """Make a fabric, run the engine on it, return the bed's truth."""
    bed = [sys.executable, str(BED / "simfabric.py")]
    environ = {"SIMFABRIC_CACHE": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    subprocess.run([*bed, "make", *fabric, "-o", "net.so"], cwd=folder, env=environ, check=True, capture_output=True)
    argv = [*bed, "run", "--platform", "net.so", "--", str(engine), *arguments]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "net.truth.json").read_text())


def pairs_of_faults(truth: dict[str, object]) -> set[tuple[int, int]]:
    sys.path.insert(0, str(BED))
    try:
        import simfabric
    finally:
        sys.path.remove(str(BED))
    touched = set().union(*(simfabric.pairs_of(fault) for fault in truth["faults"]))
    return {(src, dst) for src, dst in touched if src != dst}


def test_the_slow_pairs_of_64_hosts_are_exactly_those_of_the_truth(smpi_engine: Path, tmp_path: Path) -> None:
    fabric = ["--topology", "twolevel", "--hosts", "64", "--param", "leaf=8", "--param", "spines=4"]
    # One direction of one NIC: the engine must see the row and not the column.
    line = ["bandwidth", "--pattern", "all-pairs", "--order", "serial", "--sizes", "64K", "--window", "2"]
    truth = simulate(
        tmp_path,
        smpi_engine,
        [*fabric, "--fault", "bw:h0012.tx:0.5"],
        [*line, "--samples", "3", "--warmup", "1", "-q", "-o", "a.run"],
    )
    run = read_run(tmp_path / "a.run")
    assert missing_rounds(run.rows[0]) == []
    assert list(run.hosts) == [host["name"] for host in truth["hosts"]]
    time = run.rows[0].observations(65536).sent
    # Healthy pairs differ by a few hops of latency, a few per cent; the fault halves the rate.
    slow = {(int(src), int(dst)) for src, dst in zip(*np.nonzero(time > 1.3 * np.nanmedian(time)), strict=True)}
    assert slow == pairs_of_faults(truth)
    assert len(slow) == 63


def test_more_ranks_than_chunks_share_chunks_through_their_owner(smpi_engine: Path, tmp_path: Path) -> None:
    """1,100 ranks: two rows per chunk, which one of the two ranks writes for both."""
    line = ["latency", "--pattern", "random", "--matchings", "3", "--sizes", "8", "--samples", "3", "--warmup", "0"]
    simulate(tmp_path, smpi_engine, ["--topology", "singleswitch", "--hosts", "1100"], [*line, "-q", "-o", "a.run"])
    row = read_run(tmp_path / "a.run").rows[0]
    assert len(list((tmp_path / "a.run" / "latency" / "count").glob("c.*"))) == 550
    assert missing_rounds(row) == []
    assert (row.arrays["count"][:] == 3).all()
    partners = row.arrays["dst"][:]
    ranks = np.arange(1100)
    for column in range(3):
        assert (partners[partners[:, column], column] == ranks).all()

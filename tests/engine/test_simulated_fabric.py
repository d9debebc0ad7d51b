"""The real engine on simulated fabrics with known faults: SimGrid's SMPI and the simfabric test bed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from simgrid_bed import NEEDS_SIMGRID, Truth, make_fabric, run_engine, simfabric

from fablint.store import missing_rounds, read_run

pytestmark = NEEDS_SIMGRID


def pairs_of_faults(truth: Truth) -> set[tuple[int, int]]:
    touched = set().union(*(simfabric().pairs_of(fault) for fault in truth["faults"]))
    return {(src, dst) for src, dst in touched if src != dst}


def test_the_slow_pairs_of_64_hosts_are_exactly_those_of_the_truth(smpi_engine: Path, tmp_path: Path) -> None:
    fabric = ["--topology", "twolevel", "--hosts", "64", "--param", "leaf=8", "--param", "spines=4"]
    # One direction of one NIC: the engine must see the row and not the column.
    line = ["bandwidth", "--pattern", "all-pairs", "--order", "serial", "--sizes", "64K", "--window", "2"]
    truth = make_fabric(tmp_path, [*fabric, "--fault", "bw:h0012.tx:0.5"])
    run_engine(tmp_path, smpi_engine, [*line, "--samples", "3", "--warmup", "1", "-q", "-o", "a.run"])
    run = read_run(tmp_path / "a.run")
    assert missing_rounds(run.rows[0]) == []
    assert list(run.hosts) == [host["name"] for host in truth["hosts"]]
    time = run.rows[0].observations(65536).sent
    # Healthy pairs differ by a few hops of latency, a few per cent; the fault halves the rate.
    slow = {(int(src), int(dst)) for src, dst in zip(*np.nonzero(time > 1.3 * np.nanmedian(time)), strict=True)}
    assert slow == pairs_of_faults(truth)
    assert len(slow) == 63


def test_where_chunks_would_be_too_many_ranks_share_them_through_their_owner(smpi_engine: Path, tmp_path: Path) -> None:
    """32 ranks, 32 times: two rows per chunk, which one of the two ranks writes for both."""
    make_fabric(tmp_path, ["--topology", "singleswitch", "--hosts", "32"])
    line = ["latency", "--pattern", "all-pairs", "--repeats", "32", "--sizes", "8", "--samples", "3", "--warmup", "0"]
    run_engine(tmp_path, smpi_engine, [*line, "-q", "-o", "a.run"])
    row = read_run(tmp_path / "a.run").rows[0]
    assert len(list((tmp_path / "a.run" / "latency" / "count").glob("c.*"))) == 32 * 16
    assert missing_rounds(row) == []
    counts = row.arrays["count"][:]
    assert counts.shape == (32, 32, 32, 1)
    assert (counts[..., 0] == 3 * ~np.eye(32, dtype=bool)).all()


def test_ranks_beyond_a_thousand_share_the_chunks_of_a_list(smpi_engine: Path, tmp_path: Path) -> None:
    """1,100 ranks: two rows per chunk, which one of the two ranks writes for both."""
    make_fabric(tmp_path, ["--topology", "singleswitch", "--hosts", "1100"])
    line = ["latency", "--pattern", "random", "--matchings", "3", "--sizes", "8", "--samples", "3", "--warmup", "0"]
    run_engine(tmp_path, smpi_engine, [*line, "-q", "-o", "a.run"])
    row = read_run(tmp_path / "a.run").rows[0]
    assert len(list((tmp_path / "a.run" / "latency" / "count").glob("c.*"))) == 550
    assert missing_rounds(row) == []
    assert (row.arrays["count"][:] == 3).all()
    partners = row.arrays["dst"][:]
    ranks = np.arange(1100)
    for column in range(3):
        assert (partners[partners[:, column], column] == ranks).all()

"""`fablint show`: what the run holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report_cases import bench_run, healthy_case, incomplete_case

from fablint.report import run_summary
from fablint.report.summary import head_facts, row_summary, start_skew
from fablint.store import read_run, write_run
from fablint.text import units
from fact_cases import with_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)


def test_state_hosts_cells_and_instrument():
    summary = run_summary(healthy_case()[0])
    for words in (
        "state       complete",
        "64: h[00-63]",
        "4,032 of 4,032 (100 %)",
        "resolution 1.00 ns",
        "latency --pattern",
    ):
        assert words in summary


def test_an_interrupted_run_says_how_far_it_got_and_which_ranks_failed():
    summary = run_summary(incomplete_case()[0])
    assert "2,542 of 4,032" in summary
    assert PINNED["rank 5 (h05), round 20, partner"] in summary


def test_start_skew_is_the_spread_of_the_pairs_of_a_round():
    run, _ = healthy_case()
    row = run.rows[0]
    assert start_skew(row) == pytest.approx(0.0, abs=1e-12)  # the simulator starts all at once
    started = row.arrays["started"].copy()
    started[0, 3, :] += 5e-6  # rank 3 leads late; the other direction of the pair is not moved
    started[0, :, 3] += 5e-6
    late = replace(row, arrays={**row.arrays, "started": started})
    assert start_skew(late) == pytest.approx(5e-6)
    assert start_skew(replace(late, facts=with_facts(row, order="serial").facts)) is None


def test_start_skew_of_a_list_takes_the_first_direction_of_each_pair():
    row = bench_run("latency", samples=np.full(10, 1e-6), ranks=4).rows[0]
    started = np.array([[0.0], [0.5], [0.002], [0.7]])  # pairs 0-1 and 2-3: they start at 0 and at 0.002
    assert start_skew(replace(row, arrays={**row.arrays, "started": started})) == pytest.approx(0.002)


def test_all_but_one_cell_are_not_100_percent():
    row = healthy_case()[0].rows[0]
    counts = row.arrays["count"].copy()
    counts[0, 1, 2, 0] = 0
    cells = row_summary(replace(row, arrays={**row.arrays, "count": counts})).measurements
    assert cells == "4,031 of 4,032 (99.9 %)"


def test_cells_of_a_damaged_chunk_are_not_measured_and_a_note_says_so(tmp_path):
    row = healthy_case()[0].rows[0]
    path = tmp_path / "damaged.run"
    write_run(path, replace(healthy_case()[0], rows=(row,)))
    chunk = path / row.name / f"time_{row.statistic}" / "c.0.3.0.0"
    chunk.write_bytes(chunk.read_bytes()[:20])
    summary = run_summary(read_run(path))
    assert "3,969 of 4,032 (98 %)" in summary
    assert PINNED["its cells are treated"].ends(summary)


def test_schedule_overhead():
    row = healthy_case()[0].rows[0]
    row = with_facts(row, measuring_s=10.0, wall_s=10.5)
    assert row_summary(row).overhead == pytest.approx(0.05)
    assert "schedule overhead 5 %" in row_summary(row).timing


def test_devices_that_a_transport_has_chosen():
    row = healthy_case()[0].rows[0]
    assert row_summary(row).devices == ""
    chosen = {"transport": "ucx", "devices": {"tcp/eth0": "0-3,7", "cma/memory": "4-6"}}
    row = with_facts(row, **chosen)
    assert row_summary(row).devices == PINNED["over ucx: tcp/eth0 (ranks"]
    row = with_facts(row, transport="tcp", devices={"ipv6/hsn0": "0-7"})
    assert row_summary(row).devices == "over tcp: ipv6/hsn0"


def test_the_head_has_date_with_zone_duration_job_user_partition_and_versions():
    run = healthy_case()[0]
    rows = tuple(with_facts(row, wall_s=1.5) for row in run.rows)
    environment = {"SLURM_JOB_ID": "4815", "SLURM_JOB_USER": "alice", "SLURM_JOB_PARTITION": "batch"}
    mpi = {"library": "Open MPI v4.1.4, package: Debian", "standard": "3.1", "thread_level": "single"}
    facts = {"creator": "fablint-engine 0.2.0", "started": "2026-11-29T09:38:44Z", "mpi": mpi}
    run = with_facts(replace(run, rows=rows), simulated=None, environment=environment, **facts)
    assert head_facts(run) == [
        "2026-11-29 09:38:44 UTC",
        f"measured for {units.duration(1.5 * len(rows))}",
        "job 4815, user alice, partition batch",
        "fablint-engine 0.2.0",
        "Open MPI v4.1.4",
    ]
    pbs = with_facts(run, environment={"PBS_JOBID": "7.head", "PBS_QUEUE": "workq"})
    assert "job 7.head, queue workq" in head_facts(pbs)
    assert not any("job" in words for words in head_facts(with_facts(run, environment={})))
    simulated = healthy_case()[0]
    assert head_facts(simulated) == [simulated.facts.launch.creator]

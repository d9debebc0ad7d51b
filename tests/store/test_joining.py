"""Runs of several allocations as one: arrays, ranks, facts, and what cannot be joined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.model.facts.failed_rank import FailedRank
from fablint.model.facts.run_attributes import LaunchFacts, Mpi, PortCounters
from fablint.store import join_runs, read_run, write_run
from fact_cases import row_facts, run_facts

FIELDS = {
    "options": "latency --pattern rounds",
    "pattern": "rounds",
    "order": "parallel",
    "layout": "list",
    "directions": "both",
    "repeats": 1,
    "state": "complete",
}


def listed(name: str, partner: np.ndarray, first: float, size: int = 8) -> Row:
    """A row of rounds in which the cell of rank i in column c takes `first` + i + c / 10 s."""
    ranks, rounds = partner.shape
    times = (first + np.arange(ranks)[:, None] + np.arange(rounds)[None, :] / 10).astype(np.float32)
    times[partner < 0] = np.nan
    facts = row_facts(
        {"kernel": "latency", "rounds": rounds, "cells_per_round": (partner >= 0).sum(axis=0).tolist(), **FIELDS}
    )
    arrays = {
        "time_median": times[:, :, None],
        "count": (partner >= 0).astype(np.uint32)[:, :, None],
        "dst": partner.astype(np.int32),
        "started": np.where(partner >= 0, times.astype(np.float64), np.nan),
        "size": np.array([size], dtype=np.int64),
    }
    return Row(name, facts, arrays)


def run_of(hosts: list[str], rank_host: list[int], *rows: Row, epoch: float = 0.0, **more: object) -> Run:
    launch = LaunchFacts(started=f"t{epoch:g}", started_epoch_s=epoch, mpi=Mpi("one MPI"))
    facts = run_facts(
        {
            "format": 1,
            "state": "complete",
            "ranks": len(rank_host),
            "hosts": hosts,
            "rank_host": rank_host,
            "rows": [row.name for row in rows],
        }
    )
    return Run(None, replace(facts, launch=launch, **more), rows)  # type: ignore[arg-type]


PAIR = np.array([[1, -1], [0, 2], [-1, 1]])


def two(**more: object) -> list[Run]:
    first = run_of(["a", "b", "c"], [0, 1, 2], listed("latency", PAIR, 1), epoch=20.0)
    second = run_of(["c", "d"], [0, 1], listed("latency", np.array([[1], [0]]), 100), epoch=10.0, **more)
    return [first, second]


def test_equal_hosts_are_the_same_ranks_and_rounds_follow_each_other() -> None:
    run = join_runs(two())
    assert (run.hosts, run.facts.rank_host, run.state) == (["a", "b", "c", "d"], [0, 1, 2, 3], "complete")
    assert run.facts.launch.started == "t10"  # of the run that began first
    assert run.facts.launch.allocations == [["a", "b", "c"], ["c", "d"]]
    (row,) = run.rows
    assert row.facts.schedule.rounds == 3
    assert row.facts.schedule.planned_cells == [2, 2, 2]
    assert row.arrays["allocation"].tolist() == [0, 0, 1]
    observed = row.observations(8)
    assert observed.partner.tolist() == [[1, -1, -1], [0, 2, -1], [-1, 1, 3], [-1, -1, 2]]
    nan = np.nan
    np.testing.assert_allclose(
        observed.sent, [[1, nan, nan], [2, 2.1, nan], [nan, 3.1, 100], [nan, nan, 101]], rtol=1e-6
    )


@pytest.mark.parametrize(
    "key", [..., 2, slice(1, 3), (slice(None), 1), (slice(2, 4), slice(0, 2), 0), (..., 0), [3, 0]]
)
def test_a_slice_of_a_joined_array_is_that_of_the_whole(key: object) -> None:
    array = join_runs(two()).rows[0].arrays["time_median"]
    np.testing.assert_array_equal(array[key], np.asarray(array)[key])


def test_the_kth_rank_of_a_host_is_the_same_rank() -> None:
    first = run_of(["a", "b"], [0, 0, 1, 1], listed("latency", np.array([[2], [3], [0], [1]]), 1))
    second = run_of(["b", "c"], [0, 1, 0, 1], listed("latency", np.array([[1], [0], [3], [2]]), 1))
    run = join_runs([first, second])
    assert [run.rank_host[rank] for rank in range(run.ranks)] == ["a", "a", "b", "b", "c", "c"]
    assert run.rows[0].observations(8).partner[:, 1].tolist() == [-1, -1, 4, 5, 2, 3]


def test_a_joined_run_is_written_and_read(tmp_path: Path) -> None:
    joined = join_runs(two())
    write_run(tmp_path / "joined.run", joined)
    read = read_run(tmp_path / "joined.run").rows[0]
    for name, array in joined.rows[0].arrays.items():
        np.testing.assert_array_equal(read.arrays[name][:], np.asarray(array[:]))


def test_failed_ranks_counters_and_states_are_those_of_all() -> None:
    lost = [FailedRank(1, "d", 0, 0, "failed (timeout)")]
    counted = [PortCounters({"c": {"n": {"x": start}}}, {"c": {"n": {"x": start + 5}}}) for start in (10, 100)]
    first, second = two(lost=lost, state="interrupted", counters=counted[1])
    run = join_runs([replace(first, facts=replace(first.facts, counters=counted[0])), second])
    assert [(entry.rank, entry.partner) for entry in run.facts.lost] == [(3, 2)]
    assert run.state == "interrupted"
    assert run.facts.counters == PortCounters({"c": {"n": {"x": 10}}}, {"c": {"n": {"x": 20}}})


def test_other_sizes_programs_and_matrices_are_refused() -> None:
    first, second = two()
    other_size = replace(second, rows=(listed("latency", np.array([[1], [0]]), 1, size=16),))
    with pytest.raises(UsageError, match="has no row like latency"):
        join_runs([first, other_size])
    other_mpi = replace(second.facts.launch, mpi=Mpi("another MPI"))
    with pytest.raises(UsageError, match="measured with another MPI"):
        join_runs([first, replace(second, facts=replace(second.facts, launch=other_mpi))])
    row = second.rows[0]
    schedule = replace(row.facts.schedule, layout="matrix")
    with pytest.raises(UsageError, match="is a matrix of all pairs"):
        join_runs([first, replace(second, rows=(replace(row, facts=replace(row.facts, schedule=schedule)),))])


def test_notes_grow_while_arrays_are_read() -> None:
    first, second = two()
    notes: list[str] = []
    run = join_runs([replace(first, notes=notes), second])
    notes.append("a chunk is damaged")
    assert list(run.notes) == ["a chunk is damaged"]
    assert run.notes[0] == "a chunk is damaged"

"""Cells of a launch with fewer hosts become part of the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import list_row, matrix_row, run_of

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.store import absorb, missing_rounds, read_run, write_run
from fact_cases import attributes_of, row_facts, run_facts, with_facts

KEPT = [0, 1, 4, 5]  # ranks of nid000 and nid002: nid001 was lost
LATER_S = 7.5


def part_of(whole: Run, kept: list[int], rounds: list[int]) -> Run:
    """What a launch on the hosts of the ranks `kept` measures of these rounds, with ranks of its own."""
    number = np.full(whole.ranks, -1)
    number[kept] = range(len(kept))
    hosts = [whole.rank_host[rank] for rank in kept]
    names = list(dict.fromkeys(hosts))
    rows = []
    for row in whole.rows:
        dst = np.where(row.arrays["dst"] < 0, -1, number[row.arrays["dst"]])[kept].astype(np.int32)
        dst[:, [index for index in range(dst.shape[1]) if index not in rounds]] = -1
        rows.append(Row(row.name, row.facts, {**only(row, kept, dst >= 0), "dst": dst}))
    attributes = {
        **attributes_of(whole),
        "ranks": len(kept),
        "hosts": names,
        "rank_host": [names.index(host) for host in hosts],
        "started_epoch_s": whole.facts.launch.started_epoch_s + LATER_S,
    }
    return Run(None, run_facts(attributes), tuple(rows))


def only(row: Row, ranks: list[int], measured: np.ndarray) -> dict[str, Any]:
    """The arrays of a list row restricted to these ranks and cells."""
    arrays = {"size": row.arrays["size"]}
    for name in ("started", "count", *(name for name in row.arrays if name.startswith("time_"))):
        values = row.arrays[name][ranks].copy()
        values[~measured] = 0 if name == "count" else np.nan
        arrays[name] = values
    return arrays


def emptied(whole: Run, rounds: list[int]) -> Run:
    """The run as it was when a host was lost: without the cells of these rounds."""
    rows = []
    for row in whole.rows:
        measured = np.ones(row.arrays["dst"].shape, dtype=bool)
        measured[:, rounds] = False
        dst = np.where(measured, row.arrays["dst"], -1)
        attributes = {**attributes_of(row), "state": "interrupted"}
        rows.append(
            Row(
                row.name,
                row_facts(attributes),
                {**only(row, list(range(whole.ranks)), measured & (dst >= 0)), "dst": dst},
            )
        )
    return replace(with_facts(whole, state="interrupted"), rows=tuple(rows))


def within(row: Row, kept: list[int]) -> np.ndarray:
    """(src, round): both ends are of `kept`."""
    dst = np.asarray(row.arrays["dst"][:])
    inside = np.isin(dst, kept)
    inside[[rank for rank in range(len(dst)) if rank not in kept]] = False
    return inside


def test_the_cells_of_the_remaining_hosts_fill_the_rounds_that_were_missing(tmp_path: Path) -> None:
    whole = run_of(list_row(rounds=5))
    write_run(tmp_path / "a.run", emptied(whole, [3, 4]))
    write_run(tmp_path / "b.run", part_of(whole, KEPT, [3, 4]))
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    row, truth = read_run(tmp_path / "a.run").rows[0], whole.rows[0]
    there = within(truth, KEPT)
    there[:, :3] = np.asarray(truth.arrays["dst"][:, :3]) >= 0
    np.testing.assert_array_equal(np.asarray(row.arrays["dst"][:]), np.where(there, truth.arrays["dst"], -1))
    for name in ("time_median", "count"):
        fill = 0 if name == "count" else np.nan
        expected = np.where(there[..., None], truth.arrays[name], fill)
        np.testing.assert_array_equal(np.asarray(row.arrays[name][:]), expected)
    assert not (tmp_path / "b.run").exists()
    assert row.facts.state == "complete"


def test_instants_count_from_the_beginning_of_the_run(tmp_path: Path) -> None:
    whole = run_of(list_row(rounds=2))
    write_run(tmp_path / "a.run", emptied(whole, [1]))
    write_run(tmp_path / "b.run", part_of(whole, KEPT, [1]))
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    row, truth = read_run(tmp_path / "a.run").rows[0], whole.rows[0]
    late = within(truth, KEPT)[:, 1]
    np.testing.assert_allclose(row.arrays["started"][:, 1][late], truth.arrays["started"][:, 1][late] + LATER_S)


def test_a_part_does_not_begin_before_the_run(tmp_path: Path) -> None:
    """Another host began the part, and its clock is an hour behind."""
    whole = run_of(list_row(rounds=2))
    part = part_of(whole, KEPT, [1])
    write_run(tmp_path / "a.run", emptied(whole, [1]))
    earlier = {**attributes_of(part), "started_epoch_s": whole.facts.launch.started_epoch_s - 3600}
    write_run(tmp_path / "b.run", replace(part, facts=run_facts(earlier)))
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    row, truth = read_run(tmp_path / "a.run").rows[0], whole.rows[0]
    late = within(truth, KEPT)[:, 1]
    np.testing.assert_allclose(row.arrays["started"][:, 1][late], truth.arrays["started"][:, 1][late])


def test_the_rounds_of_the_lost_host_stay_missing(tmp_path: Path) -> None:
    whole = run_of(list_row(rounds=5))
    write_run(tmp_path / "a.run", emptied(whole, [2, 3, 4]))
    write_run(tmp_path / "b.run", part_of(whole, KEPT, [2, 3, 4]))
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    row = read_run(tmp_path / "a.run").rows[0]
    truth = np.asarray(whole.rows[0].arrays["dst"])
    lost = [index for index in (2, 3, 4) if (within(whole.rows[0], KEPT)[:, index] != (truth[:, index] >= 0)).any()]
    assert missing_rounds(row) == lost


def test_rows_that_only_the_part_has_are_added_with_their_plan_lines(tmp_path: Path) -> None:
    first, second = list_row("edge", seed=1), list_row("local", seed=2)
    whole = run_of(first, second)
    before = run_of(first)
    before = with_facts(before, plan=["latency --name edge"])
    part = part_of(whole, KEPT, [0, 1, 2])
    part = replace(with_facts(part, plan=["?", "latency --name local"]), rows=part.rows[1:])
    part = with_facts(part, rows=["local"], plan=["latency --name local"])
    write_run(tmp_path / "a.run", before)
    write_run(tmp_path / "b.run", part)
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    run = read_run(tmp_path / "a.run")
    assert [row.name for row in run.rows] == ["edge", "local"]
    assert run.facts.plan == ["latency --name edge", "latency --name local"]
    assert np.isnan(run.row("local").arrays["time_median"][2:4]).all()


def test_killed_between_it_can_be_done_again(tmp_path: Path) -> None:
    whole = run_of(list_row(rounds=3))
    write_run(tmp_path / "a.run", emptied(whole, [2]))
    for name in ("b.run", "again.run"):
        write_run(tmp_path / name, part_of(whole, KEPT, [2]))
        absorb(tmp_path / "a.run", tmp_path / name)
    row = read_run(tmp_path / "a.run").rows[0]
    there = within(whole.rows[0], KEPT)[:, 2]
    assert (row.arrays["count"][:, 2][there] == 100).all()


def test_a_host_of_another_run_is_refused(tmp_path: Path) -> None:
    whole = run_of(list_row())
    part = part_of(whole, KEPT, [0])
    write_run(tmp_path / "a.run", whole)
    write_run(tmp_path / "b.run", with_facts(part, hosts=["nid000", "other"]))
    with pytest.raises(UsageError, match="other"):
        absorb(tmp_path / "a.run", tmp_path / "b.run")
    assert (tmp_path / "b.run").exists()


@pytest.mark.parametrize(
    "rows", [(list_row("pairs", rounds=4),), (matrix_row("pairs"),)], ids=["other rounds", "a matrix"]
)
def test_another_row_of_the_same_name_is_refused(tmp_path: Path, rows: tuple[Row, ...]) -> None:
    write_run(tmp_path / "a.run", run_of(list_row("pairs", rounds=3)))
    write_run(tmp_path / "b.run", run_of(*rows))
    with pytest.raises(UsageError, match="row pairs"):
        absorb(tmp_path / "a.run", tmp_path / "b.run")


def test_segments_of_both_launches_are_added(tmp_path: Path) -> None:
    """Ends are numbered by each launch for itself."""
    whole = run_of(list_row(rounds=5))
    before = {
        "ends": ["nid000/hsn0", "nid001/hsn0"], "sent": [10, 20], "received": [19, 10], "pairs": [[1, 0, 20, 3, 1]],
        "left_out": 1, "knows_spurious": True,
    }  # fmt: skip
    after = {
        "ends": ["nid000/hsn0", "nid002/hsn0"], "sent": [5, 7], "received": [6, 5], "pairs": [[1, 0, 7, 2, 0]],
        "left_out": 0, "knows_spurious": False,
    }  # fmt: skip
    write_run(tmp_path / "a.run", with_attributes(emptied(whole, [3, 4]), tcp=before))
    write_run(tmp_path / "b.run", with_attributes(part_of(whole, KEPT, [3, 4]), tcp=after))
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    assert attributes_of(read_run(tmp_path / "a.run").rows[0])["tcp"] == {
        "ends": ["nid000/hsn0", "nid001/hsn0", "nid002/hsn0"], "sent": [15, 20, 7], "received": [25, 10, 5],
        "pairs": [[1, 0, 20, 3, 1], [2, 0, 7, 2, 0]], "left_out": 1, "knows_spurious": False,
    }  # fmt: skip


def test_segments_of_one_launch_stay(tmp_path: Path) -> None:
    whole = run_of(list_row(rounds=5))
    tcp = {"ends": ["nid000/hsn0"], "sent": [1], "received": [1], "pairs": [], "left_out": 0, "knows_spurious": True}
    write_run(tmp_path / "a.run", emptied(whole, [3, 4]))
    write_run(tmp_path / "b.run", with_attributes(part_of(whole, KEPT, [3, 4]), tcp=tcp))
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    assert attributes_of(read_run(tmp_path / "a.run").rows[0])["tcp"] == tcp


def test_waits_for_a_cpu_are_added_rank_by_rank(tmp_path: Path) -> None:
    """Ranks of the later launch have numbers of their own."""
    whole = run_of(list_row(rounds=5))
    before = with_attributes(emptied(whole, [3, 4]), cpu_wait_s=[0.5, 1.0, 2.0, None, 0.25, None], wall_s=10.0)
    after = with_attributes(part_of(whole, KEPT, [3, 4]), cpu_wait_s=[0.25, 0.5, 0.25, None], wall_s=5.0)
    write_run(tmp_path / "a.run", before)
    write_run(tmp_path / "b.run", after)
    absorb(tmp_path / "a.run", tmp_path / "b.run")
    attributes = attributes_of(read_run(tmp_path / "a.run").rows[0])
    assert (attributes["cpu_wait_s"], attributes["wall_s"]) == ([0.75, 1.5, 2.0, None, 0.5, None], 15.0)


def with_attributes(run: Run, **attributes: Any) -> Run:
    """The run whose first row has these attributes."""
    row = run.rows[0]
    return replace(run, rows=(with_facts(row, **attributes), *run.rows[1:]))

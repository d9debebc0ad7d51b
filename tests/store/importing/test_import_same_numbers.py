"""The same pairs in the layout of every tool: every importer gives back the same numbers, for the same hosts."""

from __future__ import annotations

import numpy as np
import pytest
from import_cases import by_host
from peer_layouts import HOSTS, LAYOUTS, SIZE

from fablint.store import import_run, read_run, write_run
from fact_cases import attributes_of

SLOW = 7


def matrix():
    """All pairs of 12 hosts, noisy, one host half as fast; no two cells equal."""
    n = len(HOSTS)
    seconds = 100e-6 * np.random.default_rng(3).lognormal(0, 0.02, (n, n))
    seconds[SLOW, :] *= 2
    seconds[:, SLOW] *= 2
    np.fill_diagonal(seconds, np.nan)
    return seconds


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_format_gives_back_the_same_pairs(name, tmp_path):
    render, kernel, error = LAYOUTS[name]
    path = tmp_path / "peer.out"
    path.write_bytes(render(matrix()))
    run = import_run([path])
    row = next(row for row in run.rows if row.name == kernel)
    assert (run.state, run.hosts, row.kernel) == ("complete", HOSTS, kernel)
    assert run.facts.imported.lines_left_out == []
    size = 0 if name.startswith("clusterkit") else SIZE  # which does not say it
    np.testing.assert_allclose(by_host(run, row, HOSTS, size), matrix(), rtol=error)


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_written_is_read_again(name, tmp_path):
    path = tmp_path / "peer.out"
    path.write_bytes(LAYOUTS[name][0](matrix()))
    run = import_run([path])
    write_run(tmp_path / "peer.run", run)
    again = read_run(tmp_path / "peer.run")
    assert {**attributes_of(again)} == {**attributes_of(run)}
    for row, stored in zip(run.rows, again.rows, strict=True):
        assert dict(attributes_of(stored)) == dict(attributes_of(row))
        for array, values in row.arrays.items():
            np.testing.assert_array_equal(np.asarray(stored.arrays[array][:]), values)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_that_was_cut_gives_no_wrong_number(name, tmp_path):
    """Wherever it ends: what is imported is right, what is missing is missing, and the state says so where it can."""
    render, kernel, error = LAYOUTS[name]
    whole = render(matrix())
    path = tmp_path / "cut.out"
    for kept in np.linspace(len(whole) * 0.3, len(whole) - 2, 97).astype(int):
        path.write_bytes(whole[:kept])
        try:
            run = import_run([path])
        except Exception as problem:
            assert type(problem).__name__ == "UsageError", problem
            continue
        rows = [row for row in run.rows if row.name == kernel]
        for row in rows:
            found = by_host(run, row, HOSTS, row.sizes[0])
            known = ~np.isnan(found)
            truth = matrix()[known]
            if name == "mpigraph":  # one end may have been kept waiting
                assert (found[known] > truth * (1 - error)).all() and (found[known] < truth * 1.5).all()
            else:
                np.testing.assert_allclose(found[known], truth, rtol=error)
            if not name.startswith(("osu", "csv")):  # which do not say how many pairs there will be
                assert run.state == "interrupted" or known.sum() == len(HOSTS) * (len(HOSTS) - 1)


def test_a_file_for_each_pair_is_the_run_of_one_file(tmp_path):
    whole = LAYOUTS["osu latency"][0](matrix()).decode().splitlines(keepends=True)
    paths = []
    for number, lines in enumerate(_fours(whole)):
        paths.append(tmp_path / f"pair-{number:03}.out")
        paths[-1].write_text("".join(lines))
    run = import_run(paths)
    (row,) = run.rows
    assert (run.state, row.facts.schedule.rounds, row.facts.schedule.repeats) == ("complete", 132, 1)
    assert not run.facts.launch.allocations  # a file of one pair does not tell whose job it was
    np.testing.assert_allclose(by_host(run, row, HOSTS, SIZE), matrix(), rtol=1e-4)


def _fours(lines):
    return [lines[at : at + 4] for at in range(0, len(lines), 4)]


def test_the_same_pairs_in_two_files_are_repeats(tmp_path):
    paths = [tmp_path / "first.out", tmp_path / "second.out"]
    for factor, path in zip((1, 3), paths, strict=True):
        path.write_bytes(LAYOUTS["mpigraph"][0](factor * matrix()))
    (row,) = import_run(paths).rows
    assert (row.facts.schedule.repeats, row.facts.schedule.rounds) == (2, 22)
    times = np.asarray(row.arrays["time_mean"])[..., 0]
    np.testing.assert_allclose(times[1], 3 * times[0], rtol=1e-6)
    assert set(np.asarray(row.arrays["round"])[1][~np.eye(12, dtype=bool)]) == set(range(11, 22))

"""Several runs, data types and operations of nccl-tests and rccl-tests in one file: rows of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fablint.analyse import diagnose
from fablint.errors import UsageError
from fablint.model import Run
from fablint.report import Options, console_summary, render_table
from fablint.store import import_run

HEADING = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.0\n#\n"
LINE = "4096 1024 float sum -1 {0} 4.00 6.00 0 {0} 2.00 3.00 0\n"


def one_run(
    *hosts: str, time: float = 10.0, program: str = "", lines: str = LINE, settings: str = "", end: str = END
) -> str:
    """The output of a run with a GPU on each host."""
    ranks = "".join(
        f"#  Rank  {rank} Group  0 Pid 7{rank} on  {host} device  0 [0x01] NVIDIA H100\n"
        for rank, host in enumerate(hosts)
    )
    named = f"# Collective test starting: {program}_perf\n" if program else ""
    head = f"# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20{settings}\n"
    return f"{named}{head}#\n# Using devices\n{ranks}#\n{HEADING}\n{lines.format(time)}{end}"


def written(folder: Path, *texts: str, hosts: list[str] | None = None) -> Run:
    path = folder / "output.txt"
    path.write_text("".join(texts))
    return import_run([path], hosts or [])


def times(run: Run) -> dict[str, list[float]]:
    """Microseconds of the rows out of place, by variant."""
    return {
        row.facts.variant: sorted((values[np.isfinite(values)] * 1e6).round(3).tolist())
        for row in run.rows
        if not row.facts.sampling.in_place
        for values in [np.asarray(row.arrays["time_mean"], np.float64)]
    }


def test_runs_on_other_hosts_are_rows_of_their_own(tmp_path: Path) -> None:
    run = written(
        tmp_path, one_run("n1", "n2", program="all_reduce"), one_run("n3", "n4", time=20.0, program="all_reduce")
    )
    assert (run.hosts, run.state) == (["n1", "n2", "n3", "n4"], "complete")
    assert times(run) == {"all_reduce on n[1-2]": [10.0], "all_reduce on n[3-4]": [20.0]}
    console_summary(run, diagnose(run))


def test_tables_of_runs_count_the_ranks_of_each(tmp_path: Path) -> None:
    """Bus bandwidths are as the files print them, whatever other ranks the run has."""
    lines = "4096 1024 float sum -1 {0} 0.41 0.41 0 {0} 0.41 0.41 0\n"
    texts = [one_run(*hosts, program="all_reduce", lines=lines) for hosts in (("n1", "n2"), ("n3", "n4"), ("n5", "n6"))]
    tables = render_table(written(tmp_path, *texts), "nccl_tests", Options()).as_dict()["tables"]
    assert [table["ranks"] for table in tables] == [2, 2, 2]
    rates = [
        line[place]["bus_bandwidth"]
        for table in tables
        for line in table["sizes"]
        for place in ("out_of_place", "in_place")
    ]
    assert rates == pytest.approx([4096 / 10e-6] * 6)


def test_runs_of_other_programs_are_rows_of_their_own(tmp_path: Path) -> None:
    run = written(
        tmp_path, one_run("n1", "n2", program="all_reduce"), one_run("n1", "n2", time=20.0, program="all_gather")
    )
    assert (run.hosts, run.state) == (["n1", "n2"], "complete")
    assert times(run) == {"all_reduce": [10.0], "all_gather": [20.0]}
    assert {row.kernel for row in run.rows} == {"allreduce", "allgather"}


def test_equal_runs_are_repeats(tmp_path: Path) -> None:
    run = written(tmp_path, *(one_run("n1", "n2", time=time, program="all_reduce") for time in (10.0, 11.0, 12.0)))
    assert times(run) == {"all_reduce": [10.0, 11.0, 12.0]}
    assert run.state == "complete"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("+ mpirun -x NCCL_ALGO=Ring ./all_reduce_perf -g 1\n", "+ mpirun -x NCCL_ALGO=Tree ./all_reduce_perf -g 1\n"),
        ("$ srun ./all_reduce_perf\n", "$ srun --gpu-bind=none ./all_reduce_perf\n"),
    ],
)
def test_runs_below_other_command_lines_are_rows_of_their_own(tmp_path: Path, first: str, second: str) -> None:
    run = written(tmp_path, first, one_run("n1", "n2"), second, one_run("n1", "n2", time=20.0))
    assert sorted(times(run).values()) == [[10.0], [20.0]]
    assert all(row.kernel == "allreduce" for row in run.rows)


def test_runs_with_graphs_are_rows_of_their_own(tmp_path: Path) -> None:
    texts = (
        one_run("n1", "n2", time=time, program="all_reduce", settings=f" graph: {graph}")
        for graph, time in ((0, 10.0), (20, 20.0))
    )
    assert sorted(times(written(tmp_path, *texts)).values()) == [[10.0], [20.0]]


def test_data_types_and_operations_are_rows_of_their_own(tmp_path: Path) -> None:
    lines = "".join(
        f"4096 1024 {kind} {operation} -1 {time} 4.00 6.00 0 {time} 2.00 3.00 0\n"
        for kind, operation, time in (("float", "sum", 10.0), ("float", "prod", 11.0), ("half", "sum", 12.0))
    )
    run = written(tmp_path, one_run("n1", "n2", program="all_reduce", lines=lines))
    assert times(run) == {
        "all_reduce float sum": [10.0],
        "all_reduce float prod": [11.0],
        "all_reduce half sum": [12.0],
    }


def test_roots_are_rows_of_their_own(tmp_path: Path) -> None:
    lines = "".join(f"4096 1024 float none {root} 1{root}.0 4.00 4.00 0 1{root}.0 2.00 2.00 0\n" for root in (0, 1))
    run = written(tmp_path, one_run("n1", "n2", program="broadcast", lines=lines))
    assert times(run) == {"broadcast float 0": [10.0], "broadcast float 1": [11.0]}


@pytest.mark.parametrize(
    "second",
    [
        one_run("n1", "n2", end=""),
        one_run("n1", "n2").split("# size")[0],
        one_run("n1", "n2")[:-200],
        "# nThread 1 nGpus 1 minBytes 8\n",
    ],
)
def test_a_run_without_its_end_makes_a_file_incomplete(tmp_path: Path, second: str) -> None:
    run = written(tmp_path, one_run("n1", "n2"), second)
    assert run.state == "interrupted"
    assert "end" in run.facts.imported.missing[0]


def test_damage_of_the_second_run_is_a_fault(tmp_path: Path) -> None:
    run = written(tmp_path, one_run("n1", "n2"), one_run("n3", "n4", end=END.replace("0 OK", "3 FAILED")))
    assert diagnose(run).verdict.exit_code == 1


def test_runs_whose_program_is_unclear_are_not_repeats(tmp_path: Path) -> None:
    odd = "4096 1024 float sum -1 {0} 4.00 9.99 0 {0} 2.00 9.99 0\n"
    run = written(tmp_path, *(one_run("n1", "n2", time=time, lines=odd) for time in (10.0, 11.0)))
    assert times(run) == {"unknown run 1": [10.0], "unknown run 2": [11.0]}


OLD = """# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
# NCCL Tests compiled with NCCL 2.2
# Using devices
#   Rank  0 on         n1 device  0 [0x01] Tesla V100-SXM2-16GB
#   Rank  1 on         n2 device  0 [0x02] Tesla V100-SXM2-16GB

#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
    33554432       8388608   float     sum    {0}   {1}   {1}    1e-06    {0}   {1}   {1}    1e-06
    67108864      16777216   float     sum    {2}   {1}   {1}    1e-06    {2}   {1}   {1}    1e-06
 Out of bounds values : 0 OK
 Avg bus bandwidth    : 9.81

"""


@pytest.mark.parametrize("unit", [1e-3, 1.0])
def test_names_and_units_of_columns_until_2018(tmp_path: Path, unit: float) -> None:
    """Times were in milliseconds."""
    run = written(tmp_path, OLD.format(3421.5 * unit, 9.81, 6842.0 * unit))
    assert (run.hosts, run.state, run.rows[0].kernel) == (["n1", "n2"], "complete", "allreduce")
    assert times(run) == {"all_reduce": [3421.5, 6842.0]}


def test_times_that_agree_with_no_bandwidth_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="do not agree with its bandwidths"):
        written(tmp_path, OLD.format(3421.5, 1.23, 6842.0))


def test_runs_that_name_no_hosts(tmp_path: Path) -> None:
    text = f"{HEADING}\n{LINE.format(10.0)}{END}"
    assert written(tmp_path, text, text, hosts=["a", "b"]).hosts == ["a", "b"]
    with pytest.raises(UsageError, match="the file names its hosts"):
        written(tmp_path, one_run("n1", "n2"), hosts=["a", "b"])


@pytest.mark.parametrize(("verdict", "lines"), [("FAILED", 1), ("OK", 0), ("", 0)])
def test_a_mean_below_the_limit_of_the_caller_is_named(tmp_path: Path, verdict: str, lines: int) -> None:
    path = tmp_path / "output.txt"
    path.write_text(one_run("n1", "n2", end=END.replace(": 1.0", f": 1.0 {verdict}")))
    run = import_run([path])
    assert run.facts.imported is not None
    assert (run.state, len(run.facts.imported.lines_left_out)) == ("complete", lines)
    assert all("limit" in line.why for line in run.facts.imported.lines_left_out)

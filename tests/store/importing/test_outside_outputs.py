"""Outputs in the forms that people have published (tests/fixtures/outside), and further members of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import NCCL_END, NCCL_HEAD, times_of, written

from fablint.analyse import diagnose
from fablint.errors import UsageError
from fablint.model import Run
from fablint.model.facts.row_attributes import DamagedPayload
from fablint.report import Options, render_table
from fablint.store import import_run

OUTSIDE = Path(__file__).parents[2] / "fixtures" / "outside"
MIB = 2.0**20


def run_of(number: str, hosts: list[str] | None = None) -> Run:
    (path,) = OUTSIDE.glob(f"{number}-*")
    return import_run([path], hosts or [])


NCCL = [  # file, ranks, hosts, seconds of the first row, of the second
    ("01", 2, 2, (3421.5e-6, 6842e-6, 13684e-6), (3320.1e-6, 6640.1e-6, 13280e-6)),
    ("16", 2, 2, (3421.5e-6, 6842e-6, 13684e-6), (3420.1e-6, 6840.1e-6, 13680e-6)),
    ("51", 2, 2, (3421.5e-6, 6842e-6, 13684e-6), (3318.855e-6, 6636.74e-6, 13273.48e-6)),
    ("53", 16, 2, (8520e-6, 16900e-6, 33559e-6), (8530e-6, 16920e-6, 33570e-6)),
]


@pytest.mark.parametrize(("number", "ranks", "hosts", "out", "within"), NCCL)
def test_times_of_nccl_tests(
    number: str, ranks: int, hosts: int, out: tuple[float, ...], within: tuple[float, ...]
) -> None:
    run = run_of(number)
    assert (run.ranks, len(run.hosts), run.state) == (ranks, hosts, "complete")
    assert [row.kernel for row in run.rows] == ["allreduce", "allreduce"]
    assert [times_of(row) for row in run.rows] == [pytest.approx(out), pytest.approx(within)]


def test_tables_of_an_imported_collective_name_all_ranks() -> None:
    run = run_of("53")
    assert ", 16 ranks on 2 hosts" in render_table(run, "bench", Options()).text
    table = render_table(run, "nccl_tests", Options()).text
    assert "Rank 11 Group  0 on   worker-a device  3" in table
    assert "479.9" in table  # the bus bandwidth that the file prints


def test_groups_of_nccl_tests_keep_all_ranks() -> None:
    run = run_of("21")
    assert (run.ranks, run.hosts) == (8, ["node-a", "node-b"])
    assert run.rows[0].sizes == (1 << 28, 1 << 29, 1 << 30)  # of a rank: a group has four


def test_bus_bandwidths_of_groups_are_those_of_their_ranks() -> None:
    text = render_table(run_of("21"), "nccl_tests", Options()).text
    assert {word for line in text.splitlines() for word in line.split()} >= {"93.37", "70.03", "92.44", "69.33"}


def test_wrong_values_of_nccl_tests_are_a_fault() -> None:
    run = run_of("03")
    verdict = diagnose(run).verdict
    assert verdict.exit_code == 1
    assert [entry.size for entry in run.rows[0].facts.result.corrupt] == [67108864, 134217728]


TABLES = {  # of a release or an option: heading, line, kernel, seconds
    "2.0 to 2.10": (
        "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error",
        "40000 10000 float sum 10.0 4.00 6.00 1e-07 20.0 2.00 3.00 1e-07",
        "allreduce",
        (10e-6, 20e-6),
    ),
    "2.10 broadcast": (
        "#  size  count  type  root  time  algbw  busbw  error  time  algbw  busbw  error",
        "40000 10000 float 0 10.0 4.00 4.00 0e+00 20.0 2.00 2.00 0e+00",
        "bcast",
        (10e-6, 20e-6),
    ),
    "no reduction is printed": (
        "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong",
        "40000 10000 float -1 10.0 4.00 3.00 0 20.0 2.00 1.50 0",
        "allgather",
        (10e-6, 20e-6),
    ),
    "alltoall in place is not checked": (
        "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong",
        "40000 10000 float none -1 10.0 4.00 3.00 0 20.0 2.00 1.50 N/A",
        "alltoall",
        (10e-6, 20e-6),
    ),
    "-I": (
        "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min"
        " i_max i_p99 i_cv%",
        "40000 10000 float sum -1 10.0 4.00 3.00 0 9.0 11.0 10.9 1.5 20.0 2.00 1.50 0 19.0 21.0 20.9 1.5",
        "reduce_scatter",
        (10e-6, 20e-6),
    ),
    "-I -S 1": (
        "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min"
        " i_max i_p99 i_cv% timestamp",
        "40000 10000 float sum -1 10.0 4.00 6.00 0 9.0 11.0 10.9 1.5 20.0 2.00 3.00 0 19.0 21.0 20.9 1.5"
        " 2026-11-03 10:00:01",
        "allreduce",
        (10e-6, 20e-6),
    ),
    "side work": (
        "# size count type redop root time algbw busbw copybw #wrong time algbw busbw copybw #wrong",
        "40000 10000 float sum -1 10.0 4.00 6.00 9.00 0 20.0 2.00 3.00 9.00 0",
        "allreduce",
        (10e-6, 20e-6),
    ),
}


@pytest.mark.parametrize(("heading", "line", "kernel", "seconds"), TABLES.values(), ids=TABLES)
def test_columns_of_nccl_tests_are_read_by_their_heading(
    tmp_path: Path, heading: str, line: str, kernel: str, seconds: tuple[float, float]
) -> None:
    run = written(tmp_path, f"{NCCL_HEAD}{heading}\n{line}\n{NCCL_END}")
    assert [row.kernel for row in run.rows] == [kernel] * 2
    assert [time for row in run.rows for time in times_of(row)] == pytest.approx(seconds)
    assert diagnose(run).verdict.exit_code != 1


@pytest.mark.parametrize("column", ["cputime", "speed"])
def test_an_unknown_column_of_nccl_tests_is_named(tmp_path: Path, column: str) -> None:
    heading = f"# size count type redop root {column} algbw busbw #wrong"
    with pytest.raises(UsageError, match=f"the column '{column}' is not known"):
        written(tmp_path, f"{NCCL_HEAD}{heading}\n4096 1024 float sum -1 10.0 4.00 6.00 0\n{NCCL_END}")


def test_the_summary_alone_tells_of_damage(tmp_path: Path) -> None:
    heading, line, *_ = TABLES["2.0 to 2.10"]
    run = written(tmp_path, f"{NCCL_HEAD}{heading}\n{line}\n{NCCL_END.replace('0 OK', '7 FAILED')}")
    assert diagnose(run).verdict.exit_code == 1


def test_a_failed_validation_of_osu_is_a_fault_and_the_run_is_incomplete() -> None:
    run = run_of("04", ["n1", "n2", "n3", "n4"])
    assert (diagnose(run).verdict.exit_code, run.state) == (1, "interrupted")
    assert run.facts.imported.missing[0].endswith("a program was aborted (line 9)")
    with pytest.raises(UsageError, match="payloads of 1 size are damaged; the number of ranks is not stated"):
        run_of("04")


def test_a_failed_validation_of_a_pair_names_its_hosts(tmp_path: Path) -> None:
    text = "# OSU MPI Bandwidth Test v7.4\n# Size  Bandwidth (MB/s)  Validation\n64  10.0  Pass\n128  20.0  Fail\n"
    run = written(tmp_path, text, ["n1", "n2"])
    assert run.rows[0].facts.result.corrupt == [DamagedPayload(0, 1, 128)]
    assert run.rows[0].facts.sampling.validate
    (fault,) = (finding for finding in diagnose(run).verdict.findings if finding.state == "FAULT")
    assert {component.label for component in fault.ambiguity_group} == {"n1", "n2"}


def test_defects_of_imb_are_a_fault() -> None:
    run = run_of("06")
    latency, exchange = run.rows
    assert times_of(latency) == pytest.approx([1.59e-6, 1.77e-6, 342e-6])
    assert {entry.size for entry in latency.facts.result.corrupt} == {4194304}
    assert not exchange.facts.result.corrupt and exchange.facts.sampling.validate
    assert diagnose(run).verdict.exit_code == 1


@pytest.mark.parametrize(
    ("heading", "version"),
    [
        ("#    Intel (R) MPI Benchmarks 4.0 Update 1, MPI-1 part", "4.0"),
        ("#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part", "2021.3"),
        ("#    Intel (R) MPI Benchmark Suite V3.2, MPI-1 part", "3.2"),
        ("#    PALLAS MPI Benchmark Suite V2.2, MPI-1 part", "2.2"),
    ],
)
def test_the_headings_of_all_releases_of_imb(tmp_path: Path, heading: str, version: str) -> None:
    (path,) = OUTSIDE.glob("47-*")
    text = path.read_text().replace("#    Intel (R) MPI Benchmarks 4.0 Update 1, MPI-1 part", heading)
    run = written(tmp_path, text)
    assert run.facts.imported.tool == f"imb {version}"
    assert (run.state, times_of(run.rows[0])[0]) == ("complete", pytest.approx(58.74e-6))


@pytest.mark.parametrize("unit", [1e6, MIB])
def test_the_unit_of_imb_is_that_of_its_rate_of_messages(tmp_path: Path, unit: float) -> None:
    rate = 1e10 / unit
    columns = "#bytes #repetitions Mbytes/sec Msg/sec"
    table = f"# Benchmarking Uniband\n# #processes = 2\n {columns}\n 65536 100 {rate:.2f} 152588\n"
    run = written(tmp_path, table + "# All processes entering MPI_Finalize\n")
    assert times_of(run.rows[0]) == pytest.approx([65536 / 1e10], rel=1e-4)


@pytest.mark.parametrize("number", ["07", "09"])
def test_labelled_lines_of_osu(number: str) -> None:
    run = run_of(number)
    assert (run.state, times_of(run.rows[0])) == ("complete", pytest.approx([1.88e-6, 1.84e-6, 1.88e-6, 104.3e-6]))


def test_tables_below_different_command_lines_are_rows_of_their_own() -> None:
    first, second = run_of("10").rows
    assert times_of(first) == pytest.approx([268435456 / 279573.25e6])
    assert times_of(second) == pytest.approx([268435456 / 23751.60e6])
    assert "host to device" in second.facts.variant


def test_tables_below_different_headings_are_rows_of_their_own() -> None:
    assert [times_of(row)[1] for row in run_of("12").rows] == pytest.approx([1048576 / 21000e6, 1048576 / 1900e6])


def test_tables_below_equal_command_lines_are_repeats(tmp_path: Path) -> None:
    table = "$ mpirun -n 2 osu_latency\n# OSU MPI Latency Test v7.4\n# Size  Avg Latency(us)\n8  {}\n"
    (row,) = written(tmp_path, "".join(map(table.format, (1.5, 1.6, 1.7)))).rows
    assert sorted(times_of(row)) == pytest.approx([1.5e-6, 1.6e-6, 1.7e-6])


def test_the_memory_is_that_of_the_buffers_that_were_measured() -> None:
    (row,) = run_of("13").rows
    assert row.facts.carrier.memory == "host"
    assert run_of("52").rows[0].facts.carrier.memory == "cuda"


def test_bidirectional_bandwidth_of_old_releases() -> None:
    (row,) = run_of("14").rows
    assert (row.kernel, times_of(row)[-1]) == ("bibandwidth", pytest.approx(2 * 4194304 / 6291.84e6))


def test_a_reduction_of_gpus_has_its_kernel() -> None:
    (row,) = run_of("45", ["n1", "n2", "n3", "n4"]).rows
    assert (row.name, row.kernel, row.pattern, row.facts.carrier.memory) == ("reduce", "reduce", "world", "cuda")
    assert times_of(row) == pytest.approx([50.89e-6, 50.20e-6, 49.70e-6])


RECORDED = {  # title, names of the columns, figures, row, seconds
    "gather": ("OSU MPI Gather Latency Test", "Avg Latency(us)", "1.60", "gather", 1.6e-6),
    "all programs of a vector": ("OSU MPI Alltoallv Latency Test", "Avg Latency(us)", "2.60", "alltoallv", 2.6e-6),
    "neighbours": (
        "OSU MPI Neighborhood Allgather Latency Test",
        "Avg Latency(us)",
        "3.5",
        "neighborhood-allgather",
        3.5e-6,
    ),
    "non-blocking": (
        "OSU MPI Non-blocking All-to-All Latency Test",
        "Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)",
        "11.09 6.10 5.18 3.46",
        "ialltoall",
        5.18e-6,
    ),
    "non-blocking, 7.x": (
        "OSU MPI Non-blocking Broadcast Latency Test",
        "Overall(us)    Compute(us)   Coll. Init(us)   MPI_Test(us)   MPI_Wait(us)  Pure Comm.(us)  Overlap(%)",
        "11.09 6.10 0.5 0.0 1.0 5.18 3.46",
        "ibcast",
        5.18e-6,
    ),
}


@pytest.mark.parametrize(("title", "columns", "figures", "name", "seconds"), RECORDED.values(), ids=RECORDED)
def test_programs_that_are_recorded(
    tmp_path: Path, title: str, columns: str, figures: str, name: str, seconds: float
) -> None:
    run = written(tmp_path, f"# {title} v7.3\n# Size       {columns}\n8     {figures}\n", ["n1", "n2", "n3"])
    assert [(row.name, times_of(row)) for row in run.rows] == [(name, pytest.approx([seconds]))]
    assert run.state == "complete"
    assert diagnose(run).verdict.exit_code != 1


@pytest.mark.parametrize("title", ["OSU MPI Partitioned Latency Test", "OSU MPI Init Test", "OSU MPI Hello World Test"])
def test_an_unsupported_test_is_named(tmp_path: Path, title: str) -> None:
    with pytest.raises(UsageError, match=f"{title}': not a supported test"):
        written(tmp_path, f"# {title} v7.3\n# Size       Latency (us)\n8     1.5\n", ["n1", "n2"])


WORKERS = {
    "process": "# {}\n# Number of forked processes in sender: 2\n# Number of forked processes in receiver: 4\n",
    "threaded": "# Number of Sender threads: 2 \n# Number of Receiver threads: 4\n# {}\n",
}


@pytest.mark.parametrize("kind", WORKERS)
def test_numbers_of_threads_and_processes(tmp_path: Path, kind: str) -> None:
    title = f"OSU MPI Multi-{kind} Latency Test v5.6.3"
    (row,) = written(tmp_path, f"{WORKERS[kind].format(title)}# Size          Latency (us)\n0  0.22\n8  0.54\n").rows
    assert list(row.facts.sampling.workers) == [2, 4]
    assert "--workers 2:4" in row.facts.options


def test_dropped_tables_are_named_before_noise() -> None:
    run = run_of("46")
    assert run.state == "interrupted"
    shown = [line.text for line in run.facts.imported.lines_left_out[:5]]
    assert sum(text.startswith("OSU MPI") for text in shown) == 4


def test_the_fork_of_mpigraph_prints_megabytes() -> None:
    (row,) = run_of("20").rows
    assert row.arrays["time_mean"][0, 0, 1, 0] == pytest.approx(4194304 / 23466.789e6)  # the shorter of both ends
    assert row.facts.sampling.windows == [64]


def test_a_page_of_hp2p_may_begin_with_its_script(tmp_path: Path) -> None:
    page = next((OUTSIDE.parent / "hp2p").glob("*.html"))
    path = tmp_path / "page.html"
    path.write_text(f"<!DOCTYPE html>\n<script>{'x' * 3_600_000}</script>\n{page.read_text()}")
    assert times_of(import_run([path]).rows[0]) == times_of(import_run([page]).rows[0])


def test_a_page_of_hp2p_as_it_is_written_has_all_pairs(tmp_path: Path) -> None:
    (path,) = OUTSIDE.glob("18-*")
    page = tmp_path / "page.html"
    page.write_text(path.read_text().replace("/*FILLER*/", "x" * 3_600_000))
    run = import_run([page])
    assert (run.ranks, len(times_of(run.rows[0]))) == (28, 756)


def test_the_banner_of_rccl_tests_is_no_part_of_the_table() -> None:
    run = run_of("42")
    assert (run.hosts, run.state) == (["node-a"], "complete")
    assert times_of(run.rows[0])[0] == pytest.approx(91.10e-6)


def test_names_of_hosts_that_differ_in_the_domain_only() -> None:
    run = run_of("48")
    assert len(run.hosts) == 6
    (fault,) = (finding for finding in diagnose(run).verdict.findings if finding.state == "FAULT")
    assert fault.components[0].label == "mpi-worker.20.foo.net"

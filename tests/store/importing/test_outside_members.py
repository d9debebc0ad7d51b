"""Further members of the kinds of outputs that people have published; see test_outside_outputs.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import FIXTURES, NCCL_END, NCCL_HEAD, times_of, written

from fablint.errors import UsageError

OLD = {  # of releases 1 to 3: tabs between columns, the release in brackets
    "OSU MPI Latency Test (Version 2.1)": ("Size\t\tLatency (us) ", "latency", [4.84e-6, 5.06e-6]),
    "OSU MPI Bandwidth Test (Version 2.1)": ("Size\t\tBandwidth (MB/s) ", "bandwidth", [1024 / 4.84e6, 2048 / 5.06e6]),
    "OSU MPI Bidirectional Bandwidth Test (Version 2.1)": (
        "Size\t\tBi-Bandwidth (MB/s) ",
        "bibandwidth",
        [2048 / 4.84e6, 4096 / 5.06e6],
    ),
}


@pytest.mark.parametrize(("title", "heading", "kernel", "seconds"), [(key, *rest) for key, rest in OLD.items()])
def test_tables_of_the_first_releases_of_osu(
    tmp_path: Path, title: str, heading: str, kernel: str, seconds: list[float]
) -> None:
    (row,) = written(tmp_path, f"# {title}\n# {heading}\n1024\t\t4.84\n2048\t\t5.06\n", ["n1", "n2"]).rows
    assert (row.kernel, times_of(row)) == (kernel, pytest.approx(seconds))


NCCL_OF_OSU = {  # title: pattern and kernel; #Using NCCL stands above, once for each rank
    "OSU NCCL-CUDA Latency Test v7.1": ("pair", "latency"),
    "OSU NCCL-CUDA Allreduce Latency Test v7.5": ("world", "allreduce"),
    "OSU NCCL-CUDA All-to-All Personalized Exchange Latency Test v7.5": ("world", "alltoall"),
    "OSU NCCL-CUDA Broadcast Latency Test v7.5": ("world", "bcast"),
    "OSU RCCL-ROCM Allgather Latency Test v7.5": ("world", "allgather"),
}


@pytest.mark.parametrize(("title", "expected"), NCCL_OF_OSU.items())
def test_programs_of_osu_for_nccl(tmp_path: Path, title: str, expected: tuple[str, str]) -> None:
    text = f"#Using NCCL\n#Using NCCL\n\n# {title}\n# Size       Avg Latency(us)\n1048576           89.18\n"
    run = written(tmp_path, text, ["n1", "n2"])
    (row,) = run.rows
    assert (row.pattern, row.kernel, row.facts.carrier.transport) == (*expected, "nccl")
    assert row.facts.carrier.memory == ("hip" if "ROCM" in title else "cuda")
    assert (times_of(row), run.facts.imported.lines_left_out) == (pytest.approx([89.18e-6]), [])


@pytest.mark.parametrize("title", ["OSU MPI Latency Test Persistent v7.5", "OSU MPI Latency Persistent Test v7.3"])
def test_persistent_requests_of_osu(tmp_path: Path, title: str) -> None:
    (row,) = written(tmp_path, f"# {title}\n# Size       Avg Latency(us)\n8    2.75\n", ["n1", "n2"]).rows
    assert (row.kernel, times_of(row)) == ("latency_persistent", pytest.approx([2.75e-6]))


MESSAGE = "h100clust-worker-1:497888:497888 [0] NCCL INFO 8192 Bytes -> Algo 0 proto 0 time 26.549810\n"
SPLIT = (  # NVIDIA/nccl#1453: messages of NCCL stand within a line of figures, which is printed in three parts
    f"{NCCL_HEAD}#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n"
    " 4096 1024 float sum -1 80.0 0.05 0.08 0 81.0 0.05 0.08 0\n"
    f"        8192          2048     float     sum      -1{MESSAGE}{MESSAGE}"
    f"    75.40    0.11    0.16      0{MESSAGE}{MESSAGE}     75.38    0.11    0.16      0\n"
    f"       16384          4096     float     sum      -1{MESSAGE}"
    f"    85.40    0.19    0.29      0     85.38    0.19    0.29      0\n{NCCL_END}"
)


@pytest.mark.parametrize("label", ["", "[0] ", "[1,0]<stdout>:"])
@pytest.mark.parametrize("host", ["h100clust-worker-1", "worker"])
def test_a_line_of_figures_that_messages_divide_is_read(tmp_path: Path, label: str, host: str) -> None:
    text = SPLIT.replace("h100clust-worker-1", host)
    out, within = written(tmp_path, "".join(f"{label}{line}\n" for line in text.splitlines())).rows
    assert times_of(out) == pytest.approx([80e-6, 75.40e-6, 85.40e-6])
    assert times_of(within) == pytest.approx([81e-6, 75.38e-6, 85.38e-6])


@pytest.mark.parametrize(
    "lost", ["     75.38    0.11    0.16      0\n", "    75.40    0.11    0.16      0", "    0.11    0.16"]
)
def test_a_part_that_is_missing_is_no_figure_of_another_column(tmp_path: Path, lost: str) -> None:
    run = written(tmp_path, SPLIT.replace(lost, "\n" if lost.endswith("\n") else "", 1))
    assert run.state == "interrupted"
    assert times_of(run.rows[0]) == pytest.approx([80e-6, 85.40e-6])


def test_programs_of_nccl_tests_that_do_not_know_each_other_are_refused(tmp_path: Path) -> None:
    alone = SPLIT.replace("Rank  1", "Rank  0")  # NVIDIA/nccl-tests#107
    with pytest.raises(UsageError, match="rank 0 is there twice"):
        written(tmp_path, alone)


PERFTEST = """                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : {0}
 Number of qps   : {1}\t\tTransport type : IB
 Mtu             : 4096[B]
 Link type       : IB
---------------------------------------------------------------------------------------
 local address: LID {2} QPN 0x{4:04x} PSN 0x6a7b55 RKey 0x1 VAddr 0x2
 remote address: LID 0x13 QPN 0x0048 PSN 0x6a7b{4:02x} RKey 0x1 VAddr 0x2
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             193.1              {3}               0.1
---------------------------------------------------------------------------------------
"""
TESTS = {  # what the second test has of its own: device, queues, address
    "device": ("mlx5_1", "1", "0x12", "mlx5_1"),
    "queues": ("mlx5_0", "4", "0x12", "Number-of-qps:4"),
    "host": ("mlx5_0", "1", "0x22", "LID:0x22"),
}


@pytest.mark.parametrize(("device", "queues", "address", "words"), TESTS.values(), ids=TESTS)
def test_tests_of_perftest_on_other_devices_are_rows_of_their_own(
    tmp_path: Path, device: str, queues: str, address: str, words: str
) -> None:
    texts = [PERFTEST.format("mlx5_0", "1", "0x12", 192.0, 1), PERFTEST.format(device, queues, address, 96.0, 2)]
    first, second = written(tmp_path, "".join(texts), ["n1", "n2"]).rows
    assert (times_of(first), times_of(second)) == (pytest.approx([65536 / 24e9]), pytest.approx([65536 / 12e9]))
    assert words in second.facts.variant


def test_equal_tests_of_perftest_are_repeats(tmp_path: Path) -> None:
    texts = [PERFTEST.format("mlx5_0", "1", "0x12", rate, number) for number, rate in enumerate((192.0, 96.0))]
    (row,) = written(tmp_path, "".join(texts), ["n1", "n2"]).rows
    assert times_of(row) == pytest.approx([65536 / 24e9, 65536 / 12e9])


OSU_TABLE = "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n8    {}\n"
IMB_TABLE = """#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part
# MPI Version           : 3.1
# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec
            8         1000      {}         5.0
# All processes entering MPI_Finalize
"""
PERFTEST_TABLE = """ RDMA_Write Latency Test
 Link type       : IB
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]
 8       1000          1.03           3.21         1.07     	       {}        	0.05
"""
PRINTED = {"osu": OSU_TABLE, "imb": IMB_TABLE, "perftest": PERFTEST_TABLE}
DISTINCT = {  # what a script prints above two tables
    "modules": ("module load openmpi/5.0", "module load mpich/4.2"),
    "pairs": ("Testing node1 -> node2", "Testing node1 -> node3"),
    "rails": ("Rail 0:", "Rail 1:"),
    "rule": ("==== mlx5_0 ====", "==== mlx5_1 ===="),
}


@pytest.mark.parametrize("table", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize("headings", DISTINCT.values(), ids=DISTINCT)
def test_tables_below_different_headings_are_different_measurements(
    tmp_path: Path, table: str, headings: tuple[str, str]
) -> None:
    text = "".join(f"{heading}\n{table.format(time)}" for heading, time in zip(headings, (1.5, 2.5), strict=True))
    first, second = written(tmp_path, text, ["n1", "n2"]).rows
    assert (times_of(first), times_of(second)) == (pytest.approx([1.5e-6]), pytest.approx([2.5e-6]))
    assert first.facts.variant != second.facts.variant


COMMANDS = {"osu": "osu_latency", "imb": "IMB-MPI1 PingPong", "perftest": "ib_write_lat n2"}


@pytest.mark.parametrize("tool", COMMANDS)
def test_tables_below_different_commands_are_different_measurements(tmp_path: Path, tool: str) -> None:
    commands = [f"+ mpirun -x UCX_NET_DEVICES=mlx5_{rail}:1 {COMMANDS[tool]}" for rail in (0, 1)]
    tables = [PRINTED[tool].format(time) for time in (1.5, 2.5)]
    text = "".join(f"{command}\n{table}" for command, table in zip(commands, tables, strict=True))
    assert len(written(tmp_path, text, ["n1", "n2"]).rows) == 2


SAME = {
    "nothing": ("", ""),
    "equal": ("module load openmpi/5.0", "module load openmpi/5.0"),
    "numbers of repeats": ("Run 1 of 2", "Run 2 of 2"),
    "iterations": ("# Iteration 1", "# Iteration 2"),
    "times": ("Tue Nov  3 10:00:00 UTC 2026", "Tue Nov  3 10:00:09 UTC 2026"),
    "durations": ("took 12.3 s", "took 9 s"),
    "noise": ("srun: job 4711 has been allocated resources", "srun: job 4712 has been allocated resources"),
    "rules": ("----------", ""),
}


@pytest.mark.parametrize("table", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize("lines", SAME.values(), ids=SAME)
def test_tables_below_like_lines_are_repeats(tmp_path: Path, table: str, lines: tuple[str, str]) -> None:
    text = "".join(f"{line}\n{table.format(time)}" for line, time in zip(lines, (1.5, 2.5), strict=True))
    (row,) = written(tmp_path, text, ["n1", "n2"]).rows
    assert times_of(row) == pytest.approx([1.5e-6, 2.5e-6])


@pytest.mark.parametrize("field", ["MPI Version           : 4.0", "IMB-MPI1 -iter 5 PingPong"])
def test_runs_of_imb_with_other_libraries_and_options_are_different_measurements(tmp_path: Path, field: str) -> None:
    other = IMB_TABLE.replace("MPI Version           : 3.1", field)
    first, second = written(tmp_path, IMB_TABLE.format(1.5) + other.format(2.5), ["n1", "n2"]).rows
    assert (times_of(first), times_of(second)) == (pytest.approx([1.5e-6]), pytest.approx([2.5e-6]))


@pytest.mark.parametrize(
    ("fixture", "message"),
    [
        ("mpigraph/mpigraph-1.5-np4.txt", "a second matrix 'Send'"),
        ("nvbandwidth/nvbandwidth-0.2.txt", "a second run of nvbandwidth"),
        ("linktest/linktest-1.2p1-np8.stdout.txt", "a second run of LinkTest"),
        ("linktest/linktest-1.2p1-serial-np4.stdout.txt", "a second run of LinkTest"),
        ("clusterkit/clusterkit-layout-synthetic.txt", "a second matrix of ClusterKit"),
        ("net_sanitizer/net_sanitizer-readme-clientserver.txt", "a second run of net_sanitizer"),
        ("net_sanitizer/net_sanitizer-readme-verbose.txt", "a second run of net_sanitizer"),
        ("net_sanitizer/net_sanitizer-c30b104-alltoall-openmpi4.1.4-np2.txt", "a second run of net_sanitizer"),
    ],
)
def test_a_second_run_in_one_file_is_named_where_nothing_tells_it_from_the_first(
    tmp_path: Path, fixture: str, message: str
) -> None:
    text = (FIXTURES / fixture).read_text()
    with pytest.raises(UsageError, match=message):
        written(tmp_path, f"{text}Rail 1:\n{text}", ["n1"] if "nvbandwidth" in fixture else None)


def without_head(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#nservers"))


@pytest.mark.parametrize("name", ["readme-verbose", "c30b104-alltoall-openmpi4.1.4-np2"])
def test_a_second_run_of_net_sanitizer_is_named_without_its_head(tmp_path: Path, name: str) -> None:
    text = (FIXTURES / f"net_sanitizer/net_sanitizer-{name}.txt").read_text()
    with pytest.raises(UsageError, match="a second run of net_sanitizer"):
        written(tmp_path, text + without_head(text), None)


def test_iterations_of_linktest_2_are_one_run(tmp_path: Path) -> None:
    steps = (FIXTURES / "linktest/linktest-2.x-step-lines.txt").read_text()
    head = "linktest: Message length: 262144 Bytes\n"
    assert written(tmp_path, head + steps + steps, None).rows
    with pytest.raises(UsageError, match="line 5: a second run of LinkTest"):
        written(tmp_path, head + steps + head + steps, None)


JSON = {
    "clusterkit": '{"bandwidth": {"hosts": ["n1", "n2"], "unit": "MB/s", "matrix": [[0, 100.0], [100.0, 0]]}}',
}


@pytest.mark.parametrize("between", ["\n", "\nRail 1:\n", "\n{}\n"])
@pytest.mark.parametrize("document", JSON.values(), ids=JSON)
def test_a_second_json_document_is_named(tmp_path: Path, document: str, between: str) -> None:
    assert written(tmp_path, document + between, None).rows
    with pytest.raises(UsageError, match="a second JSON document"):
        written(tmp_path, document + between + document, None)

"""Lines of IMB beside its figures: sizes that were not measured, processes that wait, memory of the buffers."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import times_of, written

from fablint.errors import UsageError

END = "\n\n# All processes entering MPI_Finalize\n\n"


def text(
    body: str,
    *,
    title: str = "Intel(R) MPI Benchmarks 2021.3, MPI-1 part",
    calls: str = "",
    processes: str = "#processes = 2",
) -> str:
    return f"""#------------------------------------------------------------
#    {title}
#------------------------------------------------------------
{calls}#---------------------------------------------------
# Benchmarking PingPong
# {processes}
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
{body}{END}"""


ROW = "            1         1000         1.37         0.73\n"


@pytest.mark.parametrize(
    "line",
    [
        '      4194304 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over; use "-time X"\n',
        '      4194304 out-of-mem.; needed X=    0.032 GB; use flag "-mem X" or MAX_MEM_USAGE>=X (IMB_mem_info.h)\n',
        "      4194304 int-overflow.; The production rank*size caused int overflow; \n",
    ],
)
def test_a_size_that_was_not_measured_is_missing(tmp_path: Path, line: str) -> None:
    run = written(tmp_path, text(ROW + line))
    assert (run.state, times_of(run.rows[0])) == ("interrupted", [pytest.approx(1.37e-6)])
    assert run.facts.imported is not None
    assert "PingPong of 4194304 bytes" in run.facts.imported.missing[0]
    assert written(tmp_path, text(ROW)).state == "complete"


@pytest.mark.parametrize("waiting", [1, 2, 30])
def test_processes_that_wait_have_hosts(tmp_path: Path, waiting: int) -> None:
    word = "processes" if waiting > 1 else "process"
    output = text(ROW, processes=f"#processes = 2 \n# ( {waiting} additional {word} waiting in MPI_Barrier)")
    hosts = [f"n{number}" for number in range(2 + waiting)]
    assert written(tmp_path, output, hosts).rank_host == hosts
    assert written(tmp_path, output, hosts[:2]).rank_host == hosts[:2]
    with pytest.raises(UsageError, match="--hosts names"):
        written(tmp_path, output, [*hosts, "more"])


@pytest.mark.parametrize("processes", ["#processes = 2", "( #processes = 2 )"])
@pytest.mark.parametrize(
    "title", ["PALLAS MPI Benchmark Suite V2.2, MPI-1 part", "Intel (R) MPI Benchmark Suite V3.2.3, MPI-1 part"]
)
def test_a_pair_of_old_releases_is_a_pair(tmp_path: Path, title: str, processes: str) -> None:
    (row,) = written(tmp_path, text(ROW, title=title, processes=processes)).rows
    assert row.pattern == "pair"


@pytest.mark.parametrize(
    ("title", "calls", "memory"),
    [
        ("Intel(R) MPI Benchmarks 2021.3, MPI-1 part (GPU)", "", "device"),
        (
            "Intel(R) MPI Benchmarks 2021.3, MPI-1 part (GPU)",
            "# IMB-MPI1-GPU -mem_alloc_type device PingPong\n",
            "device",
        ),
        ("Intel(R) MPI Benchmarks 2021.3, MPI-1 part (GPU)", "# IMB-MPI1-GPU\n# -mem_alloc_type cpu\n", "host"),
        ("Intel(R) MPI Benchmarks 2021.3, MPI-1 part (GPU)", "# IMB-MPI1-GPU -mem_alloc_type host PingPong\n", "host"),
        (
            "Intel(R) MPI Benchmarks 2021.3, MPI-1 part (GPU)",
            "# IMB-MPI1-GPU -mem_alloc_type shared PingPong\n",
            "shared",
        ),
        ("Intel(R) MPI Benchmarks 2021.3, MPI-1 part", "# IMB-MPI1 PingPong\n", "host"),
    ],
)
def test_the_memory_is_that_of_the_buffers(tmp_path: Path, title: str, calls: str, memory: str) -> None:
    (row,) = written(tmp_path, text(ROW, title=title, calls=calls)).rows
    assert row.medium.memory == memory


def rank_lines(*ranks: int, label: str = "") -> str:
    """A list of ranks as IMB prints it: 16 on a line, and a line without any behind it."""
    rows = [ranks[at : at + 16] for at in range(0, len(ranks), 16)]
    return f"# {label}" + "\n# ".join("".join(f" {rank:4}" for rank in row) for row in rows) + "\n# \n"


@pytest.mark.parametrize(("order", "pair"), [((0, 2), (0, 2)), ((3, 1), (3, 1)), ((0, 1), (0, 1)), ((0, 40), (0, 40))])
def test_map_names_the_ranks_of_the_pair(tmp_path: Path, order: tuple[int, int], pair: tuple[int, int]) -> None:
    processes = f"#processes = 2; rank order (rowwise): \n{rank_lines(*order)}#\n# ( 39 additional processes waiting"
    run = written(tmp_path, text(ROW, processes=f"{processes} in MPI_Barrier)"), [f"n{at:02}" for at in range(41)])
    partners = run.rows[0].arrays["dst"][:, 0]
    assert [(src, int(dst)) for src, dst in enumerate(partners) if dst >= 0 and src == pair[0]] == [pair]


@pytest.mark.parametrize("size", [2, 16, 17, 40])
def test_groups_of_several_lines_have_all_their_ranks(tmp_path: Path, size: int) -> None:
    groups = "".join(
        rank_lines(*range(group * size, (group + 1) * size), label=f"Group  {group}: ") for group in range(3)
    )
    figures = "            8         1000         1.30         1.37         1.37\n"
    body = "".join(f"{group:13}{figures}" for group in range(3))
    output = f"""#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
# Benchmarking Multi-Sendrecv
# ( 3 groups of {size} processes each running simultaneous )
{groups}#
        Group       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
{body}{END}"""
    hosts = [f"n{at:03}" for at in range(3 * size)]
    assert written(tmp_path, output, hosts).rank_host == hosts
    assert written(tmp_path, output).ranks == 3 * size


@pytest.mark.parametrize(("name", "processes"), [("Alltoall", 4), ("Ibcast", 3), ("S_Write_indv", 1), ("Barrier", 64)])
def test_a_benchmark_that_is_not_read_is_named_whatever_hosts_are_given(
    tmp_path: Path, name: str, processes: int
) -> None:
    output = text(ROW, processes=f"#processes = {processes}").replace("PingPong", name)
    with pytest.raises(UsageError) as refusal:
        written(tmp_path, output, [f"n{at}" for at in range(processes)])
    assert f"Benchmarking {name}" in str(refusal.value.hint)

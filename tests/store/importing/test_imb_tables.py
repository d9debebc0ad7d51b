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

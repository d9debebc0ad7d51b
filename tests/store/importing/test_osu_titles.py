"""Titles of OSU's programs with the memory in them, and tables of programs that were stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import times_of, written

from fablint.errors import UsageError

MEMORIES = {"-CUDA": "cuda", "-CUDA MANAGED": "cuda", "-ROCM": "hip", "-OPENACC": "device", "-CXL": "cxl", "": "host"}
LATENCY = "# Size          Latency (us)\n8                       1.50\n"
BANDWIDTH = "# Size      Bandwidth (MB/s)\n8                       8.00\n"
TITLES = {  # of pairs, with the place of the memory: by the sources of 5.9 and 7.4
    "OSU MPI{} Latency Test": "latency",
    "OSU MPI{} Bandwidth Test": "bandwidth",
    "OSU MPI{} Bi-Directional Bandwidth Test": "bibandwidth",
    "OSU MPI{} Latency Persistent Test": "latency_persistent",
    "OSU MPI{} Multi-threaded Latency Test": "latency_mt",
    "OSU MPI_Put{} Latency Test": "put_latency",
    "OSU MPI_Put{} Bandwidth Test": "put_bandwidth",
    "OSU MPI_Put{} Bi-directional Bandwidth Test": "put_bibandwidth",
    "OSU MPI_Get{} latency Test": "get_latency",
    "OSU MPI_Get{} Bandwidth Test": "get_bandwidth",
    "OSU MPI_Get Multi{} Latency Test": "get_latency",
    "OSU MPI_Get Multiple Bandwidth{} Bandwidth Test": "get_bandwidth",
    "OSU MPI_Accumulate{} latency Test": "accumulate",
    "OSU MPI_Compare_and_swap{} latency Test": "cas",
    "OSU MPI_Fetch_and_op{} latency Test": "fop",
    "OSU NCCL{} Latency Test": "latency",
}


@pytest.mark.parametrize("accelerator", MEMORIES)
@pytest.mark.parametrize("title", TITLES)
def test_the_memory_may_be_anywhere_in_a_title(tmp_path: Path, title: str, accelerator: str) -> None:
    table = BANDWIDTH if "andwidth" in title else LATENCY
    (row,) = written(tmp_path, f"# {title.format(accelerator)} v7.4\n{table}", ["n1", "n2"]).rows
    assert (row.kernel, row.medium.memory) == (TITLES[title], MEMORIES[accelerator])
    directions = 2 if "bibandwidth" in row.kernel else 1
    assert times_of(row) == pytest.approx([directions * 1e-6 if "andwidth" in title else 1.5e-6])


@pytest.mark.parametrize(
    "line", ["# Send Buffer on {} and Receive Buffer on {} ", "# Rank 0 Memory on {} and Rank 1 Memory on {}"]
)
@pytest.mark.parametrize(
    ("places", "memory", "variant"),
    [
        (("HOST (H)", "HOST (H)"), "host", "5.9"),
        (("DEVICE (D)", "DEVICE (D)"), "cuda", "5.9"),
        (("DEVICE (D)", "HOST (H)"), "cuda", "5.9 device to host"),
        (("MANAGED (M)", "MANAGED (M)"), "cuda", "5.9 managed"),
    ],
)
def test_the_line_of_the_buffers_states_the_memory(
    tmp_path: Path, line: str, places: tuple[str, str], memory: str, variant: str
) -> None:
    title = "OSU MPI-CUDA Latency Test" if "Buffer" in line else "OSU MPI_Put-CUDA Latency Test"
    (row,) = written(tmp_path, f"# {title} v5.9\n{line.format(*places)}\n{LATENCY}").rows
    assert (row.medium.memory, row.facts.variant) == (memory, variant)


def test_managed_and_device_memory_are_rows_of_their_own(tmp_path: Path) -> None:
    tables = [f"# OSU MPI-CUDA{word} Latency Test v7.4\n{LATENCY}" for word in ("", " MANAGED")]
    assert len(written(tmp_path, "".join(tables)).rows) == 2


WHOLE = """# OSU MPI Latency Test v5.9
# Size          Latency (us)
1                       1.50
2                       1.60
"""
SHORT = WHOLE[: WHOLE.index("2      ")]
HEADING, TITLE = SHORT[: SHORT.index("1      ")], WHOLE[: WHOLE.index("# Size")]


@pytest.mark.parametrize("cut", [SHORT, HEADING, TITLE])
@pytest.mark.parametrize("above", ["", "n1,n2\n"])
def test_a_table_that_ends_early_makes_the_run_incomplete(tmp_path: Path, cut: str, above: str) -> None:
    other = "n1,n3\n" if above else ""
    run = written(tmp_path, above + WHOLE + other + cut)
    assert run.state == "interrupted"
    assert written(tmp_path, above + WHOLE + other + WHOLE).state == "complete"


def test_a_test_with_a_title_only_is_missing(tmp_path: Path) -> None:
    run = written(tmp_path, WHOLE + "# OSU MPI Bandwidth Test v5.9\n")
    (reason,) = run.facts.imported.missing if run.facts.imported else ()
    assert reason.endswith("is on line 5")


def test_other_sizes_of_another_command_are_complete(tmp_path: Path) -> None:
    text = f"$ mpirun -n 2 osu_latency\n{WHOLE}$ mpirun -n 2 osu_latency -m 1:1\n{SHORT}"
    assert written(tmp_path, text).state == "complete"


def test_a_table_alone_without_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no figures"):
        written(tmp_path, HEADING)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Test n1 n2 10:00:00", "Test n1 n3 10:00:20"),
        ("Mon May  1 10:00:00 UTC 2023 n1 n2", "Mon May  1 10:00:20 UTC 2023 n1 n3"),
        ("2026-11-03T10:00:00Z pair n1 n2", "2026-11-03T10:00:20Z pair n1 n3"),
        ("n1 -> n2 at 10:00:00 AM", "n1 -> n3 at 10:00:20 AM"),
    ],
)
def test_a_time_in_a_heading_hides_nothing_else(tmp_path: Path, first: str, second: str) -> None:
    assert len(written(tmp_path, f"{first}\n{WHOLE}{second}\n{WHOLE}").rows) == 2
    assert len(written(tmp_path, f"{first}\n{WHOLE}{second.replace('n3', 'n2')}\n{WHOLE}").rows) == 1


@pytest.mark.parametrize("pair", ["n1, n3", "n1 ,n3", "10.0.0.1,10.0.0.3", "1n,3n"])
def test_lines_of_pairs_with_blanks_and_addresses(tmp_path: Path, pair: str) -> None:
    run = written(tmp_path, f"a1,a2\n{WHOLE}{pair}\n{WHOLE}")
    assert (run.state, [*run.rank_host]) == (
        "complete",
        list(dict.fromkeys(["a1", "a2", *pair.replace(" ", "").split(",")])),
    )


@pytest.mark.parametrize("line", ["1 3", "2  7.5"])
def test_numbers_between_tables_are_no_row_of_the_table_above(tmp_path: Path, line: str) -> None:
    run = written(tmp_path, f"{WHOLE}{line}\n{WHOLE}")
    assert run.state == "interrupted"
    assert times_of(run.rows[0]) == pytest.approx([1.5e-6, 1.6e-6] * 2)

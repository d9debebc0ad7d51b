"""OSU in Java and Python: their titles, names of columns and hosts, by the sources of 7.4."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import times_of, written

from fablint.errors import UsageError

JAVA_LATENCY = "# Size [B]\t\tLatency [us]\tBandwidth [Gb/s]\n8\t\t\t1.50\t\t\t0.04\n"
JAVA_RATE = "# Size [B]\t\tBandwidth [MB/s]\tBandwidth [Gb/s]\n8\t\t\t8.00\t\t\t0.06\n"
JAVA_OF_ALL = "# Size\t\tLat Avg[us]\t\tLat Min[us]\t\tLat Max[us]\n8\t\t1.50\t\t\t1.00\t\t\t2.00\n"
JAVA_BARRIER = "# Avg. Latency [us]\t\tMin. Latency [us]\t\tMax. Latency [us]\n  1.50\t\t\t\t1.00\t\t\t\t2.00\n"
PYTHON_LATENCY = "# Size (B)      Latency (us)\n8                       1.50\n"
PYTHON_RATE = "# Size (B)  Bandwidth (MB/s)\n8                       8.00\n"


@pytest.mark.parametrize(
    ("title", "table", "kernel", "language", "seconds"),
    [
        ("OSU Latency Test", JAVA_LATENCY, "latency", "Java", 1.5e-6),
        ("OSU Bandwidth Test", JAVA_RATE, "bandwidth", "Java", 1e-6),
        ("OSU Bi-Bandwidth Test", JAVA_RATE, "bibandwidth", "Java", 2e-6),
        ("OSU Open MPI Bandwidth Test", JAVA_RATE, "bandwidth", "Java", 1e-6),
        ("OSU Allreduce Test", JAVA_OF_ALL, "allreduce", "Java", 1.5e-6),
        ("OSU ReduceScatter Test", JAVA_OF_ALL, "collective", "Java", 1.5e-6),
        ("OSU Barrier Test", JAVA_BARRIER, "barrier", "Java", 1.5e-6),
        ("OMB Python MPI Latency Test", PYTHON_LATENCY, "latency", "Python", 1.5e-6),
        ("OMB-Py MPI Bandwidth Test", PYTHON_RATE, "bandwidth", "Python", 1e-6),
        ("OMB-Py MPI Bi-Directional Bandwidth Test", PYTHON_RATE, "bibandwidth", "Python", 2e-6),
        ("OMB Python MPI Allgather Test", PYTHON_LATENCY, "allgather", "Python", 1.5e-6),
        ("OMB Python MPI Bcast Test", PYTHON_LATENCY, "collective", "Python", 1.5e-6),
        ("OSU MPI Latency Test v7.4", PYTHON_LATENCY.replace(" (B)", ""), "latency", "7.4", 1.5e-6),
    ],
)
def test_titles_and_columns(tmp_path: Path, title: str, table: str, kernel: str, language: str, seconds: float) -> None:
    run = written(tmp_path, f"# {title}\n{table}", ["n1", "n2"])
    (row,) = run.rows
    assert (run.state, row.kernel, row.facts.variant) == ("complete", kernel, language)
    assert times_of(row) == pytest.approx([seconds])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_java_names_the_hosts_of_its_ranks(tmp_path: Path, order: tuple[int, int]) -> None:
    lines = "".join(f"Proc <{rank}> on <nid00{rank}>\n" for rank in order)
    run = written(tmp_path, f"{lines}# OSU Latency Test\n{JAVA_LATENCY}")
    assert run.rank_host == ["nid000", "nid001"]
    assert run.facts.imported is not None
    assert run.facts.imported.lines_left_out == []


@pytest.mark.parametrize(
    "title", ["OSU UPC Barrier Latency Test v5.0", "OSU OpenSHMEM Put Test v5.0", "OSU Hello Test"]
)
def test_other_programs_are_refused(tmp_path: Path, title: str) -> None:
    with pytest.raises(UsageError):
        written(tmp_path, f"# {title}\n{PYTHON_LATENCY}", ["n1", "n2"])

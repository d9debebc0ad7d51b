"""A column that is not known is named: its figures are never read as those of another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fablint.errors import UsageError
from fablint.store import import_run

OSU = "# OSU MPI Latency Test v7.4\n# Size          {}\n8      1540  \n16     1550\n"
IMB = (
    "#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n# Benchmarking PingPong\n# #processes = 2\n"
    "       #bytes #repetitions      {}   Mbytes/sec\n            8         1000         1.25         6.40\n"
    "# All processes entering MPI_Finalize\n"
)
PERFTEST = (
    "   RDMA_Write BW Test\n #bytes     #iterations    BW peak[{0}]    BW average[{0}]\n"
    " 65536  5000   46885.43   46885.43\n"
)
NCCL = "# size count type redop root time algbw busbw {} #wrong\n4096 1024 float sum -1 10.0 4.00 6.00 1 0\n"
CSV = "src,dst,size,{}\nn1,n2,8,1.5\n"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (OSU.format("Latency (ns)"), "Latency (ns)"),
        (OSU.format("Bandwidth (GB/s)"), "Bandwidth (GB/s)"),
        (OSU.format("Avg Latency(us)   Jitter(us)"), "Jitter(us)"),
        (IMB.format("t[msec]"), "t[msec]"),
        (IMB.format("t_p99[usec]"), "t_p99[usec]"),
        (PERFTEST.format("KB/sec"), "BW average[KB/sec]"),
        (PERFTEST.format("TB/sec"), "BW average[TB/sec]"),
        (NCCL.format("gpu_time"), "gpu_time"),
        (CSV.format("bandwidth (gb/s)"), "bandwidth (gb/s)"),
    ],
)
def test_a_column_that_is_not_known_is_named(tmp_path: Path, text: str, column: str) -> None:
    path = tmp_path / "output.txt"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        import_run([path])
    assert f"'{column}'" in str(caught.value)


@pytest.mark.parametrize("column", ["Latency (ns)", "Latency (ms)", "Bandwidth (GB/s)"])
def test_a_table_that_is_not_known_beside_another_one(tmp_path: Path, column: str) -> None:
    path = tmp_path / "output.txt"
    title = "# OSU MPI Latency Test v7.4\n"
    path.write_text(OSU.format("Latency (us)") + OSU.format(column).removeprefix(title))
    run = import_run([path])
    times = np.asarray(run.rows[0].arrays["time_mean"])
    assert sorted(times[np.isfinite(times)].tolist()) == pytest.approx([1540e-6, 1550e-6])
    assert run.state == "interrupted"
    assert f"the column '{column}' is not known (line 5)" in run.facts.imported.missing[0]
    assert run.facts.imported.lines_left_out[0].text == column

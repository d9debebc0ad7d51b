"""Lines of programs that start OSU and nccl-tests, and the expressions with which they read the output, with fablint.

ReFrame: hpctestlib/microbenchmarks/mpi/osu.py and osu/__init__.py (4.x). SuperBench: cuda_nccl_bw_performance.py. The
counts are smaller here.
"""

from __future__ import annotations

import re
from itertools import takewhile

import pytest

from fablint_command import Fablint

# Line of ReFrame -> size whose figure it reads.
REFRAME = {
    "osu_bw -m 4194304 -x 1 -i 2 D D": 4194304,
    "osu_latency -m 8 -x 10 -i 100 D D": 8,
    "osu_alltoall -m 8 -x 10 -i 100": 8,
    "osu_allreduce -m 8 -x 10 -i 100": 8,
    "osu_bw -x 1 -i 2": 4194304,
    "osu_latency -x 1 -i 2 H H": 8,
}


@pytest.fixture
def output(fablint_in_process: Fablint, mpicxx):
    """Return what `fablint bench` prints for a line."""

    def call(line: str) -> str:
        chosen = ["--mpicxx", str(mpicxx)] if mpicxx else []
        done = fablint_in_process("-q", "bench", *line.split(), *chosen)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.mark.parametrize("line", REFRAME)
def test_reframe_finds_its_figure(output, line):
    found = re.findall(rf"^{REFRAME[line]}\s+(\S+)", output(line), re.M)
    assert len(found) == 1 and float(found[0]) > 0


@pytest.mark.parametrize("program", ["all_reduce_perf", "all_gather_perf", "broadcast_perf", "reduce_scatter_perf"])
def test_superbench_finds_its_bus_bandwidth(output, program):
    """It begins four lines after `out-of-place`, ends at `Out of bounds values` or at the first line of ten cells or
    less, and takes the largest of the sixth cells from the end.
    """
    lines = output(f"{program} -b 1 -e 4K -f 2 -g 2 -c 0 --transport mpi").splitlines()
    (head,) = [number for number, line in enumerate(lines) if "out-of-place" in line]
    (end,) = [number for number, line in enumerate(lines) if "Out of bounds values" in line]
    cells = [*takewhile(lambda row: len(row) > 10, (line.split() for line in lines[head + 4 : end]))]
    assert int(cells[-1][0]) == 4096
    assert len(cells) >= 7
    assert [float(row[-6]) for row in cells] == [float(row[7]) for row in cells]
    assert all(float(row[5]) > 0 for row in cells)  # times: 4 KiB in 1 ms are 0.00 GB/s

"""What launchers and libraries add to an output changes no figure: labels of lines, and lines of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fablint.store import import_run
from fablint.store.importing.launcher_text import has_figures, is_noise
from pinned import pinned_by

PINNED = pinned_by("store.toml", __file__)

OSU = """# OSU MPI Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       1.88
2                       1.84
1048576               104.30
"""
NCCL = """# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#  Rank  0 Group  0 Pid 71 on  n1 device  0 [0x01] NVIDIA H100
#  Rank  1 Group  0 Pid 44 on  n2 device  0 [0x0f] NVIDIA H100
#     size       count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
           8             2     float     sum      -1    10.50    0.00    0.00      0    11.50    0.00    0.00      0
          16             4     float     sum      -1    10.75    0.00    0.00      0    11.75    0.00    0.00      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.0
"""
LABELS = [
    "[1,0]<stdout>:",
    "[1,0]<stdout>: ",
    "[prterun-nodea-100629@1,0]<stdout>: ",
    "[prterun-n1-629@1,0][n1:629]<stdout>: ",
    "Tue Nov  3 10:00:00 2026[1,0]<stdout>:",
    "[0] ",
    "0: ",
    "  3: ",
    "nid001234 0: ",
    "nid001234: ",
    "2026-11-03T10:00:00.123456789Z ",
    "[pod/mpi-launcher-x7/launcher] ",
    "2026-11-03T10:00:00Z [1,0]<stdout>:",
    "launcher-1  | ",
    "[pod/mpi-launcher-x7/launcher] 2026-11-03T10:00:00.123456789Z ",
    "[pod/mpi-launcher-x7/launcher] [1,0]<stdout>:",
    "Nov  3 10:00:00 n1 osu_latency[4711]: ",
    "2026-11-03T10:00:00+0000 n1 mpirun[4711]: ",
    "[0@nid001] ",
    "[0]:",
    "[rank 0] ",
    "[n1:0] ",
    "[0/16]: ",
    "[1714550000.123456] ",
    "[2026-11-03 10:00:00] ",
    "[Tue Nov  3 10:00:00 2026] ",
    "10:00:00.123 ",
    "2026-11-03T10:00:00.123Z stdout F ",
    "(0) ",
    "0:n1 ",
    "n1> ",
    "> ",
    ">> ",
    "\t",
]
NOISE = [
    "nodea:12171:12000 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
    "nodea:12171:12000 [0] misc/socket.cc:50 NCCL WARN Net : Connection refused",
    "NCCL version 2.19.3+cuda12.2",
    "[1697219058.250608] [nodea:3738 :0]     ucp_context.c:2129 UCX  INFO  Version 1.16.0 (loaded from libucp.so.0)",
    "libfabric:4711:1697219058::core:core:cuda_hmem_dl_init():421<warn> Failed to dlopen libcuda.so",
    "[inst-ub24:35062] Rank 0 bound to package[0][core:0]",
    "[n1:00214] mca_base_component_repository_open: unable to open mca_btl_openib",
    "========================   JOB MAP   ========================",
    "Data for node: nodea\tNum slots: 64\tMax slots: 0\tNum procs: 1",
    "        Process jobid: prterun-nodea-3734@1 App: 0 Process rank: 0 Bound: package[0][core:0]",
    "[0] MPI startup(): Intel(R) MPI Library, Version 2021.9  Build 20230306",
    "srun: job 4711 has been allocated resources",
    "slurmstepd: info: task 0 exited",
    "Loading openmpi/5.0.3",
    "Currently Loaded Modulefiles:",
    "PE 0: MPICH processor detected:",
    "+ mpirun -n 2 osu_latency",
    "real\t0m12.345s",
    "--------------------------------------------------------------------------",
]


def means(folder: Path, text: str) -> list[list[float]]:
    path = folder / "output.txt"
    path.write_text(text)
    run = import_run([path])
    assert run.state == "complete", run.facts.imported
    return [times[np.isfinite(times)].tolist() for times in (np.asarray(row.arrays["time_mean"]) for row in run.rows)]


@pytest.mark.parametrize("output", [OSU, NCCL], ids=["osu", "nccl"])
@pytest.mark.parametrize("label", LABELS)
def test_the_label_of_a_launcher_is_removed(tmp_path: Path, label: str, output: str) -> None:
    labelled = "".join(f"{label}{line}\n" for line in output.splitlines())
    assert means(tmp_path, labelled) == means(tmp_path, output)


@pytest.mark.parametrize("output", [OSU, NCCL], ids=["osu", "nccl"])
def test_any_amount_of_noise_changes_nothing(tmp_path: Path, output: str) -> None:
    lines = output.splitlines()
    noisy = [*NOISE * 5, lines[0], *NOISE * 3, *lines[1:3], *NOISE, *lines[3:], *NOISE * 5, ""]
    assert means(tmp_path, "\n".join(noisy)) == means(tmp_path, output)


@pytest.mark.parametrize("line", NOISE)
def test_what_launchers_and_libraries_print_is_noise(line: str) -> None:
    assert is_noise(line)
    assert not has_figures(line)


@pytest.mark.parametrize(
    "line", ["1048576               104.30", "8,1.5", "# Size  Latency (us)", "16 4 float sum -1 10.75"]
)
def test_data_is_no_noise(line: str) -> None:
    assert not is_noise(line)


def test_a_row_of_figures_that_belongs_to_no_table_makes_a_file_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "output.txt"
    path.write_text(OSU.replace("2                       1.84", "2 1.84 7 9"))
    run = import_run([path])
    assert run.state == "interrupted"
    assert run.facts.imported.missing == [PINNED["output.txt: 1 row of figures"]]

"""Sends, receives and collectives of NCCL, over its fake of engine/tests/fakes, and over NCCL where there are GPUs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from real_gpus import problem
from real_mpi import LIMIT_S, Mpi, Ranks, one_line

from fablint.store import read_run
from fact_cases import attributes_of
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

CHECKED = "--transport nccl --sizes 8,64K --samples 3 --warmup 1 --validate"
PLAN = [
    *(f"{kernel} {CHECKED}" for kernel in ("latency", "bandwidth", "bibandwidth", "exchange")),
    *(f"{kernel} {CHECKED}" for kernel in ("bcast", "allreduce", "allgather", "reduce_scatter", "alltoall")),
    *(f"{kernel} {CHECKED} --in-place" for kernel in ("bcast", "allreduce", "allgather", "reduce_scatter")),
    "barrier --transport nccl --samples 3",
    "alltoall --name odd --transport nccl --sizes 7 --samples 3 --validate",
    "allreduce --name batch --transport nccl --sizes 8 --iterations 20 --batch 20",
    "bandwidth --name hub --transport nccl --pattern fan-in --sizes 8 --samples 3 --validate",
    "bandwidth --name all --transport nccl --pattern all-pairs --sizes 8 --samples 3 --validate",
]
SHARED = (
    "NCCL: communicator of all ranks (every rank needs a GPU of its own): invalid usage (5): NCCL_DEBUG=WARN shows the "
    "reason"
)


def nccl_problem(fewest: int) -> str:
    """Why NCCL cannot be used here with so many GPUs; '' if it can."""
    try:
        ctypes.CDLL("libnccl.so.2")
    except OSError as error:
        return str(error)
    return problem(fewest)


def test_every_operation_moves_every_byte(mpi: Mpi, four_fake_gpus: Path, tmp_path: Path) -> None:
    lines = [*PLAN, f"reduce_scatter --name rccl {CHECKED} --memory hip"]
    ended = mpi.run(3, "--plan", "-", "-o", tmp_path / "a.run", text="\n".join(lines))
    assert ended.status == 0, ended.errors
    assert "fake lib" not in ended.errors
    rows = {row.name: attributes_of(row) for row in read_run(tmp_path / "a.run").rows}
    assert len(rows) == len(lines)
    assert {attributes["memory"] for name, attributes in rows.items() if name != "rccl"} == {"cuda"}
    assert rows["batch"]["batch"] == 20


def test_every_operation_moves_every_byte_between_gpus(mpi: Mpi, tmp_path: Path) -> None:
    if why := nccl_problem(2):
        pytest.skip(f"no NCCL: {why}")
    ended = mpi.run(2, "--plan", "-", "-o", tmp_path / "a.run", text="\n".join(PLAN))
    assert ended.status == 0, ended.errors


def test_every_operation_moves_every_byte_between_processes_of_one_gpu(mpi: Mpi, tmp_path: Path) -> None:
    """NCCL takes ranks with different names of their hosts for ranks of two hosts, and connects them over TCP."""
    if why := nccl_problem(1):
        pytest.skip(f"no NCCL: {why}")
    (tmp_path / "plan").write_text("\n".join(PLAN))
    with Ranks(mpi.engine) as both:
        first = both.start(row=f"--plan {tmp_path / 'plan'} -o {tmp_path / 'a.run'}", NCCL_HOSTID="a")
        both.start(NCCL_HOSTID="b")
        _, errors = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 0, errors
    assert [row.facts.state for row in read_run(tmp_path / "a.run").rows] == ["complete"] * len(PLAN)


def test_two_ranks_with_one_gpu_are_refused_by_nccl(mpi: Mpi) -> None:
    if (why := nccl_problem(1)) or not problem(2):
        pytest.skip(f"no NCCL with one GPU: {why or 'this host has more'}")
    ended = mpi.run(2, "latency", "--transport", "nccl", "-q")
    assert (ended.status, one_line(ended.error_lines)) == (2, SHARED)


def test_a_communicator_that_fails_ends_the_run_with_its_error(
    mpi: Mpi, four_fake_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ("latency", "--transport", "nccl", "--sizes", "8", "-q")
    with monkeypatch.context() as setting:
        setting.setenv("FAKE_NCCL_ASYNC", "0:30:6")
        errors = mpi.run(2, *row).errors
    assert "failed: rank 1 " in errors
    assert PINNED["partner 0: NCCL: communicator"] in errors
    with monkeypatch.context() as setting:
        setting.setenv("FAKE_NCCL_INIT", "0:3")
        ended = mpi.run(2, *row)
    assert ended.status == 3
    assert PINNED["NCCL: communicator of all"] in one_line(ended.error_lines)
    monkeypatch.setenv("FAKE_GPU_DEVICES", "1")
    ended = mpi.run(2, *row)
    assert (ended.status, one_line(ended.error_lines)) == (2, SHARED)


def test_a_missing_library_says_how_to_get_it(
    mpi: Mpi, fake_drivers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not nccl_problem(0):
        pytest.skip("NCCL is installed here")
    shutil.copy(fake_drivers / "libcuda.so.1", tmp_path)
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "libcuda.so.1"))
    ended = mpi.run(2, "latency", "--transport", "nccl", "-q")
    assert ended.status == 2
    assert PINNED["libnccl.so.2: cannot open"].begins(one_line(ended.error_lines))
    assert "load the NCCL module or install NCCL" in ended.errors


def test_host_memory_is_refused(mpi: Mpi) -> None:
    ended = mpi.run(2, "latency", "--transport", "nccl", "--memory", "host", "-q")
    assert (ended.status, one_line(ended.error_lines)) == (
        2,
        PINNED["--memory host does not apply"],
    )


MISUSES = {
    "the end of a group that did not begin": "nccl.ncclGroupEnd()",
    "no device memory at this address": "nccl.ncclSend(data + 4096, size(8), 1, 0, comm, None)",
    "a communicator that is not open": "nccl.ncclCommDestroy(comm); nccl.ncclCommAbort(comm)",
    "buffers that overlap": "nccl.ncclAllReduce(data, data + 4, size(2), 7, 0, comm, None)",
    "a rank that does not exist": "nccl.ncclRecv(data, size(8), 1, 1, comm, None)",
    "not released at the end": "pass",
}
ALONE = """
import ctypes, sys
cuda, nccl = (ctypes.CDLL(f"{sys.argv[1]}/{name}") for name in ("libcuda.so.1", "libnccl.so.2"))
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
size, context, memory, handle, own = ctypes.c_size_t, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), Id()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(memory), size(16))
nccl.ncclGetUniqueId(ctypes.byref(own))
nccl.ncclCommInitRank(ctypes.byref(handle), 1, own, 0)
for function in (nccl.ncclSend, nccl.ncclRecv):
    function.argtypes = [ctypes.c_void_p, size, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
nccl.ncclAllReduce.argtypes = [*[ctypes.c_void_p] * 2, size, *[ctypes.c_int] * 2, *[ctypes.c_void_p] * 2]
nccl.ncclCommDestroy.argtypes = nccl.ncclCommAbort.argtypes = [ctypes.c_void_p]
data, comm = memory.value, handle.value
"""


@pytest.mark.parametrize("misuse", MISUSES)
def test_the_fake_detects_a_wrong_use(fake_drivers: Path, misuse: str) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", ALONE + MISUSES[misuse], fake_drivers], capture_output=True, text=True, check=False
    )
    assert misuse in done.stderr

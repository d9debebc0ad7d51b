"""Message buffers in memory of GPUs, in huge pages and on a NUMA node."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_gpus import bytes_of_gpu, problem
from real_mpi import Mpi, one_line

from fablint.model import Row
from fablint.store import read_run
from fact_cases import attributes_of
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

CHECKED = "--sizes 8,64K --samples 3 --warmup 1 --validate"


@pytest.fixture(params=["fake", "real"])
def gpus(request: pytest.FixtureRequest) -> str:
    """Which GPUs the test uses: two of the fake driver, or those of this machine."""
    if request.param == "fake":
        request.getfixturevalue("fake_gpus")
    elif why := problem():
        pytest.skip(f"no GPU: {why}")
    return str(request.param)


def rows_of(path: Path) -> list[Row]:
    return list(read_run(path).rows)


def test_messages_of_gpu_memory_arrive(mpi: Mpi, gpus: str, tmp_path: Path) -> None:
    lines = [
        f"{kernel} {CHECKED} --memory cuda --transport {transport}"
        for kernel in ("latency", "bandwidth", "bibandwidth", "exchange")
        for transport in ("mpi", "tcp")
    ]
    copies = ("to-device", "to-host", "within-device")
    lines += [f"gpu_loopback --name {copy} {CHECKED} --memory cuda --window 3 --copy {copy}" for copy in copies]
    if gpus == "fake":
        lines += [f"latency {CHECKED} --memory hip", f"gpu_loopback {CHECKED} --memory hip"]
    ended = mpi.run(3, "--plan", "-", "-o", tmp_path / "a.run", text="\n".join(lines))
    assert ended.status == 0, ended.errors
    assert "fake lib" not in ended.errors
    rows = rows_of(tmp_path / "a.run")
    assert [row.facts.state for row in rows] == ["complete"] * len(lines)
    assert {row.facts.carrier.gpu_path for row in rows if row.facts.carrier.transport == "tcp"} == {"staged"}
    for row in rows:
        if row.facts.kernel == "gpu_loopback":
            assert not row.facts.carrier.gpu_path  # it sends no message
            assert (row.arrays["count"][:] == 3).all()  # each rank, at each size
    if gpus == "fake":  # sysfs does not list these cards: their addresses stand for them
        attributes = attributes_of(read_run(tmp_path / "a.run"))
        assert attributes["rank_gpu"] == ["0000:1a:00.0", "0000:2a:00.0", "0000:1a:00.0"]
        assert attributes["rank_gpu_model"] == ["fake GPU of libcuda"] * 3
    assert PINNED["bandwidth-2: messages"] in ended.errors


def test_each_half_of_the_ranks_has_a_memory_of_its_own(mpi: Mpi, gpus: str, tmp_path: Path) -> None:
    sides = ("--memory cuda --peer-memory host", "--memory host --peer-memory cuda")
    lines = [
        f"{kernel} {CHECKED} --pattern {pattern} --transport {transport} {side}"
        for kernel in ("latency", "bandwidth", "bibandwidth")
        for pattern in ("pair", "pairs")
        for transport in ("mpi", "tcp")
        for side in sides
    ]
    ended = mpi.run(3, "--plan", "-", "-q", "-o", tmp_path / "a.run", text="\n".join(lines))
    assert ended.status == 0, ended.errors
    rows = rows_of(tmp_path / "a.run")
    assert [row.facts.state for row in rows] == ["complete"] * len(lines)
    assert [row.medium.memories for row in rows[:2]] == [("cuda", "host"), ("host", "cuda")]
    assert {row.facts.carrier.gpu_path for row in rows if row.facts.carrier.transport == "tcp"} == {"staged"}
    assert not any(row.facts.result.corrupt for row in rows)


def test_two_memories_are_those_of_pairs_and_of_gpus_of_one_kind(mpi: Mpi, fake_gpus: Path) -> None:
    for words in ("--pattern all-pairs --memory cuda --peer-memory host", "--memory cuda --peer-memory hip"):
        ended = mpi.run(2, "latency", *words.split(), "-q")
        assert ended.status == 2
        assert "--peer-memory" in one_line(ended.error_lines)


def test_too_little_gpu_memory_ends_the_row_and_keeps_the_earlier_ones(
    mpi: Mpi, fake_gpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU_BYTES", "100000")
    lines = ["latency --sizes 8 --samples 3 --memory cuda", "bandwidth --sizes 64K --samples 3 --memory cuda"]
    ended = mpi.run(2, "--plan", "-", "-q", "-o", tmp_path / "a.run", text="\n".join(lines))
    assert ended.status == 3, ended.errors
    assert PINNED["cuda: GPU memory of 4194304"].begins(one_line(ended.error_lines))
    run = read_run(tmp_path / "a.run")
    assert [(row.name, row.facts.state) for row in run.rows] == [("latency", "complete")]
    assert run.facts.state == "interrupted"


def test_a_full_gpu_ends_the_row_and_keeps_the_earlier_ones(mpi: Mpi, tmp_path: Path) -> None:
    if why := problem():
        pytest.skip(f"no GPU: {why}")
    window = bytes_of_gpu() // (1 << 30) + 1
    lines = ["latency --sizes 8 --samples 3", f"bandwidth --sizes 1G --window {window} --samples 3"]
    plan = "\n".join(f"{line} --memory cuda --transport tcp" for line in lines)
    ended = mpi.run(2, "--plan", "-", "-q", "-o", tmp_path / "a.run", text=plan)
    assert ended.status == 3, ended.errors
    assert PINNED["cuda: GPU memory of window"].filled(window=window << 30).begins(one_line(ended.error_lines))
    assert [row.facts.state for row in rows_of(tmp_path / "a.run")] == ["complete"]


def test_one_gpu_is_measured_by_one_rank(mpi: Mpi, gpus: str, tmp_path: Path) -> None:
    ended = mpi.run(1, "gpu_loopback", *CHECKED.split(), "--memory", "cuda", "-o", tmp_path / "a.run")
    assert ended.status == 0, ended.errors
    (row,) = rows_of(tmp_path / "a.run")
    assert (row.arrays["count"][:] == 3).all()
    refused = mpi.run(1, "allreduce", "-q")
    assert PINNED["pattern world needs at least"].begins(one_line(refused.error_lines))


def test_a_kernel_that_gpu_memory_does_not_allow_is_refused(mpi: Mpi, fake_gpus: Path) -> None:
    ended = mpi.run(2, "allreduce", "--memory", "cuda", "--transport", "mpi", "-q")
    assert ended.status == 2
    assert one_line(ended.error_lines) == PINNED["allreduce requires a transport"]


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ("host-numa:99", "--memory host-numa:99: the NUMA nodes with memory of this host are 0"),
        ("host-huge", "--memory host-huge: no huge pages for a message buffer of "),
    ],
)
def test_host_memory_that_the_host_does_not_have_is_refused(mpi: Mpi, memory: str, message: str) -> None:
    if memory == "host-huge" and "HugePages_Free:        0\n" not in Path("/proc/meminfo").read_text():
        pytest.skip("huge pages are reserved here")
    ended = mpi.run(2, "latency", "--memory", memory, "-q")
    assert ended.status == 2
    assert message in one_line(ended.error_lines)


def test_memory_of_a_numa_node_carries_messages(mpi: Mpi, tmp_path: Path) -> None:
    ended = mpi.run(2, "put_latency", *CHECKED.split(), "--memory", "host-numa:0", "-q", "-o", tmp_path / "a.run")
    assert ended.status == 0, ended.errors
    assert rows_of(tmp_path / "a.run")[0].facts.carrier.memory == "host-numa:0"

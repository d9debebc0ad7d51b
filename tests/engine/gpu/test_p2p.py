"""Peer copies between the GPUs of a host: over the fake driver of engine/tests/fakes, and over GPUs where there are."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_gpus import driver_with_addresses, problem
from real_mpi import LIMIT_S, Mpi, Ranks, one_line, wait_until

from fablint.store import read_run
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

CHECKED = "--sizes 8,64K --samples 3 --warmup 1 --validate"
PLAN = [
    *(f"{kernel} {CHECKED}" for kernel in ("latency", "bandwidth", "bibandwidth", "exchange")),
    *(f"{kernel} {CHECKED}" for kernel in ("put_latency", "put_bandwidth", "get_latency", "get_bandwidth")),
    "latency --name empty --sizes 0 --samples 3 --validate",
    # More windows than an inbox has room for, and messages that have one buffer.
    "bandwidth --name one-buffer --sizes 8 --window 500 --buffers single --samples 3",
    "latency_mp --sizes 8 --samples 3 --validate",
]
OF_ALL_RANKS = [
    "bandwidth --name again --pattern all-pairs --repeats 4 --reconnect --sizes 8 --samples 3 --validate",
    "get_latency --name read-all --pattern all-pairs --sizes 8 --samples 3 --validate",
    "bandwidth --name fan-in --pattern fan-in --sizes 8,64K --samples 3 --validate",
    "bandwidth --name fan-out --pattern fan-out --sizes 8,64K --samples 3 --validate",
    "latency --name loaded --pattern victim-aggressor --sizes 8 --samples 3",
]


def over(lines: list[str], transport: str) -> str:
    return "\n".join(f"{line} --transport {transport}" for line in lines)


@pytest.mark.parametrize("transport", ["cuda-p2p", "hip-p2p"])
def test_every_message_arrives_in_the_memory_of_the_peer(
    mpi: Mpi, four_fake_gpus: Path, tmp_path: Path, transport: str
) -> None:
    lines = PLAN + OF_ALL_RANKS if transport == "cuda-p2p" else PLAN[:5]
    ended = mpi.run(4, "--plan", "-", "-o", tmp_path / "a.run", text=over(lines, transport))
    assert ended.status == 0, ended.errors
    assert "fake lib" not in ended.errors  # no call in a wrong order, of a wrong stream or pointer; nothing left
    run = read_run(tmp_path / "a.run")
    assert [row.facts.state for row in run.rows] == ["complete"] * len(lines)
    for row in run.rows:
        assert row.facts.carrier.memory == transport.removesuffix("-p2p")
        assert row.facts.carrier.gpu_path == "direct"
        assert set(row.facts.carrier.devices) == {"peer access with atomics"}
    assert run.facts.rank_gpu == ["0000:1a:00.0", "0000:2a:00.0", "0000:3a:00.0", "0000:4a:00.0"]


def test_every_message_arrives_between_gpus(mpi: Mpi, tmp_path: Path) -> None:
    if why := problem(2):
        pytest.skip(f"no copies between GPUs: {why}")
    ended = mpi.run(2, "--plan", "-", "-o", tmp_path / "a.run", text=over(PLAN, "cuda-p2p"))
    assert ended.status == 0, ended.errors


def test_every_message_arrives_between_processes_of_one_gpu(mpi: Mpi, tmp_path: Path) -> None:
    """Memory of the GPU that the other process has mapped, with a real driver."""
    if why := problem():
        pytest.skip(f"no GPU: {why}")
    path = f"{driver_with_addresses(tmp_path)}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    (tmp_path / "plan").write_text(over(PLAN, "cuda-p2p"))
    with Ranks(mpi.engine) as both:
        row = f"--plan {tmp_path / 'plan'} -o {tmp_path / 'a.run'}"
        first = both.start(row=row, LD_LIBRARY_PATH=path, RANK_PCI="0000:01:00.0")
        both.start(LD_LIBRARY_PATH=path, RANK_PCI="0000:02:00.0")
        _, errors = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 0, errors
    rows = read_run(tmp_path / "a.run").rows
    assert [row.facts.state for row in rows] == ["complete"] * len(PLAN)
    assert {row.facts.carrier.gpu_path for row in rows} == {"direct"}


def test_the_run_says_what_the_links_are(
    mpi: Mpi, four_fake_gpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU_NO_ATOMICS", "0-2")
    line = "latency --pattern all-pairs --sizes 8 --samples 3 --transport cuda-p2p"
    ended = mpi.run(3, *line.split(), "-o", tmp_path / "a.run")
    assert ended.status == 0, ended.errors
    (row,) = read_run(tmp_path / "a.run").rows
    both = "peer access with atomics; peer access without atomics"
    assert row.facts.carrier.devices == {both: "0,2", "peer access with atomics": "1"}


def test_gpus_without_access_to_each_other_are_named(
    mpi: Mpi, four_fake_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU_NO_ACCESS", "0-1")
    ended = mpi.run(2, "latency", "--transport", "cuda-p2p", "-q")
    assert ended.status == 3
    assert PINNED["partner 0: cuda-p2p"] in ended.errors


@pytest.mark.parametrize(
    ("ranks", "arguments", "message"),
    [
        (
            5,
            "latency",
            "cuda-p2p copies between GPUs, and ranks 0 and 4 have the same one, 0000:1a:00.0 of ",
        ),
        (
            2,
            "latency --memory hip",
            "--memory hip does not apply to transport cuda-p2p: it moves memory of GPUs only, use --memory cuda",
        ),
        (
            2,
            "put_bibandwidth",
            "put_bibandwidth requires a transport with a --sync of both ends, which cuda-p2p does not offer: choose "
            "another --transport",
        ),
        (2, "put_latency --sync pscw", "--sync pscw does not apply to transport cuda-p2p: choose one of flush"),
    ],
)
def test_what_peer_copies_cannot_do_is_refused(
    mpi: Mpi, four_fake_gpus: Path, ranks: int, arguments: str, message: str
) -> None:
    ended = mpi.run(ranks, *arguments.split(), "--transport", "cuda-p2p", "-q")
    assert ended.status == 2
    assert one_line(ended.error_lines).startswith(message)


def test_too_little_memory_of_a_gpu_ends_the_row_and_leaves_nothing(
    mpi: Mpi, four_fake_gpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU_BYTES", "100000")
    lines = ["latency --sizes 8 --samples 3", "latency --sizes 80K --samples 3"]
    ended = mpi.run(2, "--plan", "-", "-q", "-o", tmp_path / "a.run", text=over(lines, "cuda-p2p"))
    assert ended.status == 3, ended.errors
    assert PINNED["cuda: GPU memory of 81920"].begins(one_line(ended.error_lines))
    assert "fake lib" not in ended.errors
    assert [row.facts.state for row in read_run(tmp_path / "a.run").rows] == ["complete"]


@pytest.fixture
def ranks(mpi: Mpi) -> Iterator[Ranks]:
    with Ranks(mpi.engine) as both:
        yield both


def test_a_rank_that_is_killed_is_named(four_fake_gpus: Path, ranks: Ranks, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    row = f"latency --transport cuda-p2p --sizes 8 --repeats 10000 --budget 0.02 -o {path}"
    first, second = ranks.start(row=row), ranks.start()
    wait_until(lambda: any(path.glob("latency/count/c.*")), "the first cell on the disk")
    second.kill()
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 3, errors
    assert re.search(r"^fablint-engine: failed: rank 1 ", errors, re.M), errors
    assert read_run(path).rows[0].arrays["count"][:].any()  # what was measured is kept


def test_a_pair_of_two_hosts_is_refused_before_anything_is_measured(
    four_fake_gpus: Path, ranks: Ranks, tmp_path: Path
) -> None:
    renamed = ["unshare", "--uts", "sh", "-c", 'hostname other && exec "$@"', "sh"]
    if subprocess.run([*renamed, "true"], capture_output=True, check=False).returncode:
        pytest.skip("another name for a host needs root")
    plan = tmp_path / "plan.txt"
    plan.write_text("latency --transport tcp --sizes 8\nlatency --name far --transport cuda-p2p --pattern all-pairs\n")
    first = ranks.start(row=f"--plan {plan} -o {tmp_path / 'a.run'}")
    ranks.start(*renamed)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 2, errors
    here = os.uname().nodename
    assert PINNED["fablint-engine: error: transport"].filled(here=here) in errors
    assert not (tmp_path / "a.run").exists()

"""Remote memory access: every kernel in every kind of window, with every synchronisation, and the servers of requests.

Rows of one number of ranks go through one launch, as lines of a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from real_mpi import Mpi, one_line

from fablint.store import read_run

NUMBERS = ("cas", "fop")
WINDOWED = ("put_bandwidth", "put_bibandwidth", "get_bandwidth")
KERNELS = ("put_latency", "get_latency", "accumulate", "get_accumulate", *NUMBERS, *WINDOWED)
REQUESTS = ("rpc_put", "rpc_get")
WINS = ("create", "allocate", "dynamic")
PASSIVE = ("lock", "flush", "flush_local", "lock_all")
BOTH_SIDES = ("pscw", "fence")


def swaps_crash(mpi: Mpi) -> bool:
    """Open MPI before 5 crashes when 8 bytes are swapped in a window that it has allocated (open-mpi/ompi 7967)."""
    found = re.search(r"Open(?: MPI|RTE)\)? (\d+)", mpi.mpiexec.version)
    return found is not None and int(found[1]) < 5


def rows(mpi: Mpi, ranks: int) -> Iterator[tuple[str, str, str]]:
    """Every kernel, window and synchronisation that goes together."""
    for kernel, win, sync in product(KERNELS, WINS, PASSIVE + BOTH_SIDES):
        alone = kernel == "put_bibandwidth" and sync in PASSIVE
        too_many = sync == "fence" and ranks != 2
        crash = kernel == "cas" and win == "allocate" and swaps_crash(mpi)
        if not (alone or too_many or crash):
            yield kernel, win, sync
    for kernel, win in product(REQUESTS, WINS):
        yield kernel, win, "flush"


def name(kernel: str, win: str, sync: str) -> str:
    return f"{kernel}-{win}-{sync}"


def line(kernel: str, win: str, sync: str, options: str, sizes: str = "8,5000") -> str:
    words = [kernel, "--name", name(kernel, win, sync), "--win", win, "--validate", options]
    words += ["--sizes", "8" if kernel in NUMBERS else sizes]
    words += [] if kernel in REQUESTS else ["--sync", sync]
    words += ["--window", "5"] if kernel in WINDOWED + REQUESTS else []
    return " ".join(words)


@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (3, 5))])
def test_every_window_and_synchronisation_moves_every_byte(mpi: Mpi, tmp_path: Path, ranks: int) -> None:
    asked = list(rows(mpi, ranks))
    plan = "\n".join(line(*row, "--pattern pairs --samples 2 --warmup 3") for row in asked)
    ended = mpi.run(ranks, "--plan", "-", "-q", "-o", tmp_path / "a.run", text=plan, limit_s=600)
    assert ended.status == 0, ended.errors
    measured = read_run(tmp_path / "a.run").rows
    assert [row.name for row in measured] == [name(*row) for row in asked]
    for row, (kernel, win, sync) in zip(measured, asked, strict=True):
        assert row.facts.sampling.win == win
        assert kernel in REQUESTS or row.facts.sampling.sync == sync
        counts = row.arrays["count"][:]
        assert (counts > 0).all(axis=2).sum() == ranks // 2 * 2
        assert set(counts[counts > 0].tolist()) == {2}


def test_damage_is_found_in_every_window_and_synchronisation(mpi: Mpi) -> None:
    plan = "\n".join(line(*row, "--transport corrupt --samples 8", sizes="64") for row in rows(mpi, 2))
    ended = mpi.run(2, "--plan", "-", "-q", text=plan, limit_s=600)
    assert ended.status == 1, ended.errors
    found = re.findall(r"damaged: rank \d .* row (\S+)$", ended.errors, re.M)
    assert set(found) == {name(*row) for row in rows(mpi, 2)}


def test_one_warm_up_or_many_leave_sums_right(mpi: Mpi) -> None:
    kernels = ("accumulate", "get_accumulate", "fop")
    options = "--validate --samples 3 --sizes 8 --warmup"
    plan = "\n".join(f"{kernel} --name {kernel}-{n} {options} {n}" for kernel in kernels for n in (0, 20))
    ended = mpi.run(2, "--plan", "-", "-q", text=plan)
    assert ended.status == 0, ended.errors


@pytest.mark.parametrize("flight", [1, 3, 1000])
def test_a_server_works_on_as_many_requests_as_it_may(mpi: Mpi, tmp_path: Path, flight: int) -> None:
    options = f"--pattern clients-servers --servers 3 --server-flight {flight} --samples 3"
    plan = "\n".join(line(kernel, "allocate", "flush", options, sizes="1,5000") for kernel in REQUESTS)
    ended = mpi.run(8, "--plan", "-", "-q", "-o", tmp_path / "a.run", text=plan)
    assert ended.status == 0, ended.errors
    for row in read_run(tmp_path / "a.run").rows:
        assert int((row.arrays["count"][:] == 3).all(axis=2).sum()) == 5 * 3  # every client with every server


def test_a_server_finds_damage_whoever_sent_it(mpi: Mpi) -> None:
    ended = mpi.run(
        5, "rpc_get", "--pattern", "clients-servers", "--validate", "--transport", "corrupt", "--sizes", "64", "-q"
    )
    assert ended.status == 1, ended.errors
    assert re.search(r"damaged: rank 0 .* from rank [1-4] ", ended.errors)


def test_a_fence_is_for_two_ranks(mpi: Mpi) -> None:
    ended = mpi.run(3, "put_latency", "--sync", "fence")
    assert ended.status == 2
    assert re.match(r"--sync fence .*needs exactly 2\b.*\b3\b", one_line(ended.error_lines))


def test_a_swap_that_crashes_the_library_is_refused(mpi: Mpi) -> None:
    ended = mpi.run(2, "cas", "--win", "allocate", "--samples", "2", "-q")
    assert ended.status == (2 if swaps_crash(mpi) else 0), ended.errors
    assert ("choose --win create or dynamic" in ended.errors) == swaps_crash(mpi)

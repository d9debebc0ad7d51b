"""Every kernel and every pattern of the engine, with every payload checked, and with payloads that are damaged.

Rows of one number of ranks go through one launch, as lines of a plan.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_mpi import Ended, Mpi, Start, ranks_of, wait_until, with_signal

from fablint.model import Row
from fablint.model.registry import KERNELS
from fablint.store import read_run
from fact_cases import attributes_of
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

FAST = "--samples 3 --warmup 1"
SIZES = {
    name: kernel.sizes.removeprefix("only_") for name, kernel in KERNELS.items() if kernel.sizes.startswith("only_")
}
NOTHING_ARRIVES = {name for name, kernel in KERNELS.items() if kernel.payload == "none"}
OF_GPUS = {name for name, kernel in KERNELS.items() if not kernel.sends_messages}  # in test_memories.py

WITH_WORKERS = [name for name, kernel in KERNELS.items() if "workers" in kernel.options]


@cache
def listing(mpi: Mpi) -> dict[str, list[dict[str, Any]]]:
    ended = mpi.run(1, "--list")
    assert ended.status == 0, ended.errors
    return json.loads(ended.output)  # type: ignore[no-any-return]


def names(mpi: Mpi, table: str) -> list[str]:
    return [row["name"] for row in listing(mpi)[table]]


def kernels_of_host_memory(mpi: Mpi) -> list[dict[str, Any]]:
    return [kernel for kernel in listing(mpi)["kernels"] if kernel["name"] not in OF_GPUS]


def line(kernel: str, *options: str, sizes: str = "8,1K,64K") -> str:
    return " ".join([kernel, "--sizes", SIZES.get(kernel, sizes), *options])


def measure(mpi: Mpi, ranks: int, lines: Sequence[str], path: Path) -> tuple[Ended, dict[str, Row]]:
    """Measure a plan; its rows by their names."""
    ended = mpi.run(ranks, "--plan", "-", "--threads", "-q", "-o", path, text="\n".join(lines))
    return ended, {row.name: row for row in read_run(path).rows}


def sound(mpi: Mpi, ranks: int, lines: Sequence[str], path: Path) -> dict[str, Row]:
    """Measure a plan in which nothing goes wrong."""
    ended, rows = measure(mpi, ranks, lines, path)
    assert ended.status == 0, ended.errors
    assert all(row.facts.state == "complete" for row in rows.values())
    return rows


def cells(row: Row) -> list[list[tuple[int, int]]]:
    """Of a row of the list layout: the measured (src, dst) of each round, in the order of src."""
    measured = (row.arrays["count"][:] > 0).all(axis=2)
    partners = row.arrays["dst"][:]
    ranks, rounds = measured.shape
    return [[(src, int(partners[src, turn])) for src in range(ranks) if measured[src, turn]] for turn in range(rounds)]


def counts(row: Row) -> set[tuple[int, ...]]:
    """Samples per size, of all measured cells."""
    per_cell = row.arrays["count"][:].reshape(-1, row.arrays["size"].shape[0])
    return {tuple(cell) for cell in per_cell.tolist() if any(cell)}


def test_the_list_is_complete(mpi: Mpi) -> None:
    known = listing(mpi)
    assert list(known) == ["kernels", "patterns", "transports", "memories", "syncs", "wins", "benchmarks"]
    for table in known.values():
        assert table
        assert len({row["name"] for row in table}) == len(table)
        assert all(row["name"] and row["description"] for row in table)
    for kernel in known["kernels"]:
        assert kernel["quantity"] in {"latency", "bandwidth"}
        assert kernel["payload"] in {"src", "dst", "both", "none"}
        assert kernel["pattern"] in {"pair", "world"}


@pytest.mark.parametrize("ranks", [3, 8, pytest.param(2, marks=pytest.mark.long)])
def test_every_kernel_moves_every_byte(mpi: Mpi, tmp_path: Path, ranks: int) -> None:
    kernels = kernels_of_host_memory(mpi)
    lines = [line(kernel["name"], FAST, "--validate") for kernel in kernels]
    rows = sound(mpi, ranks, lines, tmp_path / "a.run")
    assert list(rows) == [kernel["name"] for kernel in kernels]
    for kernel in kernels:
        row = rows[kernel["name"]]
        world = kernel["pattern"] == "world"
        expected = [(rank, -1) for rank in range(ranks)] if world else [(0, 1), (1, 0)]
        assert cells(row) == [expected], row.name
        assert counts(row) == {(3,) * row.arrays["size"].shape[0]}
        assert (row.arrays["time_min"][:][row.arrays["count"][:] > 0] > 0).all()
        assert (row.facts.quantity, row.facts.payload) == (kernel["quantity"], kernel["payload"])


@pytest.mark.parametrize("ranks", [3, 8, pytest.param(2, marks=pytest.mark.long)])
def test_every_kernel_finds_damage_and_names_it(mpi: Mpi, tmp_path: Path, ranks: int) -> None:
    corrupt = "--transport corrupt --validate --samples 10 --warmup 0"
    lines = [line(kernel["name"], corrupt, sizes="64,1K") for kernel in kernels_of_host_memory(mpi)]
    ended, rows = measure(mpi, ranks, lines, tmp_path / "a.run")
    assert ended.status == 1, ended.errors
    assert {row.name for row in rows.values() if not row.facts.result.corrupt} == NOTHING_ARRIVES
    assert set(re.findall(r"damaged: rank \d+ .* row (\w+)$", ended.errors, re.M)) == set(rows) - NOTHING_ARRIVES
    assert "from rank -" not in ended.errors
    assert re.search(r"damaged: .* of all ranks, row allreduce$", ended.errors, re.M)
    for row in rows.values():
        world = row.facts.schedule.pattern == "world"
        for damage in row.facts.result.corrupt:
            assert 0 <= damage.offset < damage.size
            assert damage.size in row.arrays["size"][:]
            assert 0 <= damage.dst < (ranks if world else 2)
            assert -1 <= damage.src < ranks if world else damage.src == 1 - damage.dst


def test_results_of_collectives_replace_the_data(mpi: Mpi, tmp_path: Path) -> None:
    kernels = [name for name, kernel in KERNELS.items() if "in-place" in kernel.options]
    lines = [line(kernel, "--in-place", FAST, "--validate") for kernel in kernels]
    rows = sound(mpi, 3, lines, tmp_path / "a.run")
    assert all(row.facts.sampling.in_place for row in rows.values())


def test_calls_of_a_batch_are_one_sample(mpi: Mpi, tmp_path: Path) -> None:
    batch = [line(kernel, "--iterations 12 --batch 6", sizes="8") for kernel in ("reduce_scatter", "alltoall")]
    rows = sound(mpi, 2, [*batch, line("allreduce", "--iterations 12", sizes="8")], tmp_path / "a.run")
    assert {name: (counts(row), row.facts.sampling.batch) for name, row in rows.items()} == {
        "reduce_scatter": ({(2,)}, 6),
        "alltoall": ({(2,)}, 6),
        "allreduce": ({(12,)}, 1),
    }


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_an_empty_message_has_a_latency(mpi: Mpi, tmp_path: Path, ranks: int) -> None:
    empty = [kernel["name"] for kernel in listing(mpi)["kernels"] if kernel["empty"]]
    assert empty == [name for name, kernel in KERNELS.items() if kernel.accepts_size(0)]
    for row in sound(mpi, ranks, [line(kernel, FAST, sizes="0") for kernel in empty], tmp_path / "a.run").values():
        assert row.arrays["size"][:].tolist() == [0]
        assert row.arrays["time_min"][:][0, 0, 0] > 0


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_every_pattern_runs(mpi: Mpi, tmp_path: Path, ranks: int) -> None:
    patterns = names(mpi, "patterns")
    if ranks < 4:
        patterns.remove("victim-aggressor")
    kernel = {"world": "allgather"}
    extra = {"rounds": "--rounds 0-1;1-0"}
    lines = [
        f"{kernel.get(name, 'bandwidth')} --name in-{name} --pattern {name} {extra.get(name, '')} "
        f"--sizes 1K {FAST} --validate"
        for name in patterns
    ]
    rows = sound(mpi, ranks, lines, tmp_path / "a.run")
    assert list(rows) == [f"in-{name}" for name in patterns]
    half, pairs = ranks // 2, ranks * (ranks - 1)
    across = 2 * half * (ranks - half)
    cells_of = {
        "pair": 2,
        "pairs": 2 * half,
        "all-pairs": pairs,
        "bisection": across,
        "random": 8 * 2 * half,
        "rounds": 4,
        "fan-in": ranks - 1,  # the tests run on one host: rank 0 is the only hub
        "fan-out": ranks - 1,
        "clients-servers": ranks - 1,
        "world": ranks,
        "victim-aggressor": 4,
    }
    assert {name: int((row.arrays["count"][:] > 0).sum()) for name, row in rows.items()} == {
        f"in-{name}": cells_of[name] for name in patterns
    }


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_stars_name_their_hub_and_the_sender(mpi: Mpi, tmp_path: Path, ranks: int) -> None:
    rows = sound(
        mpi,
        ranks,
        [f"bandwidth --name {name} --pattern {name} --sizes 8,64K {FAST}" for name in ("fan-in", "fan-out")],
        tmp_path / "a.run",
    )
    for name, payload in (("fan-in", "src"), ("fan-out", "dst")):
        assert cells(rows[name]) == [[(leaf, 0) for leaf in range(1, ranks)]]
        assert rows[name].facts.payload == payload
        assert rows[name].facts.schedule.directions == "one"


@pytest.mark.parametrize("kernel", [name for name, kernel in KERNELS.items() if "servers" in kernel.groups])
def test_every_client_has_every_server_once(mpi: Mpi, tmp_path: Path, kernel: str) -> None:
    lines = [
        line(kernel, FAST, f"--validate --name s{servers} --pattern clients-servers --servers {servers}", sizes="1K")
        for servers in (1, 2, 5)
    ]
    rows = sound(mpi, 8, lines, tmp_path / "a.run")
    for servers in (1, 2, 5):
        row = rows[f"s{servers}"]
        met = [cell for turn in cells(row) for cell in turn]
        assert sorted(met) == [(client, server) for client in range(servers, 8) for server in range(servers)]
        assert row.facts.schedule.servers == servers
        assert row.facts.schedule.cells_per_round == 8 - servers


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("aggressor", ["incast", "all-to-all"])
def test_victims_are_measured_alone_and_beside_aggressors(mpi: Mpi, tmp_path: Path, ranks: int, aggressor: str) -> None:
    shape = f"--pattern victim-aggressor --aggressor {aggressor} --victims {ranks // 4} --repeats 2 --validate"
    rows = sound(mpi, ranks, [line(kernel, FAST, shape) for kernel in ("latency", "bandwidth")], tmp_path / "a.run")
    for row in rows.values():
        alone, loaded, *again = cells(row)
        assert alone == loaded
        assert len(alone) == 2 * (ranks // 4)
        assert again[0] == again[1]
        aggressors = row.facts.schedule.aggressors
        assert sorted([*aggressors, *{src for src, _ in alone}]) == list(range(ranks))


def test_victims_leave_no_aggressors(mpi: Mpi) -> None:
    ended = mpi.run(3, "latency", "--pattern", "victim-aggressor")
    assert ended.status == 2
    assert PINNED["victim-aggressor with 1 victim"] in ended.errors


def test_the_slowest_pairs_are_measured_again_one_by_one(mpi: Mpi, tmp_path: Path) -> None:
    rows = sound(mpi, 8, [f"latency --name all --pattern all-pairs --sizes 8,1K {FAST} --retest 3"], tmp_path / "a.run")
    assert list(rows) == ["all", "all-retest"]
    again = rows["all-retest"]
    assert again.facts.schedule.retest_of == "all"
    assert again.facts.schedule.order == "serial"
    assert again.facts.schedule.pattern == "rounds"
    pairs = [turn[0] for turn in cells(again)]
    assert all(turn == [(src, dst), (dst, src)] for turn, (src, dst) in zip(cells(again), pairs, strict=True))
    times = np.fmax(rows["all"].arrays["time_mean"][:][0, :, :, -1], 0)
    slowest = np.sort(np.maximum(times, times.T)[np.triu_indices(8, 1)])[-3:]
    assert sorted(max(times[pair], times[pair[::-1]]) for pair in pairs) == pytest.approx(slowest.tolist())


def test_iterations_are_counted_exactly(mpi: Mpi, tmp_path: Path) -> None:
    lines = [
        "latency --name by-ten --iterations 100,20 --batch 10 --sizes 8,8K,16K",
        "latency --name checked --iterations 12,5 --validate --sizes 8,16K",
        "bandwidth --name free --iterations 60,6 --sizes 8,16K",
        "allreduce --name world --iterations 9,4 --sizes 8,16K",
        "latency --name one --iterations 1 --warmup 0 --sizes 8",
    ]
    rows = sound(mpi, 2, lines, tmp_path / "a.run")
    assert counts(rows["by-ten"]) == {(10, 10, 2)}
    assert counts(rows["checked"]) == {(12, 5)}
    assert all(60 % small == 0 and 6 % large == 0 for small, large in counts(rows["free"]))
    assert counts(rows["world"]) == {(9, 4)}
    assert counts(rows["one"]) == {(1,)}
    assert attributes_of(rows["by-ten"])["stop"]["iterations"] == [100, 100, 20]


def test_one_direction_may_be_left_out(mpi: Mpi, tmp_path: Path) -> None:
    lines = [
        f"latency --name list --pattern pairs --directions single --sizes 8 {FAST}",
        f"put_latency --name matrix --pattern all-pairs --directions single --sizes 8 {FAST}",
    ]
    rows = sound(mpi, 5, lines, tmp_path / "a.run")
    assert cells(rows["list"]) == [[(0, 2), (1, 3)]]
    measured = rows["matrix"].arrays["count"][:][0, :, :, 0] > 0
    assert (measured ^ measured.T)[~np.eye(5, dtype=bool)].all()
    assert not np.diagonal(measured).any()
    assert {row.facts.schedule.directions for row in rows.values()} == {"single"}


def test_a_window_may_share_one_buffer(mpi: Mpi, tmp_path: Path) -> None:
    windowed = [kernel["name"] for kernel in kernels_of_host_memory(mpi) if kernel["windowed"]]
    assert "put_bandwidth" in windowed
    rows = sound(mpi, 2, [line(kernel, FAST, "--buffers single") for kernel in windowed], tmp_path / "a.run")
    assert {row.facts.sampling.buffers for row in rows.values()} == {"single"}
    assert {count for row in rows.values() for count in counts(row)} == {(3, 3, 3)}


@pytest.mark.parametrize("workers", ["1:1", "3:2"])
def test_workers_at_both_ends(mpi: Mpi, tmp_path: Path, workers: str) -> None:
    lines = [line(kernel, FAST, f"--workers {workers} --validate") for kernel in WITH_WORKERS]
    rows = sound(mpi, 3, lines, tmp_path / "a.run")
    assert all(row.facts.sampling.workers == [int(end) for end in workers.split(":")] for row in rows.values())
    assert {count for row in rows.values() for count in counts(row)} == {(3, 3, 3)}


def lives(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_forked_processes_end_with_their_rank(mpi: Mpi, started: Start) -> None:
    process = started(2, "latency_mp", "--workers", "3:4", "--sizes", "8", "--batch", "1000000", "--samples", "100")
    both_ends = 3 + 4
    wait_until(lambda: len(ranks_of(process)) == both_ends, "forking")
    everyone = ranks_of(process)
    for rank in everyone[:2]:  # the others were forked from them
        with_signal(rank, signal.SIGKILL)
    wait_until(lambda: not any(map(lives, everyone)), "their end")

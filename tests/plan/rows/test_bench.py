"""The rows behind `fablint bench`."""

from __future__ import annotations

import pytest

from fablint.errors import UsageError
from fablint.model import RowSpec, Slots
from fablint.plan import BenchRequest, bench_plan, bench_rows, every_row, measured_as, without_meaning
from fablint.plan.rows.bench_rows import MEMORY_LIMIT, osu_sizes
from fablint.plan.rows.row_text import parse_row
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)


@pytest.fixture
def rows(registry):
    """The rows of a benchmark as the engine gets them."""

    def plan(name: str, ranks: int = 2, **asked) -> list[RowSpec]:
        made = bench_plan(BenchRequest(name, ranks, **asked), registry)
        assert made.ranks == ranks
        return [row.spec for row in made.rows]

    return plan


@pytest.fixture
def refused(rows):
    def say(name: str, ranks: int = 2, **asked) -> str:
        with pytest.raises(UsageError) as caught:
            rows(name, ranks, **asked)
        assert caught.value.hint
        return str(caught.value)

    return say


def test_a_kernel_by_its_own_name_stops_when_it_is_sure(rows):
    (row,) = rows("latency", values={"sizes": tuple(1 << step for step in range(13))}, histogram=True)
    assert (row.name, row.kernel, row.pattern, row.sizes[-1], row.histogram) == (
        "latency",
        "latency",
        "pair",
        4096,
        True,
    )
    assert (row.iterations, row.samples, row.directions) == (None, None, "both")


@pytest.mark.parametrize(
    ("name", "ranks", "pattern"),
    [("bandwidth", 4, "pairs"), ("bandwidth", 2, "pair"), ("bcast", 4, "world"), ("osu_mbw_mr", 2, "pairs")],
)
def test_many_ranks_measure_side_by_side(rows, name, ranks, pattern):
    (row,) = rows(name, ranks)
    assert row.pattern == pattern


def test_what_measures_two_ranks_refuses_more(refused):
    assert refused("osu_latency", 4) == PINNED["osu_latency measures 2 ranks"]


def test_options_override_those_of_the_benchmark(rows):
    (row,) = rows("bw", values={"window": 8, "iterations": (7, 7), "validate": True})
    assert (row.name, row.window, row.iterations, row.warmup, row.validate) == ("osu_bw", 8, (7, 7), (10, 2), True)


@pytest.mark.parametrize("asked", [{"adaptive": True}, {"values": {"samples": 50}}])
def test_another_stopping_rule_takes_the_place_of_the_counts(rows, asked):
    (row,) = rows("osu_put_bw", **asked)
    assert row.iterations is None
    assert row.samples == (50 if "values" in asked else None)
    assert (row.window, row.warmup) == (64, (10, 2))


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"adaptive": True, "values": {"iterations": (5, 5)}}, "--adaptive excludes --iterations: give one rule"),
        ({"adaptive": True, "values": {"samples": 5}}, "--adaptive excludes --samples: give one rule"),
        ({"values": {"iterations": (5, 5), "samples": 5}}, "--iterations excludes --samples: give one rule"),
        ({"values": {"window": 5}, "vary_window": True}, "--vary-window goes through the windows by itself"),
        ({"message_size": "-8"}, "--sizes: '-8' is not a size"),
        ({"values": {"sync": "lock"}}, "--sync: the kernel has no choice of RMA synchronisation: leave --sync out"),
    ],
)
def test_contradictions(refused, asked, error):
    assert refused("osu_mbw_mr", **asked).startswith(error)


def test_the_windows_of_mbw_mr_are_a_row_each(rows):
    found = rows("mbw_mr", 4, vary_window=True, values={"sizes": (8,)})
    assert [row.window for row in found] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert [row.name for row in found][:2] == ["osu_mbw_mr-window-1", "osu_mbw_mr-window-2"]
    assert {row.sizes for row in found} == {(8,)}


@pytest.mark.parametrize(
    ("line", "text", "sizes"),
    [
        ("latency", "4K", "1:4K"),
        ("latency", "0:8", "0:8"),
        ("latency", "2K:", "2K:4M"),
        ("latency", ":2K", "1:2K"),
        ("latency", "8,64", "8,64"),
        ("allreduce", "1K", "4:1K"),
        ("bcast", "1K:", "1K:1M"),
        ("cas", "8", "8:8"),
        ("latency --sizes 16M", "1M", "1:1M"),
        ("latency --sizes 1K:2M", "4K:", "4K:2M"),
    ],
)
def test_message_sizes_as_osu_means_them(line, text, sizes):
    assert osu_sizes(text, parse_row(line.split())) == sizes


def test_messages_are_counted_in_windows_where_there_are_windows(rows):
    asked = {"values": {"iterations": (128, 128)}, "messages": frozenset({"iterations"})}
    assert rows("netsan_put", **asked)[0].iterations == (11, 11)
    assert rows("linktest", **asked)[0].iterations == (128, 128)
    asked = {"values": {"iterations": (128, 128), "window": 128}, "messages": frozenset({"iterations"})}
    assert rows("netsan_alltoall", **asked)[0].iterations == (1, 1)
    asked = {"values": {"warmup": (0, 0)}, "messages": frozenset({"warmup"})}
    assert rows("linktest_unidirectional", **asked)[0].warmup == (0, 0)


def test_net_sanitizer_is_both_directions_or_all_with_each_other(rows):
    served = rows("net_sanitizer", 6, values={"servers": 2})
    assert [(row.name, row.kernel, row.servers) for row in served] == [
        ("netsan_put", "rpc_put", 2),
        ("netsan_get", "rpc_get", 2),
    ]
    (alone,) = rows("net_sanitizer", 6)
    assert (alone.name, alone.kernel, alone.pattern) == ("netsan_alltoall", "bandwidth", "all-pairs")


@pytest.mark.parametrize(
    ("name", "asked", "table"),
    [
        ("bw", {}, "osu_bw"),
        ("latency", {}, "latency"),
        ("net_sanitizer", {}, "netsan_alltoall"),
        ("net_sanitizer", {"values": {"servers": 1}}, "netsan_put"),
        ("congestion", {}, "congestion_latency"),
        ("linktest", {"sends": "both"}, "linktest"),
    ],
)
def test_the_table_is_that_of_a_benchmark_of_the_registry(registry, name, asked, table):
    assert measured_as(BenchRequest(name, **asked), registry) == table


def test_another_window_leaves_the_number_of_messages_as_it_was(rows):
    for window, iterations, warmup in ((12, 11, 2), (3, 44, 8), (100, 2, 1)):
        (row,) = rows("netsan_alltoall", values={"window": window})
        assert (row.iterations, row.warmup) == ((iterations, iterations), (warmup, warmup))
    assert rows("osu_bw", values={"window": 3})[0].iterations == (100, 20)
    assert rows("netsan_put", values={"window": 3, "iterations": (5, 5)})[0].iterations == (5, 5)
    (row,) = rows("netsan_put", values={"window": 3}, adaptive=True)
    assert row.iterations is None


def test_congestion_is_latency_and_bandwidth(rows):
    found = rows("congestion", 8, values={"window": 16, "victims": 3, "aggressor": "all-to-all"})
    assert [row.kernel for row in found] == ["latency", "bandwidth"]
    assert [row.window for row in found] == [None, 16]
    assert {(row.victims, row.aggressor, row.histogram) for row in found} == {(3, "all-to-all", True)}


@pytest.mark.parametrize(
    ("asked", "kernel", "pattern"),
    [
        ({}, "latency", "all-pairs"),
        ({"sends": "both"}, "exchange", "all-pairs"),
        ({"sends": "one"}, "bandwidth", "all-pairs"),
        ({"values": {"pattern": "bisection"}}, "latency", "bisection"),
        ({"values": {"pattern": "bisection"}, "sends": "both"}, "exchange", "bisection"),
        ({"values": {"pattern": "bisection"}, "sends": "one"}, "bandwidth", "bisection"),
    ],
)
def test_the_modes_of_linktest(rows, asked, kernel, pattern):
    (row,) = rows("linktest", 4, **asked)
    assert (row.name, row.kernel, row.pattern, row.sizes) == ("linktest", kernel, pattern, (16 << 20,))


def test_an_all_to_all_beside_linktest_has_its_sizes_and_fits_into_memory(rows):
    pairs, everybody = rows("linktest", 8, alltoall=True, values={"sizes": (8, 64 << 10)})
    assert (everybody.name, everybody.kernel, everybody.sizes) == ("linktest_alltoall", "alltoall", pairs.sizes)
    (_, large) = rows("linktest", 1000, alltoall=True, values={"sizes": (1 << 20, 16 << 20)})
    assert large.sizes == (1 << 18,)
    assert 2 * 1000 * large.sizes[0] <= MEMORY_LIMIT < 2 * 1000 * 2 * large.sizes[0]


def test_the_hosts_are_handed_on(registry):
    slots = (Slots("a", 2), Slots("b", 1))
    assert bench_plan(BenchRequest("alltoall", 3, slots=slots), registry).slots == slots


def test_what_means_something_for_a_benchmark(registry):
    assert without_meaning("window", every_row("osu_latency", registry)) == "the kernel has one message in flight"
    assert without_meaning("window", every_row("linktest", registry)) == ""  # with --unidirectional
    assert without_meaning("window", bench_rows(BenchRequest("linktest"), registry)) != ""
    assert without_meaning("window", every_row("congestion", registry)) == ""
    assert {row.kernel for row in every_row("net_sanitizer", registry)} == {"rpc_put", "rpc_get", "bandwidth"}


def test_nccl_tests_counts_the_bytes_of_all_ranks_out_of_place_and_in_place(rows):
    out, within = rows("all_gather_perf", 3, values={"sizes": (8, 100, 3 << 10)})
    assert (out.name, out.in_place) == ("all_gather_perf", False)
    assert (within.name, within.in_place) == ("all_gather_perf-in-place", True)
    assert out.sizes == within.sizes == (32, 1024)  # multiples of 16 for each rank
    assert (out.iterations, out.warmup, out.batch) == ((20, 20), (5, 5), 20)
    assert [row.sizes for row in rows("all_reduce_perf", 3, values={"sizes": (8, 100)})] == [(8, 100)] * 2
    (alltoall,) = rows("alltoall_perf", 2, values={"sizes": (1 << 10,), "validate": True})
    assert (alltoall.sizes, alltoall.batch) == ((512,), None)


def test_nccl_tests_needs_some_bytes_for_each_rank(refused):
    assert PINNED["allgather of 3 ranks needs"] in refused("all_gather_perf", 3, values={"sizes": (8,)})


def test_transports_side_by_side_alternate_in_blocks(rows):
    counts = {"iterations": (10, 3), "budget": 6.0, "sizes": (8,)}
    blocks = rows("osu_bw", values={"transport": ("mpi", "tcp"), "device": "lo", "streams": 2, **counts})
    assert [row.name for row in blocks] == [
        *("osu_bw-mpi-1", "osu_bw-tcp-1", "osu_bw-tcp-2", "osu_bw-mpi-2", "osu_bw-mpi-3", "osu_bw-tcp-3")
    ]
    assert {row.transport: (row.device, row.streams) for row in blocks} == {"mpi": (None, 1), "tcp": ("lo", 2)}
    assert {row.iterations for row in blocks} == {(4, 1)}  # in three blocks at least the counts that were requested
    assert {row.budget for row in blocks} == {2.0}


def test_a_comparison_takes_as_long_as_the_transports_one_by_one(rows):
    blocks = rows("latency", values={"transport": ("tcp", "ucx"), "sizes": (8,)})
    assert len(blocks) == 10
    assert sum(row.budget or 0 for row in blocks) == pytest.approx(2.0)

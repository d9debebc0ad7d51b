"""What the tables print is what the run holds: the importers read them back, to the printed precision."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from table_cases import row, run_of

from fablint.report import Options, render_table
from fablint.store.importing import parse_linktest, parse_net_sanitizer, parse_osu

SECONDS = st.floats(-8, 1).map(lambda power: 10.0**power)
SIZES = st.lists(st.integers(0, 22).map(lambda power: 1 << power), min_size=1, max_size=4, unique=True).map(sorted)
COLUMNS = {
    "figure": ("Avg Latency(us)", "Latency (us)", "Bandwidth (MB/s)", "MB/s"),
    "messages_per_s": ("Messages/s",),
    "min": ("Min Latency(us)",),
    "max": ("Max Latency(us)",),
    "iterations": ("Iterations",),
    "algorithm_bandwidth": ("Alg BW(MB/s)",),
    "bus_bandwidth": ("Bus BW(MB/s)",),
    "reverse": ("Reverse Lat(us)", "Reverse BW(MB/s)"),
    "P50": ("P50 Tail Lat(us)", "P50 Tail BW(MB/s)"),
    "P99": ("P99 Tail Lat(us)", "P99 Tail BW(MB/s)"),
}


def printed(value):
    """What a figure may lose in print: half a unit of the second decimal, half a percent below 1."""
    return pytest.approx(value, abs=0.00501 * min(1.0, value))


def drawn(data, keys, count):
    return {key: data.draw(st.lists(SECONDS, min_size=count, max_size=count)) for key in keys}


PAIRS = [(0, 2, 0), (2, 0, 0), (1, 3, 0), (3, 1, 0)]
STAR = [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
WORLD = [(rank, -1, 0) for rank in range(4)]


@settings(max_examples=60)
@given(
    st.sampled_from(
        [
            *((kernel, "pairs", PAIRS) for kernel in ("latency", "bandwidth", "bibandwidth", "exchange", "latency_mt")),
            *((kernel, "pairs", PAIRS) for kernel in ("put_latency", "get_bandwidth", "accumulate", "latency_mp")),
            ("bandwidth", "fan-in", STAR),
            *((kernel, "world", WORLD) for kernel in ("allreduce", "bcast", "alltoall", "allgather")),
        ]
    ),
    SIZES,
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_osu(what, sizes, full, validate, data):
    kernel, pattern, keys = what
    cells = drawn(data, keys, len(sizes))
    known = {"validate": validate, "windows": [64] * len(sizes), "win": "allocate", "sync": "flush"}
    made = row(kernel, pattern, cells, ranks=4, sizes=sizes, iterations=[1000] * len(sizes), **known)
    table = render_table(run_of(made), "osu", Options((50, 99), full))
    parsed = parse_osu(table.text)
    (read,) = parsed.tables
    assert parsed.foreign == ()
    assert [one.size for one in read.rows] == list(sizes)
    assert {one.valid for one in read.rows} == {True if validate else None}
    for key, names in COLUMNS.items():
        shown = [name for name in names if name in read.columns]
        if not shown:
            continue
        for value, line in zip(read.column(shown[0]), table.as_dict()["sizes"], strict=True):
            assert value == printed(line[key])
    assert read.title == table.as_dict()["title"].partition(" v")[0]


def test_barrier_and_varied_windows():
    barrier = row("barrier", "world", {key: [(key[0] + 1) * 1e-6] for key in WORLD}, ranks=4, sizes=(0,))
    (read,) = parse_osu(render_table(run_of(barrier), "osu", Options((), True)).text).tables
    assert (read.rows[0].size, read.rows[0].values) == (None, (2.5, 1.0, 4.0, 100.0))
    rows = [
        row("bandwidth", "pairs", {(0, 2, 0): [w * 1e-6]}, ranks=4, sizes=(8,), windows=[w], name=str(w))
        for w in (1, 2)
    ]
    bandwidth, rate = parse_osu(render_table(run_of(*rows), "osu", Options()).text).tables
    assert (bandwidth.windows, bandwidth.rows[0].values) == ((1, 2), (8.0, 4.0))
    assert rate.rows[0].values == (1000000.0, 500000.0)


def test_latency_test_is_read_as_many_tables():
    cells = {(0, 1, 0): [1e-6, 3e-6], (0, 2, 1): [2e-6, 4e-6]}
    made = row("latency", "all-pairs", cells, ranks=3, rounds=2, sizes=(0, 8))
    parsed = parse_osu(render_table(run_of(made), "latency_test", Options()).text)
    assert [table.column("Latency (us)") for table in parsed.tables] == [(1.0, 3.0), (2.0, 4.0)]
    assert [parsed.launches[table.launch].hosts for table in parsed.tables] == [("n0", "n1"), ("n0", "n2")]


@settings(max_examples=40)
@given(st.sampled_from(["rpc_put", "rpc_get", "bandwidth"]), SIZES, st.data())
def test_net_sanitizer(kernel, sizes, data):
    pattern = "all-pairs" if kernel == "bandwidth" else "clients-servers"
    cells = drawn(data, [(2, 0, 0), (3, 1, 0), (2, 1, 1), (3, 0, 1)], len(sizes))
    known = {"servers": 2, "iterations": [7] * len(sizes), "windows": [12] * len(sizes)}
    run = run_of(row(kernel, pattern, cells, ranks=4, rounds=2, sizes=sizes, **known))
    table = render_table(run, "net_sanitizer", Options(full=True))
    read, (exact,) = parse_net_sanitizer(table.text), table.as_dict()["rows"]
    assert (read.megabyte, read.latency_factor, read.foreign) == (10**6, 1, ())
    assert read.counts[0].values["niters"] == 84
    for summary, line in zip(read.summaries, exact["sizes"], strict=True):
        assert (summary.size, summary.direction) == (line["size"], exact["direction"])
        for part in ("sum", "min", "max"):
            agrees(getattr(summary, part), line[part])
    for connection, line in zip(read.connections, exact["connections"], strict=True):
        assert (connection.src, connection.dest, connection.size) == (line["src"], line["dest"], line["size"])
        agrees(connection.figures, line)


def agrees(figures, exact):
    """Seconds, MB/s, us and operations/s of a line against unrounded seconds, bytes/s, seconds and operations/s."""
    scaled = (exact["time"], exact["rate"] / 1e6, exact["latency"] * 1e6, exact["iops"])
    assert (figures.time, figures.bandwidth, figures.latency, figures.iops) == pytest.approx(scaled, rel=5.01e-3)


@settings(max_examples=40)
@given(
    st.sampled_from(["latency", "bandwidth", "exchange"]),
    st.sampled_from(["all-pairs", "bisection"]),
    st.sampled_from(["serial", "parallel"]),
    st.data(),
)
def test_linktest(kernel, pattern, order, data):
    keys = [(0, 2, 0), (2, 0, 0), (1, 3, 0), (3, 1, 0), (0, 3, 1), (3, 0, 1), (1, 2, 1), (2, 1, 1)]
    made = row(kernel, pattern, drawn(data, keys, 1), ranks=4, rounds=2, sizes=(1 << 20,), order=order, wall_s=1.5)
    again = row(kernel, "rounds", drawn(data, keys[:2], 1), ranks=4, sizes=(1 << 20,), name="again", retest_of=kernel)
    table = render_table(run_of(made, again), "linktest", Options(slowest=3))
    read, exact = parse_linktest(table.text), table.as_dict()
    assert read.foreign == ()
    assert (read.facts["Number of MPI-Task"], read.facts["Message length"]) == ("4", "1048576 Bytes")
    assert [step.serial for step in read.steps] == [order == "serial"] * 2
    for step, line in zip(read.steps, exact["steps"], strict=True):
        assert (step.min.seconds, step.avg.seconds, step.max.seconds) == pytest.approx(
            (line["low"], line["mean"], line["high"]), rel=1e-5
        )
        assert step.avg.rate == pytest.approx(exact["factor"] * (1 << 20) / line["mean"], rel=1e-4)
        if pattern == "bisection":
            assert step.bisection == pytest.approx(line["bandwidth"], rel=1e-4)
        else:
            assert step.bisection is None
    total = exact["aggregated"]
    assert read.aggregated[-1].avg.seconds == pytest.approx(total["mean"], rel=1e-5)
    assert read.results["Max Time"].seconds == pytest.approx(total["high"], rel=1e-5)
    assert read.elapsed == pytest.approx((1e-3, 1.5))
    for slow, line in zip(read.slowest, exact["slowest"], strict=True):
        assert (slow.src, slow.dst) == (line["src"], line["dst"])
        assert slow.first.seconds == pytest.approx(line["first"], abs=6e-11, rel=1e-6)
        assert (slow.second is None) == (line["second"] is None)

"""OSU's format to the letter, and figures worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from table_cases import EDGES, both_ways, row, run_of, stored

from fablint.errors import UsageError
from fablint.report import Options, benchmark_table, render_table
from fablint.store.importing import import_run
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "osu"
US = 1e-6


def lines(run, **options):
    return render_table(run, "osu", Options(**options)).text.split("\n")


def body(run, **options):
    """Rows of figures."""
    return [line.split() for line in lines(run, **options) if line and not line.startswith("#")]


def figures(run, **options):
    return render_table(run, "osu", Options(**options)).as_dict()["sizes"]


def test_waits_for_a_cpu_are_stated_where_they_change_figures():
    """A share is that of the whole row."""
    comments = [
        lines(run_of(row("latency", "pair", PAIR, sizes=(1, 8), cpu_wait_s=waits, wall_s=2.0)))[-2]
        for waits in ([0.001, 0.5], [0.001, 0.019], [None, 1.0])
    ]
    assert comments[0] == PINNED["ranks waited for a CPU"]
    assert "waited" not in comments[1]
    assert "rank 1 50 % of the time" in comments[2]


def peers(name):
    """What OSU itself prints above the first row, and that row."""
    text = (FIXTURES / name).read_text().split("\n")
    first = next(at for at, line in enumerate(text) if line.lstrip()[:1].isdigit())
    return text[:first], text[first]


TYPES = {"accumulate": "MPI_UINT8_T", "cas": "MPI_UINT64_T", "fop": "MPI_UINT64_T"}  # what the engine adds and compares
PAIR = both_ways({(0, 1): [2 * US, 4 * US], (1, 0): [3 * US, 5 * US]})
FOUR = both_ways(
    {(0, 2): [1 * US], (1, 3): [2 * US], (2, 0): [10 * US], (3, 1): [20 * US]}
)  # forward 0>2, 1>3; the other direction ten times as slow
WORLD = {(rank, -1, 0): [seconds * US] for rank, seconds in enumerate((1, 2, 6))}


@pytest.mark.parametrize(
    ("peer", "made", "options"),
    [
        ("osu_latency-7.4-openmpi4.1.4-np2-quiet.txt", row("latency", "pair", PAIR, sizes=(1, 8)), {}),
        (
            "osu_latency-7.4-openmpi4.1.4-np2-z.txt",
            row("latency", "pair", PAIR, sizes=(1, 8)),
            {"percentiles": (50, 90, 99)},
        ),
        (
            "osu_bw-7.4-openmpi4.1.4-np2-z.txt",
            row("bandwidth", "pair", PAIR, sizes=(1, 8)),
            {"percentiles": (50, 90, 95, 99)},
        ),
        ("osu_multi_lat-7.4-openmpi4.1.4-np4.txt", row("latency", "pairs", FOUR, ranks=4, sizes=(1,)), {}),
        ("osu_mbw_mr-7.4-openmpi4.1.4-np4.txt", row("bandwidth", "pairs", FOUR, ranks=4, sizes=(1,), windows=[64]), {}),
        (
            "osu_mbw_mr-7.4-openmpi4.1.4-np2-c-z.txt",
            row("bandwidth", "pairs", both_ways({(0, 1): [US]}), sizes=(1,), windows=[64], validate=True),
            {"percentiles": (50, 90, 99)},
        ),
        ("osu_latency_mt-7.4-openmpi4.1.4-np2.txt", row("latency_mt", "pair", PAIR, sizes=(1, 8), workers=[1, 2]), {}),
        (
            "osu_put_latency-7.4-openmpi4.1.4-np2-fence-z.txt",
            row("put_latency", "pair", PAIR, sizes=(1, 8), win="create", sync="fence"),
            {"percentiles": (50, 90, 99)},
        ),
        (
            "osu_get_bw-7.4-openmpi4.1.4-np2.txt",
            row("get_bandwidth", "pair", PAIR, sizes=(1, 8), win="allocate", sync="flush"),
            {},
        ),
        (
            "osu_put_bw-7.4-openmpi4.1.4-np2.txt",
            row("put_bandwidth", "pair", PAIR, sizes=(1, 8), win="allocate", sync="flush"),
            {},
        ),
        (
            "osu_acc_latency-7.4-openmpi4.1.4-np2.txt",
            row("accumulate", "pair", PAIR, sizes=(1, 8), win="allocate", sync="flush"),
            {},
        ),
        (
            "osu_get_acc_latency-7.4-openmpi4.1.4-np2.txt",
            row("get_accumulate", "pair", PAIR, sizes=(1, 8), win="create", sync="lock"),
            {},
        ),
        (
            "osu_cas_latency-7.4-openmpi4.1.4-np2.txt",
            row("cas", "pair", PAIR, sizes=(1, 8), win="allocate", sync="flush"),
            {},
        ),
        (
            "osu_fop_latency-7.4-openmpi4.1.4-np2.txt",
            row("fop", "pair", PAIR, sizes=(1, 8), win="allocate", sync="flush"),
            {},
        ),
        ("osu_alltoall-7.4-openmpi4.1.4-np4.txt", row("alltoall", "world", WORLD, ranks=3, sizes=(1,)), {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_line_above_the_figures_is_osus_but_for_our_comments(peer, made, options):
    if "percentiles" in options:
        made = with_samples(made)
    run = run_of(made)
    head, first = peers(peer)
    ours = lines(run, **options)
    count = next(at for at, line in enumerate(ours) if line.lstrip()[:1].isdigit())
    head = [line.replace("MPI_CHAR", TYPES.get(made.kernel, "MPI_CHAR")) for line in head]
    assert [line for line in ours[:count] if not line.startswith("# fablint")] == head
    assert len(ours[count]) == len(first)  # all columns are as wide as OSU's


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        ("osu_alltoall-7.4-openmpi4.1.4-np4.txt", "of 4 ranks"),
        ("osu_multi_lat-7.4-openmpi4.1.4-np4.txt", "of 2 pairs"),
        ("osu_mbw_mr-7.4-openmpi4.1.4-np4.txt", "of 2 pairs"),
    ],
)
def test_an_imported_file_of_osu_reads_as_it_was_printed(peer, words):
    run = import_run([FIXTURES / peer], "abcd")
    text = [line for line in (FIXTURES / peer).read_text().splitlines() if line]
    title = next(line for line in text if line.startswith("# OSU"))
    printed = [float(line.split()[1]) for line in text if not line.startswith("#")]
    assert title in lines(run)
    assert [float(line[1]) for line in body(run)] == pytest.approx(printed, rel=1e-5)
    assert f"figures of the imported file, {words}" in "\n".join(lines(run))


def with_samples(made):
    counts, _ = np.histogram([1.5 * US] * 5, bins=np.append(EDGES, np.inf))
    shape = made.arrays["count"].shape
    return replace(
        made, arrays={**made.arrays, "histogram": np.broadcast_to(counts, (*shape, len(counts))), "bucket": EDGES}
    )


def test_a_pair_shows_the_direction_of_the_lower_rank_as_osu_does(tmp_path):
    run = stored(run_of(row("latency", "pair", PAIR, sizes=(0, 8))), tmp_path)
    assert body(run) == [["0", "2.00"], ["8", "4.00"]]
    assert PINNED["the other direction"] in "\n".join(lines(run))
    assert [figure["reverse"] for figure in figures(run)] == pytest.approx([3, 5])


def test_the_full_table_shows_the_other_direction_too():
    run = run_of(row("latency", "pair", PAIR, sizes=(0, 8)))
    assert body(run, full=True) == [["0", "2.00", "3.00"], ["8", "4.00", "5.00"]]
    assert any(line.endswith("Reverse Lat(us)") for line in lines(run, full=True))


def test_forward_rows_have_no_other_direction():
    cells = {(0, 1, 0): [2 * US]}
    run = run_of(row("latency", "pair", cells, directions="single"))
    assert body(run, full=True) == [["8", "2.00"]]
    assert "the reverse" not in "\n".join(lines(run))


def test_processes_are_named_below_the_title():
    said = lines(run_of(row("latency_mp", "pair", PAIR, sizes=(1, 8), workers=[3, 4])))
    at = said.index("# Number of forked processes in sender: 3")
    assert said[at + 1] == PINNED["Number of forked processes"]
    assert said[1] == PINNED["OSU MPI Multi-process Latency"]


def test_many_pairs_of_a_test_that_osu_has_for_one_say_so():
    said = "\n".join(lines(run_of(row("put_latency", "pairs", FOUR, ranks=4))))
    assert PINNED["mean over the 2 senders"] in said
    assert "5.x" not in said


def test_small_figures_keep_three_digits():
    run = run_of(row("latency", "pair", {(0, 1, 0): [12.345e-9]}, sizes=(8,)))
    assert body(run) == [["8", "0.0123"]]


def test_multi_lat_is_the_mean_over_the_senders_alone(tmp_path):
    run = stored(run_of(row("latency", "pairs", FOUR, ranks=4)), tmp_path)
    assert body(run) == [["8", "1.50"]]  # (1 + 2) / 2, and nothing of the slow direction
    said = "\n".join(lines(run))
    assert "# OSU MPI Multi Latency Test v7.4" in said
    assert "mean over the 2 senders, as in OSU 7.4" in said


@pytest.mark.parametrize(("barrier", "words"), [("start", "pairs run free"), ("sample", "a barrier of all ranks")])
def test_mbw_mr_is_all_bytes_over_the_mean_time_of_the_senders(tmp_path, barrier, words):
    made = row("bandwidth", "pairs", FOUR, ranks=4, sizes=(1000,), windows=[64], barrier=barrier)
    run = stored(run_of(made), tmp_path)
    assert body(run) == [["1000", "1333.33", "1333333.34"]]  # 2 * 1000 B / 1.5 us
    assert "# [ pairs: 2 ] [ window size: 64 ]" in lines(run)
    assert PINNED["all bytes over the mean time"].filled(words=words) in "\n".join(lines(run))


def test_a_buffer_for_every_message_is_said_to_be_no_default_of_osu():
    cells = {(0, 1, 0): [1 * US]}
    for buffers, said in (("distinct", True), ("single", False)):
        text = "\n".join(lines(run_of(row("bandwidth", "pair", cells, sizes=(1000,), buffers=buffers))))
        assert ("OSU's messages share one by default" in text) == said


def test_repeats_of_a_pair_are_taken_together_and_not_added():
    cells = {(0, 1, 0): [1 * US], (0, 1, 1): [3 * US]}
    counts = {(0, 1, 0): 300, (0, 1, 1): 100}
    run = run_of(row("bandwidth", "pairs", cells, rounds=2, sizes=(1000,), count=counts))
    # 300 samples of 1 us and 100 of 3 us: 1.5 us in the mean
    assert body(run)[0][1] == "666.67"
    assert "# [ pairs: 1 ] [ window size: 1 ]" in lines(run)


def test_bibandwidth_counts_both_directions_by_the_clock_of_rank_0():
    cells = both_ways({(0, 1): [1 * US], (1, 0): [2 * US]})
    run = run_of(row("bibandwidth", "pair", cells, sizes=(1000,)))
    assert body(run) == [["1000", "2000.00"]]


def test_a_fan_is_all_bytes_over_the_mean_time_of_its_leaves_whoever_sends():
    cells = {(leaf, 0, 0): [leaf * US] for leaf in (1, 2, 4)}
    for pattern, payload in (("fan-in", "src"), ("fan-out", "dst")):
        made = row("bandwidth", pattern, cells, ranks=5, sizes=(1000,), payload=payload, directions="one")
        assert body(run_of(made)) == [["1000", "1285.71"]]  # 3 * 1000 B / (7 us / 3)
        assert "all bytes over the mean time of 3 leaves" in "\n".join(lines(run_of(made)))


def test_percentiles_are_those_of_the_time_so_that_p99_is_the_slow_end():
    slow = np.linspace(1, 2, 1000) * US
    made = row("bandwidth", "pair", {(0, 1, 0): [1.5 * US]}, sizes=(1000,), samples={(0, 1, 0): slow})
    (values,) = figures(run_of(made), percentiles=(1, 50, 99))
    assert (values["P1"], values["P50"], values["P99"]) == pytest.approx((990.1, 666.7, 502.5), rel=6e-3)
    assert "P99 is the slow end of a bandwidth too" in "\n".join(lines(run_of(made), percentiles=(1, 50, 99)))


def test_percentiles_of_several_pairs_are_on_the_scale_of_their_sum():
    samples = {key: [2 * US] * 100 for key in ((0, 2, 0), (1, 3, 0))}
    cells = {key: [2 * US] for key in samples}
    made = row("bandwidth", "pairs", cells, ranks=4, sizes=(1000,), samples=samples)
    (values,) = figures(run_of(made), percentiles=(50,))
    assert (values["figure"], values["P50"]) == pytest.approx((1000, 1000), rel=5e-3)


def test_percentiles_leave_the_other_direction_out():
    samples = {(0, 1, 0): [1 * US] * 100, (1, 0, 0): [9 * US] * 100}
    cells = {key: [values[0]] for key, values in samples.items()}
    (values,) = figures(run_of(row("latency", "pair", cells, samples=samples)), percentiles=(99,))
    assert values["P99"] == pytest.approx(1, rel=6e-3)


def test_validation_says_at_which_size_a_payload_was_damaged():
    damage = [{"src": 0, "dst": 1, "size": 8, "message": 4, "offset": 17}]
    run = run_of(row("latency", "pair", PAIR, sizes=(4, 8), validate=True, corrupt=damage))
    assert body(run) == [["4", "2.00", "Pass"], ["8", "4.00", "Fail"]]


@pytest.mark.parametrize(
    ("kernel", "algorithm", "bus"),
    # 1000 bytes, 3 ranks, 3 us in the mean: 333.33 MB/s a size
    [
        ("allreduce", 1000 / 3, 1000 / 3 * 2 * 2 / 3),
        ("allgather", 1000, 1000 * 2 / 3),
        ("alltoall", 1000, 1000 * 2 / 3),
        ("bcast", 1000 / 3, 1000 / 3),
    ],
)
def test_collectives_have_osus_columns_and_the_bandwidths_of_nccl_tests(kernel, algorithm, bus, tmp_path):
    made = row(kernel, "world", WORLD, ranks=3, sizes=(1000,), iterations=[1000], directions="one")
    run = stored(run_of(made), tmp_path)
    assert body(run) == [["1000", "3.00"]]
    (line,) = body(run, full=True)
    assert line[:5] == ["1000", "3.00", "1.00", "6.00", "1000"]
    assert [float(word) for word in line[5:]] == pytest.approx([algorithm, bus], abs=0.006)
    assert "mean over the 3 ranks" in "\n".join(lines(run))


def test_the_full_header_of_a_collective_begins_as_osus():
    head, _ = peers("osu_alltoall-7.4-openmpi4.1.4-np2-f-z.txt")
    made = row("alltoall", "world", WORLD, ranks=3, sizes=(1,), samples={key: [US] for key in WORLD})
    ours = next(line for line in lines(run_of(made), full=True, percentiles=(50, 90, 99)) if line.startswith("# Size"))
    assert ours == head[-1] + "      Alg BW(MB/s)      Bus BW(MB/s)"


def test_a_barrier_has_no_size_and_no_bandwidth():
    made = row("barrier", "world", WORLD, ranks=3, sizes=(0,), iterations=[1000], directions="one")
    peer = (FIXTURES / "osu_barrier-7.4-openmpi4.1.4-np2.txt").read_text().split("\n")
    ours = [line for line in lines(run_of(made), full=True) if not line.startswith("# fablint")]
    assert ours[:3] == peer[:3]
    assert ours[3] == PINNED["3.00 1.00 6.00 1000"]
    assert len(ours[3]) == len(peer[3])


def test_rows_of_several_windows_become_the_matrices_of_mbw_mr_v():
    cells = {1: [2 * US], 2: [1 * US]}
    rows = [
        row("bandwidth", "pairs", {(0, 1, 0): cells[w]}, sizes=(1000,), windows=[w], name=f"w{w}", directions="single")
        for w in (2, 1)
    ]
    found = lines(run_of(*rows))
    kept = [line for line in found if not line.startswith("# fablint")]
    assert kept == [
        PINNED["OSU MPI Multiple Bandwidth"],
        "# [ pairs: 1 ] [ window size: varied ]",
        "",
        "# Uni-directional Bandwidth (MB/sec)",
        "# Datatype: MPI_CHAR.",
        "#                 1           2",
        "1000         500.00     1000.00",
        "",
        "# Message Rate Profile",
        "#                 1           2",
        "1000      500000.00  1000000.00",
        "",
    ]


def test_sizes_that_were_not_measured_are_said_to_be_missing():
    run = run_of(row("latency", "pair", {(0, 1, 0): [np.nan, 2 * US]}, sizes=(4, 8)))
    assert body(run) == [["8", "2.00"]]
    assert "# fablint: not measured: 4 B" in lines(run)
    assert json.loads(json.dumps(figures(run)))[0]["figure"] is None


def test_windows_that_differ_with_the_size_are_printed():
    run = run_of(row("bandwidth", "pair", {(0, 1, 0): [US, US]}, sizes=(8, 1 << 20), windows=[64, 16]))
    assert PINNED["messages in flight: 64"] in lines(run)


def test_what_osu_has_no_test_for_does_not_call_itself_osu():
    said = lines(run_of(row("exchange", "pair", PAIR, sizes=(4, 8))))
    assert said[1].startswith("# fablint exchange latency Test v")
    assert "both directions at once" in "\n".join(said)


def test_a_run_without_means_says_what_its_figures_are():
    made = row("latency", "pair", {(0, 1, 0): [2 * US]})
    del made.arrays["time_mean"]
    assert PINNED["figures are made of the median"] in "\n".join(lines(run_of(made)))


def test_rows_that_are_no_such_test_are_refused():
    made = row("latency", "all-pairs", {(0, 1, 0): [US], (1, 0, 0): [US]})
    with pytest.raises(
        UsageError, match=r"table osu needs a row of the patterns pair, .*has rows: latency \(latency, all-pairs\)"
    ):
        lines(run_of(made))
    with pytest.raises(UsageError, match="no use for --slowest"):
        lines(run_of(made), slowest=3)


@pytest.mark.parametrize(
    ("name", "made", "table"),
    [
        ("osu_bw", row("bandwidth", "pair", PAIR, sizes=(1, 8)), "osu"),
        ("bandwidth", row("bandwidth", "fan-in", {(1, 0, 0): [US]}), "osu"),
        ("osu_barrier", row("barrier", "world", WORLD, ranks=3), "osu"),
        ("latency", row("latency", "all-pairs", {(0, 1, 0): [US], (1, 0, 0): [US]}), "bench"),
        ("linktest", row("latency", "all-pairs", {(0, 1, 0): [US], (1, 0, 0): [US]}), "linktest"),
        ("linktest_alltoall", row("alltoall", "world", WORLD, ranks=3), "osu"),
        ("netsan_put", row("rpc_put", "clients-servers", {(1, 0, 0): [US]}), "net_sanitizer"),
        ("rpc_put", row("rpc_put", "clients-servers", {(1, 0, 0): [US]}), "net_sanitizer"),
        ("netsan_alltoall", row("bandwidth", "all-pairs", {(0, 1, 0): [US], (1, 0, 0): [US]}), "net_sanitizer"),
        ("bisec_bw", row("exchange", "pairs", PAIR, sizes=(1, 8)), "bisec_bw"),
        ("latency_test", row("latency", "all-pairs", {(0, 1, 0): [US], (1, 0, 0): [US]}), "latency_test"),
        (
            "congestion_latency",
            row("latency", "victim-aggressor", {(0, 1, 0): [US], (0, 1, 1): [US]}, rounds=2),
            "congestion",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_benchmark_has_the_table_that_it_is_known_by(name, made, table):
    found = benchmark_table(run_of(made), name, percentiles=(50, 99), full=True)
    assert found.as_dict()["table"] == table
    assert found.text.endswith("\n")
    json.dumps(found.as_dict(), allow_nan=False)

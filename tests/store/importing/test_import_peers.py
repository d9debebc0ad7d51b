"""Real outputs of mpiGraph, HP2P, IMB and LinkTest's SION files, and the layouts of others: the right numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from import_cases import FAULTY, FIXTURES, means

from fablint.errors import UsageError
from fablint.store import import_run
from fablint.store.importing import parse_linktest
from fablint.store.importing.mpigraph import parse_mpigraph
from fablint.store.importing.sion import parse_sion

MIB = 2.0**20


def run_of(family, name, hosts=()):
    return import_run([FIXTURES / family / name], hosts)


def only_row(run):
    (row,) = run.rows
    return row


# ------------------------------------------------------------------------------------------------ mpiGraph


def test_mpigraph_takes_the_better_of_both_ends():
    row = only_row(run_of("mpigraph", "mpigraph-1.5-np4.txt"))
    seconds = means(row)
    # node001 sent to node002 at 72.813 by its own clock and at 199.345 by node002's
    assert seconds[0, 1] == pytest.approx(1024 / (199.345 * MIB), rel=1e-6)
    # node002 sent to node001 at 716.464 by its own clock and at 397.406 by node001's
    assert seconds[1, 0] == pytest.approx(1024 / (716.464 * MIB), rel=1e-6)
    assert (row.kernel, row.payload, row.directions) == ("bandwidth", "src", "both")
    assert (row.sizes, row.facts.sampling.windows, int(np.asarray(row.arrays["count"]).max())) == ((1024,), [10], 10)
    rounds = np.asarray(row.arrays["round"])[0]
    assert [rounds[0, 1], rounds[0, 3], rounds[3, 0], rounds[0, 0]] == [0, 2, 0, -1]


def test_mpigraph_of_a_faulty_fabric_shows_it():
    run = import_run([FAULTY])
    seconds = means(only_row(run))
    others = np.delete(np.delete(seconds, 5, 0), 5, 1)
    slow = np.argwhere(seconds > 3 * np.nanmedian(others))
    assert {(int(i), int(j)) for i, j in slow if 5 not in (i, j)} >= {(2, 6), (6, 2)}
    assert {int(i) for i, j in slow if j == 5} == {0, 1, 2, 3, 4, 6, 7}
    assert seconds[2, 6] == pytest.approx(1024 / (2.056 * MIB), rel=1e-3)


def test_mpigraph_with_rows_in_disorder_and_lines_of_others():
    text = (FIXTURES / "mpigraph" / "mpigraph-1.5-np4.txt").read_text()
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("node001:0 to"))
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    lines.insert(at + 1, "slurmstepd: error: *** STEP 17.0")
    found = parse_mpigraph("\n".join(lines))
    np.testing.assert_array_equal(found.send, parse_mpigraph(text).send)
    assert [(one.line, one.text) for one in found.foreign] == [(at + 2, "slurmstepd: error: *** STEP 17.0")]


def test_mpigraph_without_its_second_matrix_hears_one_end(tmp_path):
    path = tmp_path / "cut.txt"
    path.write_text((FIXTURES / "mpigraph" / "mpigraph-1.5-np4.txt").read_text().partition("Recv max")[0])
    run = import_run([path])
    assert run.state == "interrupted"
    assert means(only_row(run))[0, 1] == pytest.approx(1024 / (72.813 * MIB), rel=1e-6)
    assert any(one.text == "Recv" for one in run.facts.imported.lines_left_out)


# ------------------------------------------------------------------------------------------------ HP2P


def test_hp2p_says_the_same_on_its_page_in_its_file_and_on_stdout():
    binary = run_of("hp2p", "hp2p-4.1-np4.bin")
    printed = run_of("hp2p", "hp2p-4.1-bin-np4.stdout.txt")
    assert binary.hosts == ["node001", "node002", "node003", "node004"]
    assert printed.hosts == ["rank0", "rank1", "rank2", "rank3"]
    np.testing.assert_allclose(means(only_row(binary)), means(only_row(printed)), rtol=1e-6)
    assert (only_row(binary).kernel, only_row(binary).sizes) == ("exchange", (1024,))
    assert int(np.asarray(only_row(binary).arrays["count"])[0, 0, 1, 0]) == 7
    page = run_of("hp2p", "hp2p-4.1-random-np4.html")
    assert means(only_row(page))[0, 1] == pytest.approx(1024 / (119.78 * MIB), rel=1e-6)


def test_hp2p_pairs_that_were_never_drawn_are_missing_and_not_slow():
    run = run_of("hp2p", "hp2p-4.1-random-np8.html")
    assert (run.state, run.rows[0].facts.state) == ("interrupted", "interrupted")
    assert 0 < np.isnan(means(only_row(run))).sum() - 8 < 20


def test_hp2p_without_a_matrix_is_a_figure_of_the_fabric():
    run = run_of("hp2p", "hp2p-4.1-random-np4.stdout.txt")
    row = only_row(run)
    assert (row.pattern, run.state, run.ranks) == ("world", "complete", 4)  # ranks: from its bisection
    times = [float(np.asarray(row.arrays[f"time_{name}"])[0, 0, 0]) for name in ("min", "mean", "max")]
    assert times == pytest.approx([8.15e-6, 8.38e-6, 8.83e-6])


# ------------------------------------------------------------------------------------------------ LinkTest


@pytest.mark.parametrize("ranks", [4, 8])
def test_a_sion_file_says_what_its_run_printed(ranks):
    run = run_of("sion", f"linktest-1.2p1-np{ranks}.sion")
    log = parse_linktest((FIXTURES / "linktest" / f"linktest-1.2p1-np{ranks}.stdout.txt").read_text())
    latency, again = run.rows
    seconds, rounds = means(latency), np.asarray(latency.arrays["round"])[0]
    found = [np.nanmin(seconds), np.nanmax(seconds), np.nanmean(seconds)]
    said = [log.results[f"{word} Time"].seconds for word in ("Min", "Max", "Avg")]
    assert found == pytest.approx(said, rel=1e-6)
    for step in log.steps:
        of_step = seconds[rounds == step.number - 1]
        printed = [step.min.seconds, step.max.seconds, step.avg.seconds]
        assert [of_step.min(), of_step.max(), of_step.mean()] == pytest.approx(printed, abs=5.1e-10)
    partner, second = np.asarray(again.arrays["dst"]), np.asarray(again.arrays["time_mean"])[:, :, 0]
    assert again.facts.schedule.retest_of == "latency"
    for number, slow in enumerate(log.slowest):
        assert partner[slow.src, number] == slow.dst
        assert seconds[slow.src, slow.dst] == pytest.approx(slow.first.seconds, abs=5.1e-11)
        assert second[slow.src, number] == pytest.approx(slow.second.seconds, abs=5.1e-11)
    assert run.hosts == [f"node{number:03}" for number in range(1, ranks + 1)]
    assert int(np.asarray(latency.arrays["count"]).max()) == int(log.facts["Number of Iteration"])


def test_a_parallel_log_has_no_pair_to_judge_by(tmp_path):
    """The slowest pairs were chosen for being slow: alone they are not evidence."""
    path = tmp_path / "both-streams.txt"
    log = (FIXTURES / "linktest" / "linktest-1.2p1-np8.stdout.txt").read_text()
    path.write_text(log + (FIXTURES / "sion" / "linktest-1.2p1-np8.stderr.txt").read_text())
    run = import_run([path])
    assert (run.state, run.hosts) == ("complete", [f"node{number:03}" for number in range(1, 9)])
    assert {row.name: row.facts.schedule.retest_of for row in run.rows} == {
        "latency-retest": "latency",
        "latency-slowest": "latency",
        "steps": "",
    }
    steps = run.row("steps")
    assert steps.pattern == "world"
    assert float(np.asarray(steps.arrays["time_max"])[0, 0, 0]) == pytest.approx(10.073e-6)


def test_a_serial_log_has_all_pairs():
    run = run_of("linktest", "linktest-1.2p1-serial-np4.stdout.txt")
    latency = run.row("latency")
    assert (run.state, latency.facts.schedule.order) == ("complete", "serial")
    assert means(latency)[3, 0] == pytest.approx(3.61435e-6)
    assert np.asarray(latency.arrays["round"])[0][3, 0] == 0 and np.asarray(latency.arrays["round"])[0][3, 2] == 2


@pytest.mark.parametrize(
    ("place", "value", "words"), [(4096 + 5, 2, "LinkTest 2"), (28, 3, "3 parts"), (24, 0, "0 tasks")]
)
def test_sion_files_of_other_kinds_are_refused(place, value, words):
    data = bytearray((FIXTURES / "sion" / "linktest-1.2p1-np4.sion").read_bytes())
    data[place : place + 4] = value.to_bytes(4, "little")
    with pytest.raises(UsageError, match=words):
        parse_sion(bytes(data))


# ------------------------------------------------------------------------------------------------ IMB


def test_imb_benchmarks_are_rows_of_a_pair():
    run = run_of("imb", "imb-mpi1-2021.11-pingpong-uniband-openmpi4.1.4-np2.txt", ["n1", "n2"])
    rows = {row.facts.variant: row for row in run.rows}

    def seconds(name, size):
        return float(np.asarray(rows[name].arrays["time_mean"])[0, 0, rows[name].sizes.index(size)])

    assert run.hosts == ["n1", "n2"]
    assert seconds("PingPong", 65536) == pytest.approx(6.53e-6)
    assert seconds("PingPing", 65536) == pytest.approx(6.86e-6)
    assert seconds("Sendrecv", 65536) == pytest.approx(6.75e-6)  # 2 x 65536 / 6.75 us are the 19425 MB/s beside it
    assert seconds("Exchange", 65536) == pytest.approx(14.68e-6 / 2)  # with both neighbours, which are the same rank
    assert seconds("Uniband", 2048) == pytest.approx(2048 / 9378.08e6, rel=1e-5)
    assert seconds("Biband", 8) == pytest.approx(2 / 11080866, rel=1e-5)
    assert [rows[name].kernel for name in ("PingPong", "PingPing", "Uniband", "Biband")] == [
        "latency",
        "exchange",
        "bandwidth",
        "bibandwidth",
    ]
    assert (rows["PingPong"].sizes[0], rows["Uniband"].sizes[0]) == (0, 1)


def test_imb_groups_at_once_are_pairs_of_their_ranks():
    run = run_of("imb", "imb-mpi1-2021.11-multi1-openmpi4.1.4-np4.txt")
    row = only_row(run)
    partner = np.asarray(row.arrays["dst"])[:, 0]
    assert partner.tolist() == [1, -1, 3, -1]
    assert np.asarray(row.arrays["time_mean"])[[0, 2], 0, 0] == pytest.approx([3.58e-6, 3.59e-6])
    summed = only_row(run_of("imb", "imb-mpi1-2021.11-multi0-openmpi4.1.4-np4.txt"))
    assert summed.pattern == "world"
    assert float(np.asarray(summed.arrays["time_max"])[0, 0, summed.sizes.index(128)]) == pytest.approx(145.55e-6)


def test_imb_of_collectives_alone_is_refused_by_name():
    with pytest.raises(UsageError, match="Benchmarking Alltoall"):
        run_of("imb", "imb-mpi1-2021.11-alltoall-openmpi4.1.4-np2.txt")


# ------------------------------------------------------------------------------------------------ OSU


def test_osu_figures_of_many_pairs_belong_to_none():
    row = only_row(run_of("osu", "osu_mbw_mr-7.4-openmpi4.1.4-np4.txt"))
    assert (row.pattern, row.kernel, row.facts.sampling.windows[0]) == ("world", "bandwidth", 64)
    assert float(np.asarray(row.arrays["time_mean"])[0, 0, 0]) == pytest.approx(2 / 5943957.31)


def test_osu_windows_of_a_varied_run_are_rows_of_their_own(tmp_path):
    path = tmp_path / "varied.txt"
    path.write_text(
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 1 ] [ window size: varied ]\n\n"
        "# Uni-directional Bandwidth (MB/sec)\n#     1     2\n1     1.25   2.50\n2     2.50   5.00\n\n"
        "# Message Rate Profile\n#     1     2\n1     1250000.5   2500000.5\n2     1250000.5   2500000.5\n"
    )
    first, second = import_run([path]).rows
    assert [row.facts.sampling.windows for row in (first, second)] == [[1, 1], [2, 2]]
    assert np.asarray(second.arrays["time_mean"])[0, 0] == pytest.approx([1 / 2500000.5] * 2, rel=1e-6)
    assert first.facts.schedule.rounds == 1


def test_osu_collectives_with_named_hosts(tmp_path):
    run = run_of("osu", "osu_alltoall-7.4-openmpi4.1.4-np4.txt", ["a", "b", "c", "d"])
    assert (run.ranks, only_row(run).kernel, only_row(run).pattern) == (4, "alltoall", "world")


def test_osu_releases_are_not_mixed(tmp_path):
    text = (FIXTURES / "osu" / "osu_latency-7.4-openmpi4.1.4-np2-quiet.txt").read_text()
    path = tmp_path / "mixed.txt"
    path.write_text(text + text.replace("v7.4", "v5.7"))
    run = import_run([path])
    assert [row.facts.variant for row in run.rows] == ["7.4", "5.7"]
    assert run.facts.imported.tool == "osu 5.7 7.4"


def test_osu_figures_under_the_title_of_another_test_are_left_out():
    with pytest.raises(UsageError, match="fan-in and fan-out print MB/s under it"):
        run_of("osu", "osu_bw_fan_in-7.4-openmpi4.1.4-np3-fakenodes3.txt")


# ------------------------------------------------------------------------------------------------ others


def test_clusterkit_figures_that_run_into_each_other(tmp_path):
    path = tmp_path / "bandwidth.txt"
    text = (FIXTURES / "clusterkit" / "clusterkit-layout-synthetic.txt").read_text()
    plain = only_row(run_of("clusterkit", "clusterkit-layout-synthetic.txt"))
    path.write_text(text.replace("   98394.8   98247.0   98401.2", "  198394.8198247.0198401.2"))
    assert means(plain)[0, 2] == pytest.approx(2 * 32 * MIB / 98247.0e6)  # of both directions
    assert means(only_row(import_run([path])))[0] == pytest.approx(
        [np.nan, *(2 * 32 * MIB / one for one in (198394.8e6, 198247.0e6, 198401.2e6))], nan_ok=True
    )
    assert (plain.kernel, plain.payload) == ("bibandwidth", "both")


CLUSTERKIT = {"nodes": ["n1", "n2"], "bandwidth": {"matrix": [[0, 48.5], [47.5, 0]]}}


@pytest.mark.parametrize(
    ("keys", "size", "seconds"),
    [
        ({"unit": "GB/s"}, 32 * MIB, 2 * 32 * MIB / 48.5e9),
        ({"unit": "GiB/s", "message_size": 1 << 20}, MIB, 2 * MIB / (48.5 * 2**30)),
        ({"Units": "MB/s", "msg size": 4096}, 4096, 2 * 4096 / 48.5e6),
        ({"bsize": 65536}, 65536, 2 * 65536 / 48.5e6),
    ],
)
def test_units_and_sizes_that_clusterkit_states(tmp_path, keys, size, seconds):
    path = tmp_path / "bandwidth.json"
    path.write_text(json.dumps(CLUSTERKIT | keys))
    row = only_row(import_run([path]))
    assert row.sizes == (size,)
    assert means(row)[0, 1] == pytest.approx(seconds)


@pytest.mark.parametrize("unit", ["furlongs", "us", "gb/s"])
def test_a_unit_of_clusterkit_that_is_not_known_is_named(tmp_path, unit):
    path = tmp_path / "bandwidth.json"
    path.write_text(json.dumps(CLUSTERKIT | {"unit": unit}))
    with pytest.raises(UsageError, match=f"the unit '{unit}' of unit is not known"):
        import_run([path])


def test_nccl_tests_are_figures_of_all_ranks():
    run = run_of("nccl_tests", "nccl-tests-2.13-all_reduce-synthetic.txt")
    out, within = run.rows
    assert (run.ranks, run.hosts) == (4, ["gpu001", "gpu002"])
    assert [row.pattern for row in run.rows] == ["world", "world"]
    assert (out.kernel, out.facts.carrier.transport) == ("allreduce", "nccl")
    assert np.asarray(out.arrays["time_mean"])[0, 0] == pytest.approx([27.43e-6, 30.12e-6, 112.4e-6, 47312e-6])
    assert np.asarray(within.arrays["time_mean"])[0, 0, 2] == pytest.approx(110.8e-6)
    assert run.facts.imported.lines_left_out == []  # one is of NCCL


def test_nccl_tests_of_older_releases_do_not_say_the_test():
    run = run_of("nccl_tests", "nccl-tests-2.11-all_gather-synthetic.txt", ["gpu001", "gpu002"])
    assert [row.kernel for row in run.rows] == ["collective", "collective"]
    assert run.state == "complete"


@pytest.mark.parametrize(
    ("head", "figure", "seconds"),
    [("time", "2.5e-6", 2.5e-6), ("time_us", "2.5", 2.5e-6), ("bandwidth", "400", 1000 / 400e6)],
)
def test_csv_says_its_unit_in_the_header(tmp_path, head, figure, seconds):
    path = tmp_path / "pairs.csv"
    path.write_text(f"src,dst,size,{head}\na,b,1000,{figure}\na,b,1000,{figure}\nb:1,a,1000,0\nb,,1,1\n")
    run = import_run([path])
    row = only_row(run)
    assert np.asarray(row.arrays["time_mean"])[:, 0, 1, 0] == pytest.approx([seconds, seconds])
    assert row.kernel == ("bandwidth" if head == "bandwidth" else "latency")
    assert [one.line for one in run.facts.imported.lines_left_out] == [4, 5]

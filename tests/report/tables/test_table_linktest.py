"""LinkTest's lines to the letter, and the commitment table with its rules."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from table_cases import both_ways, row, run_of, stored

from fablint.errors import UsageError
from fablint.report import Options, render_table
from fablint.report.tables.steps import rate_words, starts, steps, time_words
from fact_cases import with_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "linktest"
US, GIB, SIZE = 1e-6, 2**30, 16 << 20

# Four ranks, each of 0, 1 with each of 2, 3; both directions at once. Seconds for 16 MiB.
ROUND = {(0, 2): 0, (1, 3): 0, (0, 3): 1, (1, 2): 1}
TIMES = both_ways(
    {
        **{(0, 2): [1e-3], (2, 0): [1e-3], (1, 3): [2e-3], (3, 1): [2e-3]},
        **{(0, 3): [1e-3], (3, 0): [2e-3], (1, 2): [4e-3], (2, 1): [4e-3]},
    },
    ROUND,
)


def bisection_row(**attributes):
    known = {"iterations": [25], "warmup": 3, "wall_s": 0.01, "directions": "both"}
    return row("exchange", "bisection", TIMES, **{"ranks": 4, "rounds": 2, "sizes": (SIZE,), **known, **attributes})


def nics(*names, kind="infiniband", state="4: ACTIVE", speed=200_000):
    return [{"name": name, "kind": kind, "state": state, "speed_mbps": speed, "mtu": 0, "numa": 0} for name in names]


def commitment_run(made=None, **attributes):
    """Two hosts of two NICs, a rank for each."""
    known = {
        "nics": {host: nics("mlx5_0/1", "mlx5_1/1") + nics("eth0", kind="ethernet", state="up") for host in "ab"},
        "rank_nic": ["mlx5_0/1", "mlx5_1/1"] * 2,
    }
    return run_of(made or bisection_row(), hosts=["a", "a", "b", "b"], **{**known, **attributes})


def linktest(run, **options):
    return render_table(run, "linktest", Options(**options)).text.splitlines()


def shape(line):
    """The line without its figures: every digit is a 9, every blank stays."""
    return re.sub(r"[0-9]", "9", line)


def test_lines_are_linktests_but_for_the_figures():
    """Blanks and units included: the published lines, with ours of the same magnitude."""
    cells = both_ways({(0, 1): [11.64910e-6], (1, 0): [11.772e-6]})
    made = row("latency", "bisection", cells, sizes=(262144,), wall_s=24.52618e-3)
    published = (FIXTURES / "linktest-2.x-step-lines.txt").read_text().splitlines()
    ours = [line for line in linktest(run_of(made)) if re.match("Parallel|Aggregated|Timing", line)]
    assert [shape(line) for line in ours][:2] == [
        shape(line).replace("    99.9999 GiB", "    99.9999 GiB") for line in published
    ][:2]
    assert PINNED["Parallel Results for step"].begins(ours[0])
    assert ours[2] == PINNED["Timing Summary: Elapsed time"]
    words = re.compile(r"[A-Z][a-z ]+(?=:|\.)")
    assert words.findall(ours[2]) == words.findall(published[2])


def test_units_follow_the_magnitude():
    assert (time_words(2.5), time_words(999e-9)) == ("   2.50000 s", " 999.00000 ns")
    assert (rate_words(3 * 2.0**40), rate_words(2048.0)) == ("    3.0000 TiB/s", "    2.0000 KiB/s")


def test_min_mean_and_max_of_a_step_are_those_of_its_directed_pairs(tmp_path):
    run = stored(run_of(bisection_row()), tmp_path)
    first, second = steps(run.rows[0], 0)
    assert (first.low, first.mean, first.high) == pytest.approx((1e-3, 1.5e-3, 2e-3))
    assert (second.low, second.mean, second.high) == pytest.approx((1e-3, 2.75e-3, 4e-3))
    # 16 MiB in both directions at once: 0-2 moves 2 x 16 MiB in 1 ms, 1-3 in 2 ms; 0-3 and 3-0 in 1 and 2 ms
    assert first.bandwidth == pytest.approx(2 * SIZE / 1e-3 + 2 * SIZE / 2e-3)
    assert second.bandwidth == pytest.approx(SIZE / 1e-3 + SIZE / 2e-3 + 2 * SIZE / 4e-3)


def test_a_row_of_streams_counts_the_mean_of_its_two_directions():
    cells = both_ways({(0, 1): [1e-3], (1, 0): [2e-3]})
    (step,) = steps(row("bandwidth", "bisection", cells, sizes=(SIZE,)), 0)
    assert step.bandwidth == pytest.approx((SIZE / 1e-3 + SIZE / 2e-3) / 2)
    forward = row("bandwidth", "bisection", {(0, 1, 0): [1e-3]}, sizes=(SIZE,), directions="single")
    assert steps(forward, 0)[0].bandwidth == pytest.approx(SIZE / 1e-3)


def test_aggregated_results_run_along_with_the_steps():
    found = render_table(run_of(bisection_row()), "linktest", Options()).as_dict()
    total = found["aggregated"]
    assert (total["low"], total["high"]) == pytest.approx((1e-3, 4e-3))
    assert total["mean"] == pytest.approx((1.5e-3 + 2.75e-3) / 2)
    bandwidths = [step["bandwidth"] for step in found["steps"]]
    assert total["bandwidth"] == pytest.approx(sum(bandwidths) / 2)


def test_result_lines_and_the_header():
    lines = linktest(run_of(bisection_row()))
    assert PINNED["RESULT: Min Time: 1.00000"] in lines
    assert PINNED["RESULT: Max Time: 4.00000"] in lines
    assert PINNED["RESULT: Avg Time: 2.12500"] in lines
    assert PINNED["linktest: Virtual-Cluster"] in lines
    assert PINNED["linktest: Number of MPI-Task"] in lines
    assert PINNED["linktest: Message length"] in lines
    assert PINNED["linktest: Number of Iteration"] in lines
    assert "both directions, 2 x size / time" in lines[1]


def test_all_pairs_have_no_bisection_bandwidth_and_serial_steps_say_so():
    cells = both_ways({(0, 1): [2e-3], (1, 0): [1e-3]})
    lines = linktest(run_of(row("latency", "all-pairs", cells, order="serial", sizes=(SIZE,))))
    (line,) = [line for line in lines if "Results for step" in line]
    assert PINNED["Serial Results for step 1"].begins(line)
    assert "bisection" not in line


def test_slowest_pairs_come_with_what_their_retest_found(tmp_path):
    retest = row(
        "exchange",
        "rounds",
        both_ways({(1, 2): [1e-3], (2, 1): [1.5e-3]}),
        ranks=4,
        sizes=(SIZE,),
        name="exchange-retest",
        retest_of="exchange",
        order="serial",
    )
    run = stored(run_of(bisection_row(), retest), tmp_path)
    found = render_table(run, "linktest", Options(slowest=1)).as_dict()["slowest"]
    assert [(one["src"], one["dst"]) for one in found] == [(1, 2), (2, 1)]  # one was asked for, two were re-tested
    assert [one["first"] for one in found] == pytest.approx([4e-3, 4e-3])
    assert [one["second"] for one in found] == pytest.approx([1e-3, 1.5e-3])
    lines = linktest(run, slowest=3)
    slow = [line for line in lines if "PINGPONG" in line]
    assert re.fullmatch(
        r"      0: PINGPONG      1  <->       2:  1st:  4000\.000\dus \(8000\.00 MiB/s\)"
        r"    2nd:  1000\.000\dus \(32000\.00 MiB/s\)  n1 <-> n2",
        slow[0],
    )
    assert slow[2].split("2nd: ")[1] == "not re-tested  n1 <-> n3"
    assert PINNED["RESULT: Max Time Stest: 1.50000"] in lines


def test_the_retest_is_no_section_of_its_own():
    retest = row("exchange", "rounds", TIMES, ranks=4, rounds=2, sizes=(SIZE,), name="again", retest_of="exchange")
    assert "tables" not in render_table(run_of(bisection_row(), retest), "linktest", Options()).as_dict()


def test_a_step_that_lacks_pairs_says_so():
    made = bisection_row()
    made.arrays["count"][0, 3, 0] = 0
    made = with_facts(made, state="interrupted")
    assert "# step 2: 3 of 4 directed pairs measured" in linktest(run_of(made))


def test_starts_of_rounds_in_either_layout():
    listed = row("latency", "random", TIMES, ranks=4, rounds=2)
    for made in (bisection_row(), listed):
        assert starts(made) == pytest.approx([0, 1e-3])
    assert np.isnan(starts(replace(listed, arrays={**listed.arrays, "started": np.full((4, 2), np.nan)}))).all()


# ------------------------------------------------------------------------------------------------ commitment


def bisection(run):
    return render_table(run, "bisection", Options())


def broken(run):
    return bisection(run).as_dict()["broken"]


def test_a_run_that_keeps_all_rules_is_a_commitment_run(tmp_path):
    found = bisection(stored(commitment_run(), tmp_path))
    facts = found.as_dict()
    assert (facts["commitment"], facts["broken"]) == (True, [])
    assert PINNED["This is a commitment run"].ends(found.text)
    # the steps of test_min_mean_and_max: 3 and 2 times 16 MiB / ms
    assert facts["bisection_bytes_per_s"] == pytest.approx({"min": 2000 * SIZE, "avg": 2500 * SIZE, "max": 3000 * SIZE})
    lines = [line.split() for line in found.text.splitlines()]
    assert ["GiB/s", "31.2500", "39.0625", "46.8750"] in lines
    assert ["25", "16777216", "--bidirectional", "--bisection", "2", "2", "2"] in lines
    assert PINNED["bytes counted: both directions"] in found.text


@pytest.mark.parametrize(
    ("rule", "run"),
    [
        ("messages of 16 MiB", commitment_run(bisection_row(sizes=(1 << 20,)))),
        ("at least 25 messages", commitment_run(bisection_row(iterations=[24]))),
        ("at least 25 messages", commitment_run(bisection_row(iterations=None, count=24))),
        ("at least 3 messages to warm up", commitment_run(bisection_row(warmup=2))),
        ("at least 3 messages to warm up", commitment_run(bisection_row(warmups=[2]))),
        ("one rank per network adapter", commitment_run(nics={host: nics("mlx5_0/1") for host in "ab"})),
        ("one rank per network adapter", commitment_run(rank_nic=["mlx5_0/1"] * 4)),
        ("one rank per network adapter", commitment_run(nics={})),
        (
            "equal halves, every host in one of them",
            commitment_run(rank_host=[0, 1, 0, 1], rank_nic=["mlx5_0/1"] * 2 + ["mlx5_1/1"] * 2),
        ),
        ("all pairs measured", commitment_run(bisection_row(cells_per_round=[4, 6]))),
        ("a real fabric", commitment_run(simulated={"seed": 1})),
        ("a real fabric", commitment_run(bisection_row(transport="null"))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_broken_rule_is_named(rule, run):
    assert broken(run) == [rule]
    assert f"This is NOT a commitment run. Broken: {rule}." in bisection(run).text


def test_one_host_is_no_fabric_and_stands_in_both_halves():
    run = commitment_run()
    one = {"hosts": ["a"], "rank_host": [0] * 4, "nics": {"a": nics(*"0123")}, "rank_nic": list("0123")}
    found = broken(with_facts(run, **one))
    assert found == ["more than one host", "equal halves, every host in one of them"]


def test_one_direction_breaks_a_rule_and_counts_one_direction():
    made = with_facts(bisection_row(), kernel="bandwidth", payload="src")
    found = bisection(commitment_run(made))
    assert found.as_dict()["broken"] == ["both directions at once"]
    assert "one direction of every pair, size / time" in found.text
    assert found.as_dict()["options"] == "--bisection"


def test_an_odd_number_of_ranks_breaks_two_rules():
    cells = both_ways({(0, 1): [1e-3], (1, 0): [1e-3], (0, 2): [1e-3], (2, 0): [1e-3]}, {(0, 2): 1})
    made = row("exchange", "bisection", cells, ranks=3, rounds=2, sizes=(SIZE,), iterations=[25])
    known = {"nics": {host: nics("hsn") for host in "abc"}, "rank_nic": ["hsn"] * 3}
    found = broken(run_of(made, hosts=list("abc"), **known))
    assert found == ["an even number of ranks", "equal halves, every host in one of them"]


def test_one_adapter_may_be_left_over_where_their_number_is_odd():
    """Five adapters: four ranks, and only one host has one to spare."""
    hosts = {"a": nics("m0", "m1"), "b": nics("m0", "m1", "m2")}
    assert broken(commitment_run(nics=hosts, rank_nic=["m0", "m1"] * 2)) == []
    hosts = {"a": nics("m0", "m1", "m3"), "b": nics("m0", "m1", "m2")}
    assert broken(commitment_run(nics=hosts, rank_nic=["m0", "m1"] * 2)) == ["one rank per network adapter"]


def test_a_pair_inside_a_half_is_no_bisection():
    cells = both_ways({(0, 1): [1e-3], (1, 0): [1e-3], (2, 3): [1e-3], (3, 2): [1e-3]})
    made = row("exchange", "bisection", cells, ranks=4, sizes=(SIZE,), iterations=[25])
    assert broken(commitment_run(made)) == ["equal halves, every host in one of them"]
    assert "ranks 0 and 1 of one half were a pair" in bisection(commitment_run(made)).text


def test_several_messages_of_a_window_are_all_counted():
    made = bisection_row(iterations=[5], windows=[5], warmup=1)
    assert broken(commitment_run(made)) == []


def test_a_step_that_lacks_pairs_does_not_pass_for_a_slow_one():
    made = bisection_row()
    made.arrays["count"][0, 3, 0] = 0
    facts = bisection(commitment_run(made)).as_dict()
    assert facts["broken"] == ["all pairs measured"]
    assert facts["bisection_bytes_per_s"]["min"] == pytest.approx(3000 * SIZE)  # of the whole step alone


def test_without_a_bisection_row_it_is_refused():
    run = run_of(row("latency", "pair", {(0, 1, 0): [US]}))
    with pytest.raises(UsageError, match=r"table bisection needs a row of the pattern bisection.*linktest_bisection"):
        bisection(run)

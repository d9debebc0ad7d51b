"""Plan files: defaults, counts, predictions, and one-line errors that name the line."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fablint.errors import UsageError
from fablint.model import RowSpec
from fablint.plan import parse_plan
from fablint.plan.rows.cost import windows
from fablint.plan.rows.patterns import extent, parse_rounds
from fablint.plan.rows.row_text import parse_row
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)

ROUNDS = "0-1 2-3  # first\n\n# nothing\n1-2\n"


def refusal(line: str, ranks: int = 4, **kwargs) -> str:
    """The error for a plan with `line` in line 7."""
    with pytest.raises(UsageError) as caught:
        parse_plan("# a plan\n\n\n\n\n\n" + line, ranks, "plan.txt", **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_plan_is_written_without_comments_and_further_blanks():
    plan = parse_plan("latency --sizes 8 # small\n\n  bandwidth   --pattern pairs\n", 8, "plan.txt")
    assert plan.text == PINNED["latency --sizes 8 bandwidth"]
    assert plan.ranks == 8


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("latency --sizs 8", "plan.txt:7: unknown option --sizs: did you mean --sizes"),
        ("latency -s 8", "plan.txt:7: unknown option -s"),
        ("latncy", "plan.txt:7: unknown kernel 'latncy': did you mean latency"),
        ("--sizes 8", "plan.txt:7: no kernel"),
        ("latency bandwidth", "plan.txt:7: more than one kernel: latency bandwidth"),
        ("latency --sizes", "plan.txt:7: option --sizes has no value"),
        ("latency --validate=yes", "plan.txt:7: option --validate takes no value"),
        ("latency --seed 1 --seed 2", "plan.txt:7: option --seed appears twice"),
        ("latency --sizes -8", "plan.txt:7: --sizes: '-8' is not a size"),
        ("bandwidth --sizes 0,8", "plan.txt:7: --sizes 0 does not apply to bandwidth: start at 1"),
        ("latency --pattern star", "plan.txt:7: --pattern: 'star' is unknown: choose pair, pairs, all-pairs"),
        ("latency --window 8", "plan.txt:7: --window does not apply to latency: the kernel"),
        ("latency --matchings 3", "plan.txt:7: --matchings does not apply to pattern pair: use"),
        ("latency --pattern rounds", "plan.txt:7: --pattern rounds requires --rounds or --rounds-file"),
        ("latency --rounds 0-9 --pattern rounds", "plan.txt:7: --rounds: round 0: rank 9 does not exist"),
        ("latency --rounds 0-1;0-1,1-2 --pattern rounds", "plan.txt:7: --rounds: round 1: rank 1 appears twice"),
        ("latency --rounds 0-1; --pattern rounds", "plan.txt:7: --rounds: round 1: '' is not a pair: write it as 0-1"),
        ("latency --name report", "plan.txt:7: --name: 'report' is not a name for a row"),
        ("latency --name ../up", "plan.txt:7: --name: '../up' is not a name for a row"),
        ("latency --only-rounds 1", "plan.txt:7: --only-rounds: round 1 does not exist: the row has rounds 0-0"),
        ("latency --name a\nexchange --name a", "plan.txt:8: the name a is taken by line 7"),
        ("latency --name a --retest 3\nexchange --name a-retest", "plan.txt:8: the name a-retest is taken by line 7"),
        ("latency --validate --transport null", "plan.txt:7: --validate does not apply to transport null: it"),
        ("latency --validate --batch 2", "plan.txt:7: --validate excludes --batch: every message is"),
        ("latency --window 1", "plan.txt:7: --window does not apply to latency: the kernel"),
    ],
)
def test_refusals_name_the_line_and_the_remedy(line, error):
    assert refusal(line).startswith(error)


def test_one_rank_is_refused():
    assert PINNED["plan.txt:7: pattern pair"].begins(refusal("latency", ranks=1))


def test_an_empty_plan_is_refused():
    assert refusal("# nothing").startswith("plan.txt: no row in the plan")


def test_rows_without_a_name_never_collide():
    plan = parse_plan("latency\nlatency\nlatency --name latency\nlatency\n", 2, "plan.txt")
    assert len(plan.rows) == 4


@pytest.mark.parametrize(
    ("pattern", "ranks", "rounds", "groups"),
    [
        ("pair", 5, 1, 1),
        ("pairs", 5, 1, 2),
        ("all-pairs", 2, 1, 1),
        ("all-pairs", 8, 7, 28),
        ("all-pairs", 7, 7, 21),
        ("bisection", 8, 4, 16),
        ("bisection", 7, 4, 12),
        ("random", 8, 3, 12),
        ("rounds", 4, 2, 3),
    ],
)
def test_rounds_and_predicted_seconds(pattern, ranks, rounds, groups):
    extra = {"random": "--matchings 3", "rounds": "--rounds-file r.txt"}.get(pattern, "")
    line = f"latency --pattern {pattern} {extra} --repeats 2 --budget 0.5"
    plan = parse_plan(
        f"{line} --name a\n{line} --name b --order serial", ranks, "plan.txt", {"r.txt": ROUNDS}.__getitem__
    )
    parallel, serial = plan.rows
    assert parallel.rounds == serial.rounds == 2 * rounds
    assert parallel.predicted_s == pytest.approx(2 * rounds * 0.5 * 1.1)
    assert serial.predicted_s == pytest.approx(2 * groups * 0.5 * 1.1)


@pytest.mark.parametrize(
    ("line", "ranks", "rounds"),
    [
        ("bandwidth --pattern fan-in", 8, 1),
        ("bandwidth --pattern fan-out", 2, 1),
        ("rpc_put --pattern clients-servers --servers 3", 8, 3),
        ("alltoall", 8, 1),
        ("latency --pattern victim-aggressor", 8, 2),
        ("latency --pattern rounds --rounds 0-1,2-3;1-2", 4, 2),
    ],
)
def test_rounds_of_the_other_patterns(line, ranks, rounds):
    (row,) = parse_plan(f"{line} --repeats 3 --budget 1", ranks, "plan.txt").rows
    assert row.rounds == 3 * rounds
    assert row.predicted_s == pytest.approx(3 * rounds * 1.1)


@given(st.integers(2, 5000))
def test_all_pairs_rounds_hold_all_pairs(ranks):
    size = extent(RowSpec("latency", pattern="all-pairs"), ranks)
    assert size.groups == size.rounds * (ranks // 2)


@given(st.integers(2, 300), st.data())
def test_every_client_has_every_server_once(ranks, data):
    servers = data.draw(st.integers(1, ranks - 1))
    size = extent(RowSpec("rpc_put", pattern="clients-servers", servers=servers), ranks)
    assert size.rounds == servers
    assert size.groups * size.fan >= servers * (ranks - servers)


def test_a_sampled_row_is_predicted_from_a_nominal_fabric():
    few, many, large, capped = parse_plan(
        "latency --samples 1000 --sizes 8 --name a\nlatency --samples 2000 --sizes 8 --name b\n"
        "latency --samples 1000 --sizes 1M --name c\nlatency --samples 1000000000 --name d",
        2,
        "plan.txt",
    ).rows
    assert 0.001 < few.predicted_s < 0.1
    assert many.predicted_s == pytest.approx(2 * few.predicted_s, rel=0.05)
    assert large.predicted_s > 10 * few.predicted_s
    assert capped.predicted_s == pytest.approx(60 * 1.1)


def test_the_first_stopping_rule_counts():
    both, precise, default = parse_plan(
        "latency --samples 1000000000 --budget 2\nlatency --precision 0.5 --sizes 8\nlatency",
        2,
        "plan.txt",
    ).rows
    assert both.predicted_s == pytest.approx(2 * 1.1)
    assert precise.predicted_s < 0.01
    assert default.predicted_s == pytest.approx(1.1)


def test_counts_are_predicted_without_a_limit_of_a_minute():
    few, many, forward, large, long = parse_plan(
        "latency --iterations 1000 --sizes 8 --name a\nlatency --iterations 2000 --warmup 20 --sizes 8 --name b\n"
        "latency --iterations 1000 --directions single --sizes 8 --name c\n"
        "latency --iterations 1000,10 --sizes 8K,16K --name d\nlatency --iterations 1000000 --name e",
        2,
        "plan.txt",
    ).rows
    assert many.predicted_s == pytest.approx(2 * few.predicted_s)
    assert forward.predicted_s == pytest.approx(few.predicted_s / 2)
    assert large.predicted_s < 3 * few.predicted_s
    assert long.predicted_s > 100


def test_a_budget_above_a_minute_is_believed():
    (row,) = parse_plan("latency --budget 300", 2, "plan.txt").rows
    assert row.predicted_s == pytest.approx(330)


def test_a_retest_takes_its_time_as_well():
    without, retested = parse_plan(
        "latency --pattern all-pairs --budget 1 --name a\nlatency --pattern all-pairs --budget 1 --retest 5 --name b",
        4,
        "plan.txt",
    ).rows
    assert retested.predicted_s - without.predicted_s == pytest.approx(5 * 1.1)
    assert retested.rounds == without.rounds == 3


def test_only_a_row_of_threads_asks_for_them():
    rows = parse_plan("latency_mt\nlatency_mp\nlatency", 2, "plan.txt").rows
    assert [row.spec.needs_threads for row in rows] == [True, False, False]


def test_windows_stay_within_16_mib_to_a_peer_and_256_mib_to_all():
    row = parse_row(["bandwidth", "--sizes", "1,512K,4M,64M"])
    assert list(windows(row)) == [64, 32, 4, 1]
    assert list(windows(row, 64)) == [64, 8, 1, 1]
    assert list(windows(parse_row(["bandwidth", "--sizes", "4M", "--window", "64"]), 64)) == [64]
    assert list(windows(parse_row(["latency", "--sizes", "8,4M"]))) == [1, 1]


def test_only_rounds_are_counted():
    (row,) = parse_plan("latency --pattern all-pairs --budget 1 --only-rounds 0-2,5", 8, "plan.txt").rows
    assert row.rounds == 4
    assert row.predicted_s == pytest.approx(4.4)


def test_a_rounds_file_is_read_through_the_resolver():
    def missing(path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    line = "latency --pattern rounds --rounds-file r.txt"
    assert refusal(line, read_file=missing) == PINNED["plan.txt:7: --rounds-file r.txt"]
    assert PINNED["r.txt:4: rank 2 does"] in refusal(line, 2, read_file=lambda _: "\n\n\n0-1 2-3")
    assert refusal(line).startswith("plan.txt:7: --rounds-file r.txt")


def test_rounds_files():
    assert parse_rounds(ROUNDS, 4, "r.txt") == [[(0, 1), (2, 3)], [(1, 2)]]
    for text, error in {
        "0-1 1-2": "r.txt:1: rank 1 appears twice",
        "\n2-2": "r.txt:2: rank 2 appears twice",
        "0:1": "r.txt:1: '0:1' is not a pair",
        "# none": "r.txt: no round in the file",
    }.items():
        with pytest.raises(UsageError) as caught:
            parse_rounds(text, 4, "r.txt")
        assert str(caught.value).startswith(error)


def test_every_row_over_several_transports():
    carriers = {"transport": ("mpi", "tcp"), "device": "lo"}
    plan = parse_plan("latency\nlatency --name small --sizes 8\nlatency", 4, "plan.txt", carriers=carriers)
    assert [row.spec.name for row in plan.rows] == [
        *("latency-mpi", "latency-tcp", "small-mpi", "small-tcp", "latency-mpi-2", "latency-tcp-2")
    ]
    assert [row.spec.device for row in plan.rows[:2]] == [None, "lo"]


def test_another_transport_than_that_of_the_row_is_refused():
    error = refusal("latency --transport ucx", carriers={"transport": ("mpi", "tcp")})
    assert PINNED["plan.txt:7: option --transport"].begins(error)

"""Plan files: defaults, counts, predictions, and one-line errors that name the line."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fablint.errors import UsageError
from fablint.plan import bench_row, parse_plan
from fablint.plan.grammar import KERNELS, OPTIONS, RowRequest, parse_row
from fablint.plan.patterns import extent, parse_rounds

ROUNDS = "0-1 2-3  # first\n\n# nothing\n1-2\n"


def refusal(line: str, ranks: int = 4, **kwargs) -> str:
    """The error for a plan with `line` in line 7."""
    with pytest.raises(UsageError) as caught:
        parse_plan("# a plan\n\n\n\n\n\n" + line, ranks, "plan.txt", **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_line_is_kept_without_its_comment():
    plan = parse_plan("latency --sizes 8 # small\n\n  bandwidth   --pattern pairs\n", 8, "plan.txt")
    assert plan.text == "latency --sizes 8\nbandwidth   --pattern pairs\n"
    assert plan.ranks == 8


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("latency --sizs 8", "plan.txt:7: unknown option --sizs: did you mean --sizes"),
        ("latency -s 8", "plan.txt:7: unknown option -s"),
        ("latncy", "plan.txt:7: unknown kernel 'latncy': choose latency, bandwidth, bibandwidth or exchange"),
        ("--sizes 8", "plan.txt:7: no kernel"),
        ("latency bandwidth", "plan.txt:7: more than one kernel: latency bandwidth"),
        ("latency --sizes", "plan.txt:7: option --sizes has no value"),
        ("latency --validate=yes", "plan.txt:7: option --validate takes no value"),
        ("latency --seed 1 --seed 2", "plan.txt:7: option --seed appears twice"),
        ("latency --sizes -8", "plan.txt:7: --sizes: '-8' is no size"),
        ("bandwidth --sizes 0,8", "plan.txt:7: --sizes: bandwidth has no meaning at size 0"),
        ("latency --pattern star", "plan.txt:7: --pattern: 'star' is unknown: choose pair, pairs, all-pairs"),
        ("latency --window 8", "plan.txt:7: --window: latency sends one message at a time"),
        ("latency --matchings 3", "plan.txt:7: --matchings: pattern pair draws no matchings"),
        ("latency --pattern rounds", "plan.txt:7: --rounds-file and --pattern rounds belong together"),
        ("latency --name report", "plan.txt:7: --name: 'report' is no name for a row"),
        ("latency --name ../up", "plan.txt:7: --name: '../up' is no name for a row"),
        ("latency --only-rounds 1", "plan.txt:7: --only-rounds: round 1 does not exist: the row has rounds 0-0"),
        ("latency --name a\nexchange --name a", "plan.txt:8: the name a is taken by line 7"),
        ("latency --validate --transport null", "plan.txt:7: --validate: transport null moves nothing"),
        ("latency --validate --batch 2", "plan.txt:7: --validate checks every message by itself"),
        ("latency --window 1", "plan.txt:7: --window: latency sends one message at a time"),
    ],
)
def test_refusals_name_the_line_and_the_way_out(line, error):
    assert refusal(line).startswith(error)


def test_one_rank_is_refused():
    assert refusal("latency", ranks=1).startswith("plan.txt:7: pattern pair needs at least 2 ranks, this run has 1")


def test_an_empty_plan_is_refused():
    assert refusal("# nothing").startswith("plan.txt: no row in the plan")


def test_rows_without_a_name_never_collide():
    plan = parse_plan("latency\nlatency\nlatency --name latency\nlatency\n", 2, "plan.txt")
    assert len(plan.rows) == 4


@pytest.mark.parametrize(
    ("pattern", "ranks", "rounds", "pairs"),
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
def test_rounds_and_predicted_seconds(pattern, ranks, rounds, pairs):
    extra = {"random": "--matchings 3", "rounds": "--rounds-file r.txt"}.get(pattern, "")
    line = f"latency --pattern {pattern} {extra} --repeats 2 --budget 0.5"
    plan = parse_plan(
        f"{line} --name a\n{line} --name b --order serial", ranks, "plan.txt", {"r.txt": ROUNDS}.__getitem__
    )
    parallel, serial = plan.rows
    assert parallel.rounds == serial.rounds == 2 * rounds
    assert parallel.predicted_s == pytest.approx(2 * rounds * 0.5 * 1.1)
    assert serial.predicted_s == pytest.approx(2 * pairs * 0.5 * 1.1)


@given(st.integers(2, 5000))
def test_all_pairs_rounds_hold_all_pairs(ranks):
    size = extent("all-pairs", ranks)
    assert size.pairs == size.rounds * (ranks // 2)


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


def test_only_rounds_are_counted():
    (row,) = parse_plan("latency --pattern all-pairs --budget 1 --only-rounds 0-2,5", 8, "plan.txt").rows
    assert row.rounds == 4
    assert row.predicted_s == pytest.approx(4.4)


def test_a_rounds_file_is_read_through_the_resolver():
    def missing(path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    line = "latency --pattern rounds --rounds-file r.txt"
    assert (
        refusal(line, read_file=missing)
        == "plan.txt:7: --rounds-file r.txt: No such file or directory: name a readable file"
    )
    assert "r.txt:4: rank 2 does not exist: this run has ranks 0-1" in refusal(
        line, 2, read_file=lambda _: "\n\n\n0-1 2-3"
    )
    assert refusal(line).startswith("plan.txt:7: --rounds-file r.txt")


def test_rounds_files():
    assert parse_rounds(ROUNDS, 4, "r.txt") == [[(0, 1), (2, 3)], [(1, 2)]]
    for text, error in {
        "0-1 1-2": "r.txt:1: rank 1 appears twice",
        "\n2-2": "r.txt:2: rank 2 appears twice",
        "0:1": "r.txt:1: '0:1' is no pair",
        "# none": "r.txt: no round in the file",
    }.items():
        with pytest.raises(UsageError) as caught:
            parse_rounds(text, 4, "r.txt")
        assert str(caught.value).startswith(error)


def written(row: RowRequest) -> str:
    """The row as a plan line, options in an order of no meaning."""
    words = [row.kernel]
    for option in reversed(OPTIONS):
        value = getattr(row, option.replace("-", "_"))
        if value is True:
            words.append(f"--{option}")
        elif isinstance(value, tuple):
            words.append(f"--{option}={','.join(map(str, value)) or 'none'}")
        elif value is not None and value is not False:
            words.append(f"--{option} {value}")
    return " ".join(words)


optional_count = st.none() | st.integers(1, 1000)
row_requests = st.builds(
    RowRequest,
    kernel=st.sampled_from(sorted(KERNELS)),
    name=st.none() | st.from_regex(r"row-[a-z0-9_-]*", fullmatch=True),
    pattern=st.sampled_from(["pair", "pairs", "all-pairs", "bisection", "random"]),
    order=st.sampled_from(["parallel", "serial"]),
    repeats=st.integers(1, 9),
    seed=st.integers(0, 1 << 62),
    sizes=st.lists(st.integers(1, 1 << 30), min_size=1, max_size=5, unique=True).map(tuple),
    warmup=st.integers(0, 100),
    samples=optional_count,
    budget=st.none() | st.floats(1e-6, 1e6),
    precision=st.none() | st.floats(1e-6, 0.999),
    batch=optional_count,
    transport=st.sampled_from(["mpi", "null", "corrupt"]),
    validate=st.booleans(),
    histogram=st.booleans(),
    only_rounds=st.none() | st.sets(st.integers(0, 99)).map(lambda found: tuple(sorted(found))),
).filter(lambda row: not row.validate or (row.transport != "null" and row.batch in (None, 1)))


@given(row_requests)
def test_a_written_row_reads_back(row):
    assert parse_row(written(row).split()) == row


def test_every_option_of_the_grammar_is_documented_with_its_default(engine_page):
    defaults = {field.name: field.default for field in dataclasses.fields(RowRequest)}
    for option in OPTIONS:
        row = next((line for line in engine_page.splitlines() if line.startswith(f"| `--{option}")), None)
        assert row is not None, option
        default = defaults[option.replace("-", "_")]
        if isinstance(default, (str, int)) and not isinstance(default, bool):
            assert f"`{default}`" in row or f"| {default} |" in row


def test_bench_rows():
    assert bench_row("latency") == "latency --pattern pair"
    assert bench_row("bandwidth", "1K:4M", samples=100, only_rounds=None, validate=False) == (
        "bandwidth --pattern pair --sizes 1K:4M --samples 100"
    )
    with pytest.raises(UsageError, match="unknown option --sampels"):
        bench_row("latency", sampels=3)

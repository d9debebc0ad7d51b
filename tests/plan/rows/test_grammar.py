"""The grammar of a row: what is read reads back, and what makes no sense is refused in one line."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from hypothesis import given, strategies as st

from fablint.errors import UsageError
from fablint.model import RowSpec
from fablint.model.registry import KERNELS, OPTIONS, PATTERNS, SYNCS, WINS
from fablint.plan import parse_plan
from fablint.plan.rows.benchmarks import Benchmark
from fablint.plan.rows.patterns import extent
from fablint.plan.rows.row_text import parse_row
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)


def kernels_with(option: str) -> set[str]:
    return {name for name, kernel in KERNELS.items() if option in kernel.options}


WINDOWED = kernels_with("window")
ONE_SIDED = kernels_with("sync")
REQUESTS = kernels_with("server-flight")
OF_ALL_RANKS = {name for name, kernel in KERNELS.items() if kernel.groups == {"world"}}
BIDIRECTIONAL = {name for name, kernel in KERNELS.items() if kernel.bidirectional}


def refusal(line: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_row(line.split())
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_table_of_kernels(kernel):
    info = KERNELS[kernel]
    assert info.is_windowed == (kernel in WINDOWED)
    assert (kernel in ONE_SIDED | REQUESTS) == ("rma" in info.requires)
    assert OF_ALL_RANKS <= BIDIRECTIONAL
    assert info.is_duplex == (kernel in BIDIRECTIONAL - OF_ALL_RANKS)
    assert bool(info.win) == (kernel in ONE_SIDED | REQUESTS)
    assert (info.default_pattern == "world") == (kernel in OF_ALL_RANKS)
    assert info.quantity == ("bandwidth" if kernel in WINDOWED else "latency")
    row = parse_row([kernel])
    assert (row.pattern, all(map(info.accepts_size, row.sizes))) == (info.default_pattern, True)


@pytest.mark.parametrize(
    ("kernel", "first", "last"),
    [("latency", 1, 1 << 22), ("cas", 8, 8), ("barrier", 0, 0), ("allreduce", 4, 1 << 20), ("bcast", 1, 1 << 20)],
)
def test_sizes_when_none_are_asked_for(kernel, first, last):
    sizes = parse_row([kernel]).sizes
    assert (sizes[0], sizes[-1]) == (first, last)


@pytest.mark.parametrize(
    ("line", "win", "sync"),
    [
        ("put_latency", "allocate", "flush"),
        ("put_bibandwidth", "allocate", "pscw"),
        ("get_accumulate", "create", "lock"),
        ("rpc_get", "allocate", None),
        ("latency", None, None),
        ("fop --win dynamic --sync lock_all", "dynamic", "lock_all"),
    ],
)
def test_rma_windows_as_osu_has_them(line, win, sync):
    row = parse_row(line.split())
    assert (row.win, row.sync) == (win, sync)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_which_kernel_runs_on_which_pattern(kernel, pattern):
    possible = KERNELS[kernel].runs_on(pattern)
    assert possible == (PATTERNS[pattern].shape in KERNELS[kernel].groups)
    line = f"{kernel} --pattern {pattern}" + (" --rounds 0-1" if pattern == "rounds" else "")
    if possible:
        assert parse_row(line.split()).pattern == pattern
    else:
        assert f"{kernel} cannot run on pattern {pattern}: " in refusal(line)


# Option with a value -> the kernels for which it means something, on their own pattern.
FOR_SOME = {
    "--window 8": WINDOWED,
    "--buffers single": WINDOWED,
    "--workers 2:2": kernels_with("workers"),
    "--win create": ONE_SIDED | REQUESTS,
    "--sync fence": ONE_SIDED,
    "--server-flight 8": REQUESTS,
    "--directions single": KERNELS.keys() - BIDIRECTIONAL,
    "--retest 3": KERNELS.keys() - OF_ALL_RANKS,
    "--order serial": KERNELS.keys() - OF_ALL_RANKS,
    "--matchings 3": set(),
    "--servers 2": set(),
    "--victims 2": set(),
    "--aggressor all-to-all": set(),
}


@pytest.mark.parametrize("words", FOR_SOME)
@pytest.mark.parametrize("kernel", KERNELS)
def test_options_that_mean_something_for_some_kernels_alone(kernel, words):
    line = f"{kernel} {words}"
    if kernel in FOR_SOME[words]:
        assert parse_row(line.split()).kernel == kernel
    else:
        assert refusal(line).startswith(f"{words.split()[0]} does not apply to ")


@pytest.mark.parametrize(
    "line",
    [
        "latency --pattern random --matchings 3",
        "rpc_put --pattern clients-servers --servers 2",
        "latency --pattern victim-aggressor --victims 2 --aggressor all-to-all",
        "latency --pattern rounds --rounds 0-1",
        "latency --pattern rounds --rounds-file r.txt",
    ],
)
def test_options_of_a_pattern(line):
    assert parse_row(line.split())


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("latency --iterations 5 --samples 5", "--iterations excludes --samples: give one rule for when to stop"),
        ("latency --iterations 5 --precision 0.1", "--iterations excludes --precision: give one rule for when to stop"),
        ("latency --iterations 0", "--iterations: '0' is not a count"),
        ("latency --repeats 1000001", "--repeats: '1000001' is too large: give at most 1000000"),
        ("latency --iterations 5,", "--iterations: '' is not a count"),
        ("latency --iterations 5,6,7", "--iterations: '6,7' is not a count"),
        ("latency --warmup -1", "--warmup: '-1' is not a whole number"),
        ("latency_mt --workers 3", "--workers: '3' is not a pair of counts: give senders and receivers, such as 1:2"),
        ("latency_mt --workers 1:200", "--workers: '1:200' is too many: at most 128"),
        ("latency --barrier sample --batch 1", "--barrier sample requires --iterations or --samples: every rank"),
        ("latency --barrier sample --samples 9", "--barrier sample requires --batch 1: a sample is one repetition"),
        (
            "latency --barrier sample --samples 9 --batch 2",
            "--barrier sample requires --batch 1: a sample is one repetition",
        ),
        (
            "latency --barrier sample --samples 9 --batch 1 --budget 2",
            "--barrier sample excludes --budget: every rank takes the same number of samples",
        ),
        (
            "latency --barrier sample --samples 9 --batch 1 --order serial",
            "--barrier sample excludes --order serial: one pair is measured at a time",
        ),
        (
            "latency --pattern all-pairs --barrier sample --samples 9 --batch 1",
            "--barrier does not apply to pattern all-pairs: its pairs change from round to round",
        ),
        (
            "bandwidth --buffers single --validate",
            "--validate excludes --buffers single: the messages of a window would overwrite each other",
        ),
        ("put_bibandwidth --sync flush", "--sync flush does not apply to put_bibandwidth: both ends must take part"),
        ("cas --sizes 16", "--sizes 16 does not apply to cas: 8 is the only one"),
        ("barrier --sizes 8", "--sizes 8 does not apply to barrier: leave --sizes out"),
        ("allreduce --sizes 6", "--sizes 6 does not apply to allreduce: choose multiples of 4"),
        ("put_latency --sizes 0", "--sizes 0 does not apply to put_latency: start at 1"),
        (
            "latency --pattern rounds --rounds 0-1 --rounds-file r.txt",
            "--rounds excludes --rounds-file: give the rounds once",
        ),
        (
            "latency --rounds 0-1 --rounds-file r.txt",
            "--rounds-file does not apply to pattern pair: use --pattern rounds",
        ),
        ("latency --rounds 0-1", "--rounds does not apply to pattern pair: use --pattern rounds"),
        (
            "bandwidth --pattern fan-in --directions single",
            "--directions does not apply to pattern fan-in: its",
        ),
        ("bandwidth --pattern fan-in --retest 2", "--retest does not apply to pattern fan-in: it has no pairs"),
        (
            "latency --pattern victim-aggressor --order serial",
            "--order does not apply to pattern victim-aggressor: all",
        ),
        ("latency --matchings 3", "--matchings does not apply to pattern pair: use --pattern random"),
        ("latency --servers 3", "--servers does not apply to pattern pair: use --pattern clients-servers"),
        ("latency --aggressor all", "--aggressor: 'all' is unknown: choose incast or all-to-all"),
        ("put_latency --sync barrier", "--sync: 'barrier' is unknown: choose lock, flush"),
        ("latency --directions back", "--directions: 'back' is unknown: choose both or single"),
        ("latency --retest -1", "--retest: '-1' is not a whole number"),
    ],
)
def test_contradictions(line, error):
    assert refusal(line).startswith(error)


@pytest.mark.parametrize(
    ("line", "ranks", "error"),
    [
        ("rpc_put --pattern clients-servers --servers 4", 4, "--servers 4 leaves no client, this run has 4 ranks"),
        ("latency --pattern victim-aggressor", 3, "1 victim pair needs at least 4 ranks, this run has 3"),
        ("latency --pattern victim-aggressor --victims 4", 9, "4 victim pairs need at least 10 ranks, this run has 9"),
        ("put_latency --sync fence", 3, "--sync fence: a fence is for all ranks at once, this run has 3"),
        ("barrier", 1, "pattern world needs at least 2 ranks, this run has 1"),
    ],
)
def test_too_few_ranks_or_too_many(line, ranks, error):
    row = parse_row(line.split())
    with pytest.raises(UsageError) as caught:
        extent(row, ranks)
    assert str(caught.value).startswith(error)
    assert caught.value.hint


@pytest.mark.parametrize("ranks", [4, 5, 19, 20, 39, 1000])
def test_a_tenth_of_the_ranks_are_pairs_of_victims(ranks):
    size = extent(RowSpec("latency", pattern="victim-aggressor"), ranks)
    assert (size.rounds, size.groups) == (2, 2 * max(1, ranks // 10))


REGISTRY = {"two": Benchmark("two", "Some", "bandwidth --pattern pairs --window 8 --iterations 7,3", "two by two")}


def test_a_benchmark_stands_for_its_row_and_options_override_it():
    plain = parse_row(["two"], REGISTRY)
    assert (plain.kernel, plain.pattern, plain.window, plain.iterations) == ("bandwidth", "pairs", 8, (7, 3))
    other = parse_row(["--window", "2", "two", "--pattern", "pair", "--validate"], REGISTRY)
    assert (other.pattern, other.window, other.iterations, other.validate) == ("pair", 2, (7, 3), True)
    until = parse_row(["two", "--samples", "3"], REGISTRY)
    assert (until.samples, until.iterations) == (3, None)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("two --window 2 --window 3", "option --window appears twice"),
        ("two latency", "more than one kernel: two latency"),
        ("two --samples 3 --iterations 3", "--iterations excludes --samples: give one rule for when to stop"),
        ("tow", "unknown kernel 'tow': did you mean two"),
        ("zzz", "unknown kernel 'zzz': fablint bench --list shows all"),
    ],
)
def test_a_benchmark_is_held_to_the_grammar(line, error):
    with pytest.raises(UsageError) as caught:
        parse_row(line.split(), REGISTRY)
    assert str(caught.value).startswith(error)


optional_count = st.none() | st.integers(1, 1000)
counts = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6))
values = st.fixed_dictionaries(
    {},
    optional={
        "name": st.from_regex(r"row-[a-z0-9_-]*", fullmatch=True),
        "pattern": st.sampled_from(sorted(PATTERNS.keys() - {"rounds"})),
        "order": st.sampled_from(["parallel", "serial"]),
        "repeats": st.integers(1, 9),
        "seed": st.integers(0, 1 << 62),
        "sizes": st.lists(st.integers(1, 1 << 30), min_size=1, max_size=5, unique=True).map(tuple),
        "window": optional_count,
        "warmup": st.tuples(st.integers(0, 100), st.integers(0, 100)),
        "iterations": st.none() | counts,
        "samples": optional_count,
        "budget": st.none() | st.floats(1e-6, 1e6),
        "precision": st.none() | st.floats(1e-6, 0.999),
        "batch": optional_count,
        "directions": st.sampled_from(["both", "single"]),
        "buffers": st.sampled_from(["distinct", "single"]),
        "barrier": st.sampled_from(["start", "sample"]),
        "mean": st.sampled_from(["samples", "loop"]),
        "workers": st.tuples(st.integers(1, 128), st.integers(1, 128)),
        "win": st.sampled_from([*WINS]),
        "sync": st.sampled_from([*SYNCS]),
        "servers": st.integers(1, 99),
        "server-flight": st.integers(1, 999),
        "victims": optional_count,
        "aggressor": st.sampled_from(["incast", "all-to-all"]),
        "retest": st.integers(0, 99),
        "transport": st.sampled_from(["mpi", "null", "corrupt"]),
        "validate": st.booleans(),
        "histogram": st.booleans(),
        "only-rounds": st.none() | st.sets(st.integers(0, 99)).map(lambda found: tuple(sorted(found))),
    },
)


def chosen_row(kernel: str, chosen: dict) -> RowSpec:
    return RowSpec(kernel, **{OPTIONS[option].field: value for option, value in chosen.items()})


@given(st.sampled_from(sorted(KERNELS)), values)
def test_a_written_row_reads_back_or_is_refused_in_one_line(kernel, chosen):
    row = chosen_row(kernel, chosen)
    try:
        read = parse_row(row.text.split())
    except UsageError as error:
        assert re.fullmatch(r"[^\n]+: [^\n]+", str(error))
        return
    assert read == row
    assert read.text == row.text


@given(st.sampled_from(sorted(KERNELS)), st.data())
def test_a_row_that_is_accepted_reads_back(kernel, data):
    """As the one above, with options that fit: none of these is refused."""
    fitting = sorted(pattern for pattern in PATTERNS if KERNELS[kernel].runs_on(pattern) and pattern != "rounds")
    chosen = {
        "pattern": data.draw(st.sampled_from(fitting)),
        "warmup": data.draw(st.tuples(st.integers(0, 100), st.integers(0, 100))),
        "iterations": data.draw(st.none() | counts),
        "seed": data.draw(st.integers(0, 10**18 - 1)),
    }
    row = chosen_row(kernel, chosen)
    assert parse_row(row.text.split()) == row


def test_the_fields_of_a_row_are_the_options_of_the_registry():
    options = {option.field for option in OPTIONS.values()}
    assert {field.name for field in fields(RowSpec)} == {"kernel", "sizes_given", *options}


def test_every_option_of_the_grammar_is_documented_with_its_default(engine_page):
    for option, info in OPTIONS.items():
        default = info.default
        row = next((line for line in engine_page.splitlines() if line.startswith(f"| `--{option}")), None)
        assert row is not None, option
        if option == "warmup":
            default = default[0]
        if isinstance(default, (str, int)) and not isinstance(default, bool):
            assert f"`{default}`" in row or f"| {default} |" in row


@pytest.mark.parametrize("names", [KERNELS, PATTERNS])
def test_every_kernel_and_pattern_is_documented(engine_page, names):
    assert [name for name in names if f"`{name}`" not in engine_page] == []


def test_nccl_moves_memory_of_gpus():
    assert parse_row(["latency"]).memory == "host"
    assert parse_row(["allreduce", "--transport", "nccl"]).memory == "cuda"
    row = parse_row(["allreduce", "--transport", "nccl", "--memory", "hip"])
    assert parse_row(row.text.split()) == row
    assert refusal("latency --transport nccl --memory host") == PINNED["--memory host does not apply"]


@pytest.mark.parametrize(
    ("line", "win", "sync"),
    [
        ("put_latency", "allocate", "flush"),
        ("put_latency --transport ofi", "create", "flush"),
        ("get_accumulate --transport ofi", "create", "flush"),
        ("put_bibandwidth --transport ofi", "create", "pscw"),
        ("latency --transport ofi", None, None),
    ],
)
def test_a_window_is_one_that_the_transport_has(line, win, sync):
    (row,) = parse_plan(line, 2, "plan").rows
    assert (row.spec.win, row.spec.sync) == (win, sync)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("put_latency --transport ofi --win allocate", "--win allocate does not apply to transport ofi"),
        ("put_latency --transport ucx --sync fence", "--sync fence does not apply to transport ucx"),
        ("accumulate --transport ucx", "requires a transport with accumulation, which ucx does not offer"),
        (
            "latency --reconnect --repeats 2",
            "--reconnect does not apply to transport mpi: an MPI library opens .* keeps them until MPI_Finalize; "
            "start the run again, or use --transport tcp, ucx",
        ),
        ("latency --transport tcp --reconnect --repeats 1", "--reconnect requires --repeats: every two passes"),
    ],
)
def test_what_the_transport_lacks_is_refused(line, message):
    with pytest.raises(UsageError, match=message):
        parse_plan(line, 2, "plan")

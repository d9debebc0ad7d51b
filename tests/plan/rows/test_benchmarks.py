"""The registry: every row of it is one that the engine takes, and what the names promise."""

from __future__ import annotations

import re

import pytest

from fablint.errors import InternalError, UsageError
from fablint.model.registry import KERNELS
from fablint.model.registry.engine_tables import read_table
from fablint.plan import find_benchmark, list_benchmarks, parse_plan, read_benchmarks
from fablint.plan.rows.benchmarks import COMPOSED
from fablint.plan.rows.row_text import parse_row
from pinned import pinned_by

PINNED = pinned_by("plan.toml", __file__)

OSU = """
    osu_latency osu_bw osu_bibw osu_mbw_mr osu_multi_lat osu_latency_mt osu_latency_mp
    osu_latency_persistent osu_bw_persistent osu_bibw_persistent osu_bw_fan_in osu_bw_fan_out
    osu_put_latency osu_put_bw osu_put_bibw osu_get_latency osu_get_bw osu_acc_latency osu_get_acc_latency
    osu_cas_latency osu_fop_latency osu_alltoall osu_allreduce osu_allgather osu_bcast osu_allgatherv osu_alltoallv
    osu_alltoallw osu_gather osu_gatherv osu_scatter osu_scatterv osu_reduce osu_reduce_scatter
    osu_reduce_scatter_block osu_barrier
    osu_ibarrier osu_ibcast osu_iallreduce osu_ireduce osu_ireduce_scatter osu_ireduce_scatter_block osu_iallgather
    osu_iallgatherv osu_ialltoall osu_ialltoallv osu_ialltoallw osu_igather osu_igatherv osu_iscatter osu_iscatterv
    osu_init osu_hello
""".split()  # noqa: SIM905

# Counts of OSU 7.4 for sizes up to 8 KiB and above it: repetitions, warm-up.
COUNTS = {
    "bw": ((100, 20), (10, 2)),
    "latency": ((10000, 1000), (100, 10)),
    "collectives": ((1000, 100), (100, 10)),
    "osu_mbw_mr": ((100, 100), (10, 10)),
    "osu_ibarrier": ((100, 100), (10, 10)),
    **dict.fromkeys(("osu_init", "osu_hello"), ((1, 1), (0, 0))),
}


def test_the_registry_has_osu_and_every_name_once(registry):
    assert [name for name, one in registry.items() if one.family == "OSU"] == OSU
    assert set(registry) & set(KERNELS) == set()
    assert set(registry) & {one.name for one in COMPOSED} == set()


@pytest.mark.parametrize("ranks", [4, 8])
def test_every_row_can_be_planned(registry, ranks):
    plan = parse_plan("\n".join(f"{name} --name {name}" for name in registry), ranks, "registry", benchmarks=registry)
    assert len(plan.rows) == len(registry)
    assert all(row.rounds > 0 and row.predicted_s > 0 for row in plan.rows)
    assert [row.spec.name for row in plan.rows if row.spec.needs_threads] == ["osu_latency_mt"]


def test_all_but_those_with_barriers_take_an_odd_number_of_ranks(registry):
    refused = set()
    for name in registry:
        try:
            parse_plan(name, 5, "registry", benchmarks=registry)
        except UsageError as error:
            assert PINNED["--barrier sample: all 5 ranks"] in str(error)
            refused.add(name)
    assert refused == {"osu_mbw_mr", "osu_multi_lat"}


def test_every_row_takes_validation_with_a_buffer_for_every_message(registry):
    for name in registry:
        row = parse_row([name, "--validate"], registry)
        assert (row.validate, row.buffers) == (True, "distinct")


def test_a_precision_takes_the_place_of_count_and_barriers(registry):
    row = parse_row(["osu_mbw_mr", "--precision", "0.1"], registry)
    assert (row.iterations, row.barrier, row.precision) == (None, "start", 0.1)


@pytest.mark.parametrize("name", OSU)
def test_osu_has_osu_s_protocol(registry, name):
    row = parse_row([name], registry)
    kind = "collectives" if row.kernel_info.is_collective else "bw" if row.kernel_info.is_windowed else "latency"
    assert (row.iterations, row.warmup) == COUNTS.get(name, COUNTS[kind])
    assert row.window == (64 if row.kernel_info.is_windowed else None)
    assert row.directions_measured == 1
    assert row.sizes == parse_row([row.kernel]).sizes
    if row.kernel_info.is_collective:
        return
    assert row.batch == 1  # OSU reads the clock around every repetition
    assert row.barrier == ("sample" if name in ("osu_mbw_mr", "osu_multi_lat") else "start")
    one_sided = row.kernel_info.is_one_sided
    assert row.mean == ("loop" if one_sided else "samples")
    assert row.buffers == ("single" if row.kernel_info.is_windowed and not one_sided else "distinct")


def test_many_pairs_are_osu_s(registry):
    assert {name for name in registry if parse_row([name], registry).pattern == "pairs"} == {
        "osu_mbw_mr",
        "osu_multi_lat",
        "bisec_bw",
    }


def test_the_commitment_run_of_linktest_keeps_its_rules(registry):
    row = parse_row(["linktest_bisection"], registry)
    assert (row.kernel, row.pattern, row.sizes) == ("exchange", "bisection", (16 << 20,))
    assert min(row.iterations) >= 25
    assert min(row.warmup) >= 3


@pytest.mark.parametrize("name", ["linktest", "linktest_serial", "linktest_bidirectional", "linktest_unidirectional"])
def test_linktest_goes_through_all_pairs_and_retests_the_slowest(registry, name):
    row = parse_row([name], registry)
    assert (row.pattern, row.retest) == ("all-pairs", 10)
    assert (row.order == "serial") == (name == "linktest_serial")
    messages = row.iterations[1] * (row.window or 1)
    assert messages == 25


def test_net_sanitizer_sends_at_least_128_messages_to_a_connection(registry):
    for name in ("netsan_put", "netsan_get", "netsan_alltoall"):
        row = parse_row([name], registry)
        assert row.window == 12
        assert 128 <= row.iterations[0] * row.window < 128 + 12


def test_latency_test_has_the_sizes_of_osu_4(registry):
    row = parse_row(["latency_test"], registry)
    assert (row.pattern, row.order, row.directions) == ("all-pairs", "serial", "single")
    assert row.sizes == (0, *(1 << step for step in range(23)))


def test_all_that_can_be_asked_for_is_found_by_name(registry):
    every = list_benchmarks(registry)
    assert len({one.name for one in every}) == len(every) == len(KERNELS) + len(registry) + len(COMPOSED)
    assert all(find_benchmark(one.name, registry) == one for one in every)


@pytest.mark.parametrize(
    ("name", "found"),
    [("bw", "osu_bw"), ("mbw_mr", "osu_mbw_mr"), ("acc_latency", "osu_acc_latency"), ("latency", "latency")],
)
def test_osu_s_names_do_without_osu(registry, name, found):
    assert find_benchmark(name, registry).name == found


@pytest.mark.parametrize(
    ("name", "hint"), [("osu_latncy", "did you mean osu_latency"), ("xyz", "fablint bench --list shows all")]
)
def test_an_unknown_name(registry, name, hint):
    with pytest.raises(UsageError) as caught:
        find_benchmark(name, registry)
    assert str(caught.value) == f"there is no benchmark '{name}': {hint}"


FIRST = 'BENCHMARK(one, F, "latency", "first")'


@pytest.mark.parametrize(
    "line",
    [
        'BENCHMARK(a, b, "latency")',
        'BENCHMARK(a, b, "latency", "")',
        'BENCHMARK(one, F, "latency", "again")',
        'BENCHMARK(a, b, "latency", "not closed"',
    ],
)
def test_a_malformed_registry_is_an_internal_error(line):
    with pytest.raises(InternalError, match=r"here\.inc:2: "):
        read_benchmarks(f"{FIRST}\n{line}\n", "here.inc")


def test_comments_and_other_macros_are_skipped():
    skipped = '// BENCHMARK(x, y, "z", "comment")\n#undef BENCHMARK\n\nKERNEL(k)\n'
    text = skipped + 'BENCHMARK(a, F, "latency --sizes 8,1K",  "it, b" )\n'
    found = read_benchmarks(text, "x")
    assert [(one.name, one.family, one.row, one.what) for one in found.values()] == [
        ("a", "F", "latency --sizes 8,1K", "it, b")
    ]


def test_an_entry_names_its_fields_and_continues_after_a_comma():
    text = 'KERNEL(a, sizes = from_0,\n       options = "x, y", quantity = latency)\nKERNEL(b)\n'
    assert [(entry.line, dict(entry.fields)) for entry in read_table(text, "KERNEL", "name", "x")] == [
        (1, {"name": "a", "sizes": "from_0", "options": "x, y", "quantity": "latency"}),
        (3, {"name": "b"}),
    ]


ENTRY = re.compile(r"^[A-Z_]+\((.*?)\)$", re.MULTILINE | re.DOTALL)
OTHER = re.compile(r"^(//|#(ifndef|define|endif|undef)).*$", re.MULTILINE)
MOST_UNNAMED = 4


def test_every_entry_of_every_table_names_its_fields(registry_folder):
    """At most four fields have no name; nothing else but comments and lines for the preprocessor is in a table."""
    for path in registry_folder.glob("*.inc"):
        text = OTHER.sub("", path.read_text())
        for body in ENTRY.findall(text):
            fields = re.findall(r'(?:"[^"]*"|[^",])+', body)
            unnamed = [field for field in fields if not re.match(r"\s*\w+ = ", field)]
            assert len(unnamed) <= MOST_UNNAMED, body
        assert not ENTRY.sub("", text).strip()

"""Pages of the benchmarks, the options of OSU that have no equivalent, and the types of values."""

from __future__ import annotations

import json
import re

import pytest
from test_bench_options import LETTERS, bench  # noqa: F401  (a fixture)

from fablint.cli import bench_request, cli
from fablint.cli.bench_options import SECTIONS, SETTINGS
from fablint.cli.session import Session
from fablint.errors import UsageError
from fablint.model.registry import OPTIONS
from fablint.plan import every_row, list_benchmarks
from fablint.plan.rows.side_by_side import COMPARED
from fablint.workflows import benchmark
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("osu_bw -u 3", "-u of OSU is not available: -c checks every repetition"),
        ("osu_bw --validation-warmup 3", "--validation-warmup of OSU is not available: -c checks every repetition"),
        ("osu_bw -I", "-I of OSU is not available: the engine starts MPI with MPI_Init"),
        ("osu_bw -Gpng", "-G of OSU is not available: -o RUN keeps the figures"),
        ("osu_bw -D cont", "-D of OSU is not available: messages are contiguous bytes"),
        ("osu_bw -P x", "-P of OSU is not available: --counters reads"),
        ("osu_fop_latency -T mpi_char", "--type does not apply to osu_fop_latency: its numbers are MPI_UINT64_T"),
        ("osu_init -i 3", "--iterations does not apply to osu_init: it only starts the ranks"),
        ("linktest -v", "--version does not apply to linktest: it is for OSU"),
    ],
)
def test_options_of_osu_without_an_equivalent_say_why(line, error):
    with pytest.raises(UsageError, match=re.escape(error)):
        cli.main(["bench", *line.split()], standalone_mode=False, obj=Session())


def test_osu_s_type_and_version(fablint):
    done = fablint("bench", "osu_bw", "-T", "mpi_int")
    assert (done.returncode, "'mpi_int' is not mpi_char; MPI moves" in done.stderr) == (2, True)
    assert PINNED["protocol and format of OSU"] in fablint("bench", "osu_bw", "-v").stdout


def test_help_with_a_name_is_a_page_of_that_benchmark(fablint):
    page = fablint("bench", "bw", "--help").stdout
    assert PINNED["Usage: fablint bench osu_bw"].begins(page)
    assert PINNED["repetitions 100, above 8"] in page
    served = fablint("bench", "net_sanitizer", "--help").stdout
    assert [served.count(f"\nDefaults of row {row}:\n") for row in ("rpc_put", "rpc_get", "bandwidth")] == [1, 1, 1]


def test_help_with_a_name_shows_what_means_something_for_it(fablint):
    every = fablint("bench", "--help").stdout
    assert all(one.spelling in every for one in SETTINGS.values())
    assert all(f"\n{title}:\n" in every for title in SECTIONS)
    shown = fablint("bench", "osu_put_bw", "-n", "2", "--help").stdout.partition("\nOptions:\n")[2]
    has = {one.spelling for one in SETTINGS.values() if re.search(rf"{one.spelling}[ ,\n]", shown)}
    assert has == {one.spelling for one in SECTIONS["Options"]} | {
        *["--window", "--buffers", "--peer-memory", "--win", "--sync", "--version", "--type"]
    }
    assert "-w, --win-options HOW" in shown and "-w, --hosts" not in shown
    assert "LinkTest options" not in shown
    assert "--num-multi-buf" in fablint("bench", "--help", "linktest").stdout


def test_every_option_applies_to_some_benchmark():
    registry = benchmark.benchmark_registry()
    every = [(one, every_row(one.name, registry)) for one in list_benchmarks(registry)]
    refused = [one.spelling for one in SETTINGS.values() if all(one.why_refused(*each) for each in every)]
    assert refused == []


@pytest.mark.parametrize("line", [line for line, (option, _) in LETTERS.items() if option != "kernel"])
def test_an_option_has_the_type_of_the_row_before_the_row_is_made(line, monkeypatch, bench):  # noqa: F811
    """The value is read once, by click: what is handed on is no text that is read again."""
    requests = []
    monkeypatch.setattr(bench_request, "bench_rows", lambda request, _: requests.append(request) or [])
    monkeypatch.setattr(bench_request, "_refuse_inapplicable", lambda *_: None)
    row = bench(line).rows[0]
    (request,) = requests
    for option, given in request.values.items():
        is_listed = option in ("transport", "memory") or request.messages
        assert is_listed or given == getattr(row, OPTIONS[option].field), option
    assert all(isinstance(request.values[option], tuple) for option in COMPARED if option in request.values)


def test_the_list_names_every_benchmark_with_its_row(fablint, tmp_path):
    shown = fablint("bench", "--list")
    listed = json.loads(fablint("bench", "--list", "--json").stdout)
    assert shown.returncode == 0
    assert [set(one) for one in listed["benchmarks"]] == [{"name", "family", "row", "what"}] * len(listed["benchmarks"])
    rows = {one["name"]: one for one in listed["benchmarks"]}
    assert {"latency", "osu_mbw_mr", "linktest_bisection", "net_sanitizer", "bisec_bw", "latency_test"} <= rows.keys()
    for one in rows.values():
        assert f"  {one['name']:<23} {one['what']}\n" in shown.stdout
        assert one["name"] == one["row"] or f"{one['row']}\n" in shown.stdout
    assert [family for family in shown.stdout.splitlines() if family[:1].strip()] == [
        *dict.fromkeys(one["family"] for one in rows.values()),
    ]

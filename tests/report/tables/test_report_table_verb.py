"""`fablint report RUN --table NAME`."""

from __future__ import annotations

import json

import pytest
from table_cases import both_ways, row, run_of, stored

from fablint.cli import main
from fablint.cli.report import TABLES as OFFERED
from fablint.report import TABLES

US = 1e-6


@pytest.fixture
def run(tmp_path):
    pair = row("latency", "pair", both_ways({(0, 1): [2 * US], (1, 0): [3 * US]}), name="near")
    other = row("bandwidth", "pair", both_ways({(0, 1): [2 * US], (1, 0): [3 * US]}), sizes=(1000,), name="wide")
    return stored(run_of(pair, other), tmp_path).path


def report(capsys, *words):
    """Exit status, stdout and stderr."""
    with pytest.raises(SystemExit) as end:
        main(["report", *map(str, words)])
    return end.value.code, *capsys.readouterr()


def test_every_table_is_offered():
    assert tuple(sorted(TABLES)) == OFFERED


def test_a_table_on_stdout_and_nothing_written(run, capsys):
    code, out, err = report(capsys, run, "--table", "osu", "--row", "near")
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if not line.startswith("#")][-1].split() == ["8", "2.00"]
    assert not (run / "report").exists()


def test_all_rows_that_suit_unless_one_is_named(run, capsys):
    _, out, _ = report(capsys, run, "--table", "osu")
    assert "OSU MPI Latency Test" in out and "OSU MPI Bandwidth Test" in out


def test_the_same_figures_as_json(run, capsys):
    code, out, _ = report(capsys, run, "--table", "pairs", "--row", "wide", "--slowest", "1", "--json")
    found = json.loads(out)
    assert (code, found["format"], found["table"]) == (0, 1, "pairs")
    assert (found["pairs"][0]["src"], found["pairs"][0]["bytes_per_s"]) == (1, pytest.approx(1000 / (3 * US)))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["--table", "osu", "-o", "x.html"],
            "--site, --junit and --prometheus need a verdict",
        ),
        (["--table", "osu", "--slowest", "2"], "table osu has no use for --slowest: leave it out"),
        (["--table", "osu", "--row", "far"], "the run has no row 'far': choose from near, wide"),
        (["--table", "bisection"], "table bisection needs a row of the pattern bisection"),
        (
            ["--table", "osu", "--percentiles", "99.9"],
            "its percentile 99.9 of the time is not known: measure",
        ),
        (["--slowest", "2"], "require --table: name a table with --table"),
        (["--pdf", "-o", "night.html"], "night.html names a html file, pdf is written: name it *.pdf"),
        (["--all-columns"], "require --table: name a table with --table"),
        (["--table", "osv"], "'osv' is not one of"),
        (["--table", "pairs", "--slowest", "0"], "0 is not in the range x>=1"),
    ],
)
def test_refused_in_one_line(run, capsys, words, line):
    code, out, err = report(capsys, run, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err

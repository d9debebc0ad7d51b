"""fablint import and the verbs that take files of other tools, as a user calls them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fablint.store import import_run, write_run
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

FIXTURES = Path(__file__).parents[2] / "fixtures"
COMET = FIXTURES / "osu" / "osu_latency-4.4.1-comet-21.txt"
FAULTY = FIXTURES / "mpigraph" / "faulty-np8.mpigraph.txt"
SION = FIXTURES / "sion" / "linktest-1.2p1-np8.sion"
NETSAN = FIXTURES / "net_sanitizer" / "net_sanitizer-readme-verbose.txt"


def test_import_and_analyse_agree_with_analyse_of_the_file(fablint):
    made = fablint("import", SION, "-o", "night.run")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == PINNED["night.run: complete, linktest"]
    of_run, of_file = fablint("analyse", "night.run", "--json"), fablint("analyse", SION, "--json")
    assert of_run.returncode == of_file.returncode
    assert json.loads(of_run.stdout)["findings"] == json.loads(of_file.stdout)["findings"]


def test_what_is_left_out_is_named_with_its_line_and_whole_in_json(fablint):
    made = fablint("import", COMET, "-o", "comet.run", "--json")
    facts = json.loads(made.stdout)
    assert (made.returncode, facts["state"], len(facts["imported"]["lines_left_out"])) == (0, "interrupted", 115)
    said = made.stderr.splitlines()
    assert said[0] == PINNED["comet :1027: excluded"].filled(comet=COMET)
    assert (len(said), said[-1]) == (6, PINNED["and 110 more lines excluded"])
    assert facts["notes"] == [PINNED["name 115 of 153 pairs have"].filled(name=COMET.name)]
    shown = json.loads(fablint("show", "comet.run", "--json").stdout)
    assert shown["attributes"]["imported"] == facts["imported"]


def test_comet_is_incomplete_and_reports_no_component(fablint):
    done = fablint("analyse", COMET, "--json")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["verdict"]) == (3, "incomplete")
    assert not [one for one in verdict["findings"] if one["state"] == "FAULT"]
    assert (verdict["coverage"]["pairs_planned"], verdict["coverage"]["pairs_measured"]) == (153, 38)


def test_a_single_pair_is_imported_and_not_judged(fablint):
    osu = FIXTURES / "osu" / "osu_latency-7.4-openmpi4.1.4-np2-quiet.txt"
    made = fablint("import", osu, "-o", "pair.run", "--hosts", "nid[07-08]")
    assert made.returncode == 0, made.stderr
    done = fablint("analyse", "pair.run", "--json")
    states = {one["state"] for one in json.loads(done.stdout)["findings"]}
    assert (done.returncode, states <= {"NOT JUDGED"}) == (3, True)


def test_show_report_and_tables_take_a_file(fablint, tmp_path):
    shown = fablint("show", NETSAN)
    assert (shown.returncode, "client[1-4]" in shown.stdout) == (0, True)
    assert json.loads(fablint("analyse", FAULTY, "--json").stdout)["coverage"]["hosts_judged"] == 1  # that at fault
    table = fablint("report", FAULTY, "--table", "pairs", "--slowest", "3")
    assert (table.returncode, "node006" in table.stdout) == (0, True)
    without = fablint("report", FAULTY)
    assert without.returncode == 2
    line = f"fablint: {FAULTY} is a file, not a run directory for the page: name the page with -o page.html\n"
    assert without.stderr == line
    fablint("report", FAULTY, "-o", "page.html")
    assert "node006" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("analyse", "empty"), "fablint: empty: the file is empty: give the output of a benchmark\n"),
        (("import", "empty", "-o", "x.run"), "fablint: empty: the file is empty: give the output of a benchmark\n"),
        (("import", FAULTY, "-o", "taken.run"), "fablint: taken.run exists: give another name with -o\n"),
        (("import", ".", "-o", "x.run"), "fablint: .: is a directory: give the file that a benchmark printed into\n"),
        (
            ("analyse", "a.run", "a.run"),
            "fablint: a.run is named twice: name each run once\n",
        ),
        (
            ("import", FAULTY, "-o", "x.run", "--hosts", "a,b"),
            f"fablint: {FAULTY}: the file names its hosts: omit --hosts\n",
        ),
    ],
)
def test_bad_calls_are_one_line(fablint, tmp_path, words, line):
    (tmp_path / "empty").touch()
    (tmp_path / "taken.run").mkdir()
    done = fablint(*words)
    assert (done.returncode, done.stderr, done.stdout) == (2, line, "")
    assert not (tmp_path / "x.run").exists()


def test_an_imported_run_cannot_go_on(fablint):
    fablint("import", SION, "-o", "night.run")
    done = fablint("resume", "night.run")
    assert (done.returncode, done.stderr) == (
        2,
        PINNED["night.run was imported: there"],
    )


def test_a_complete_log_without_pairs_is_not_judged_and_says_why(fablint):
    log = FIXTURES / "linktest" / "linktest-1.2p1-np8.stdout.txt"
    done = fablint("analyse", log)
    headline = "NOT JUDGED  slowest pairs only: 4 in 3 of 8"
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, headline)
    assert PINNED["name a log of parallel steps"].filled(name=log.name) in done.stdout
    assert "interrupted" not in done.stdout
    facts = json.loads(fablint("analyse", log, "--json").stdout)
    assert (facts["verdict"], facts["not_judged"]) == ("incomplete", "slowest pairs only: 4 in 3 of 8")


def test_a_run_whose_name_is_not_utf_8_has_a_report(fablint, tmp_path):
    name = os.fsdecode(b"caf\xe9.run")
    write_run(tmp_path / name, import_run([SION]))
    done = fablint("-q", "report", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert "caf\\udce9.run" in (tmp_path / name / "report" / "index.html").read_text()


def test_a_report_that_cannot_be_written_keeps_the_verdict(fablint):
    done = fablint("report", SION, "-o", "/proc/pages/a.html")
    assert (done.returncode, done.stdout.split()[0]) == (2, "PASS")
    assert PINNED["cannot write the report"] in done.stderr


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("osu/osu_latency-7.4-openmpi4.1.4-np2-z.txt", "no host was measured with 3 others"),
        ("osu/osu_mbw_mr-7.4-openmpi4.1.4-np4.txt", "no pair was measured by itself"),
        ("nccl_tests/nccl-tests-2.13-all_reduce-synthetic.txt", "no pair was measured by itself"),
    ],
)
def test_what_was_never_meant_to_be_judged_has_figures_only(fablint, file, why):
    done = fablint("analyse", str(FIXTURES / file))
    assert done.returncode == 3
    assert done.stdout.splitlines()[0] == f"NOT JUDGED  figures only: {why}"


def test_a_run_of_two_hosts_has_figures_only(fablint):
    fablint("simulate", "--fabric", "mesh", "--shape", "1x2", "--full", "-o", "two.run")
    done = fablint("analyse", "two.run")
    assert done.stdout.splitlines()[0] == PINNED["NOT JUDGED figures only"]

"""fablint compare, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fablint_command import Fablint
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

FIXTURES = Path(__file__).parents[2] / "fixtures"
FAULTY = FIXTURES / "mpigraph" / "faulty-np8.mpigraph.txt"


@pytest.fixture
def runs(fablint: Fablint) -> Fablint:
    """`old.run`, and `new.run` with a slow host."""
    size = ("--host-count", "36", "--rounds", "12", "-q")
    assert fablint("simulate", *size, "-o", "old.run").returncode == 0
    assert fablint("simulate", *size, "--seed", "2", "--fault", "host:h07:rx:-30%", "-o", "new.run").returncode == 0
    return fablint


def test_the_text_names_the_slow_host_and_the_exit_code_is_1(runs: Fablint) -> None:
    done = runs("compare", "old.run", "new.run")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("WORSE       1 host worse, 1 new fault")
    assert lines[0].endswith("margin 3 %")
    assert [line for line in lines if line.startswith("WORSE       host h07 rx  bandwidth -29 % [")]
    assert [line for line in lines if line.startswith("new         FAULT host h07 rx")]
    assert "could hide" not in done.stdout  # the other hosts are OK in the new run


def test_the_json_has_the_same_verdict_and_components_as_data(runs: Fablint) -> None:
    done = runs("compare", "old.run", "new.run", "--json")
    facts = json.loads(done.stdout)
    assert (facts["format"], facts["verdict"], facts["exit_code"], done.returncode) == (1, "fault", 1, 1)
    [host] = facts["hosts"]
    assert (host["component"], host["direction"]) == ({"kind": "host", "ends": [{"nodes": "h07"}]}, "rx")
    assert host["interval"][1] < -0.2
    assert facts["hosts_compared"] == 36


def test_a_run_is_not_worse_than_itself(runs: Fablint) -> None:
    done = runs("compare", "new.run", "new.run")
    assert done.stdout.startswith("NOT WORSE   no change; margin 3 %\n") or "could hide" in done.stdout
    assert done.returncode in (0, 3)


def test_files_of_other_tools_are_compared(fablint: Fablint) -> None:
    done = fablint("compare", FAULTY, FAULTY, "--json")
    facts = json.loads(done.stdout)
    assert (facts["hosts_compared"], facts["hosts"]) == (8, [])
    assert facts["verdict"] in ("pass", "incomplete")


def test_one_pair_has_no_interval_and_is_undecided(fablint: Fablint) -> None:
    files = [FIXTURES / "osu" / f"osu_latency-7.4-openmpi4.1.4-np2-{kind}.txt" for kind in ("quiet", "z")]
    done = fablint("compare", *files)
    assert done.returncode == 3
    assert PINNED["UNDECIDED all pairs latency"] in done.stdout
    scopes = json.loads(fablint("compare", *files, "--json").stdout)["scopes"]
    assert {scope["state"] for scope in scopes} == {"UNDECIDED"}
    assert not any("interval" in scope for scope in scopes)
    assert fablint("compare", *files, "--html", "-o", "page.html").returncode == 3


def test_runs_without_a_common_row_are_not_compared(fablint: Fablint) -> None:
    done = fablint("compare", *(FIXTURES / "linktest" / f"linktest-1.2p1-np{ranks}.stdout.txt" for ranks in (4, 8)))
    assert PINNED["UNDECIDED nothing compared"].begins(done.stdout)


@pytest.mark.parametrize("margin", ["x", "0%", "-3%", "100%", "3%%"])
def test_a_margin_that_is_no_share_is_refused(fablint: Fablint, margin: str) -> None:
    done = fablint("compare", "a.run", "b.run", "--margin", margin)
    assert done.returncode == 2
    assert f"'{margin}' is not a loss between 0%" in done.stderr


def test_runs_of_other_hosts_are_refused(runs: Fablint) -> None:
    done = runs("compare", "old.run", FAULTY)
    assert done.returncode == 2
    assert "the runs have no host in common" in done.stderr

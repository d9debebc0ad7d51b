"""The verbs with the real engine under each MPI."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from fablint.cli.demo import CABLE, MARK
from fablint.workflows.check import request
from fablint_command import Fablint
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

ROWS = ("-r", "latency --pattern all-pairs --sizes 8 --samples 20", "-r", "bandwidth --sizes 64K --samples 5")


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process


@pytest.fixture
def chosen(mpicxx) -> list[str]:
    return ["--mpicxx", str(mpicxx)] if mpicxx else []


@pytest.fixture
def small_run(fablint, tmp_path, chosen) -> Path:
    done = fablint("-q", "measure", "-n", "3", *ROWS, "-o", "x.run", *chosen)
    assert (done.returncode, done.stdout, done.stderr) == (0, "x.run: complete\n", "")
    return tmp_path / "x.run"


def test_measure_then_read_it_with_every_verb(fablint_in_process, small_run):
    shown = json.loads(fablint_in_process("show", "x.run", "--json").stdout)
    assert shown["attributes"]["state"] == "complete"
    assert list(shown["rows"]) == ["latency", "bandwidth"]
    assert "latency" in fablint_in_process("show", "x.run").stdout
    analysed = fablint_in_process("analyse", "x.run", "--json")
    verdict = json.loads(analysed.stdout)
    assert analysed.returncode == verdict["exit_code"] == 0
    assert verdict["verdict"] == "local"  # one host: no network was measured
    assert fablint_in_process("report", "x.run").returncode == 0
    assert "<html" in (small_run / "report" / "index.html").read_text()
    assert json.loads((small_run / "report" / "verdict.json").read_text()) == verdict
    exported = fablint_in_process("export", "x.run", "--to", "csv", "-o", "x.csv")
    assert (exported.returncode, exported.stdout) == (0, "x.csv\n")
    resumed = fablint_in_process("resume", "x.run")
    assert (resumed.returncode, resumed.stdout) == (0, "x.run: nothing is missing\n")


def test_lines_of_json_end_with_the_verdict(fablint, tmp_path, chosen):
    done = fablint("check", "--local", "4", "--budget", "4s", "--json-lines", "-o", "x.run", *chosen)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (events[-1]["event"], events[-1]["exit_code"]) == ("verdict", done.returncode)
    document = json.loads((tmp_path / "x.run" / "report" / "verdict.json").read_text())
    assert {"event": "verdict", **document} == events[-1]
    assert {event["event"] for event in events[:-1]} <= {"note", "step", "next", "finding", "withdrawn"}


def test_an_error_is_a_line_of_json_too(fablint, tmp_path):
    done = fablint("resume", "nothing.run", "--json-lines")
    (event,) = map(json.loads, done.stdout.splitlines())
    assert (event["event"], event["exit_code"]) == ("error", done.returncode)


def test_a_flipped_bit_is_named_and_measured_again(fablint, fablint_in_process, small_run, chosen):
    chunk = small_run / "latency" / "time_median" / "c.0.1.0.0"
    octets = bytearray(chunk.read_bytes())
    octets[0] ^= 1  # the time stays plausible
    chunk.write_bytes(octets)
    judged = fablint_in_process("analyse", "x.run", "--json")
    assert judged.returncode == 3
    (note,) = (note["text"] for note in json.loads(judged.stdout)["notes"] if "checksum" in note["text"])
    assert PINNED["x.run/latency/time_median/c.0.1.0.0"].begins(note)
    assert fablint("-q", "resume", "x.run", *chosen).returncode == 0
    again = fablint_in_process("analyse", "x.run", "--json")
    assert again.returncode == 0
    assert "checksum" not in again.stdout
    assert sorted(file.stem for file in (small_run / "checksums").iterdir()) == ["bandwidth", "latency", "zarr.json"]


def test_check_measures_judges_and_reports(fablint, tmp_path, chosen):
    done = fablint("check", "--local", "3", "--budget", "2s", "--json", *chosen)
    verdict = json.loads(done.stdout)
    assert done.returncode == verdict["exit_code"]
    assert verdict["coverage"]["pairs_measured"] == verdict["coverage"]["pairs_planned"] > 0
    assert verdict["coverage"]["pairs_planned"] % 12 == 0  # repeats of 6 ordered pairs in two rows
    (run,) = tmp_path.glob("fablint-*.run")
    assert (run / "report" / "index.html").is_file()
    assert done.stderr.splitlines()[-1] == f"fablint: report: {run.name}/report/index.html"


def test_the_plan_of_a_check_can_be_measured(fablint, fablint_in_process, tmp_path, chosen):
    assert fablint_in_process("plan", "--local", "2", "--budget", "1s", "-o", "check.plan").returncode == 0
    planned = json.loads(fablint_in_process("plan", "--local", "2", "--budget", "1s", "--json").stdout)
    assert (tmp_path / "check.plan").read_text().splitlines() == [row["options"] for row in planned["rows"]]
    assert fablint("measure", "-n", "2", "check.plan", "-o", "x.run", *chosen).returncode == 0


def test_the_engine_is_built_listed_and_found(fablint, chosen):
    built = fablint("-q", "engine", "build", *chosen).stdout
    assert fablint("engine", "path", *chosen).stdout == built
    listed = json.loads(fablint("engine", "list", "--json").stdout)
    assert built.strip() in [one["path"] for one in listed["engines"]]


def test_the_doctor_finds_this_machine_ready(fablint, chosen):
    assert fablint("-q", "engine", "build", *chosen).returncode == 0
    environ = {"FABLINT_MPICXX": chosen[1]} if chosen else {}
    done = fablint("doctor", "--json", **environ)
    assert done.returncode == 0
    checks = json.loads(done.stdout)["checks"]
    found = {check["name"]: check for check in checks}
    assert found["mpicxx"]["ok"]
    assert found["mpiexec"]["ok"]
    transports = [check for check in checks if check["name"] == "transport"]
    states = {check["state"].partition(":")[0]: check for check in transports}
    assert set(states) == {"mpi", "tcp", "ucx", "ofi", "verbs", "nccl", "cuda-p2p", "hip-p2p"}
    assert states["mpi"]["ok"] and states["tcp"]["ok"]
    for name in ("ucx", "ofi", "verbs"):
        assert states[name]["ok"] or "install" in states[name]["state"] or "no InfiniBand" in states[name]["state"]
    memories = {
        check["state"].partition(":")[0]: check["ok"] or check["state"] for check in checks if check["name"] == "memory"
    }
    assert set(memories) == {"host-huge", "host-numa", "cuda", "hip"}
    assert memories["host-numa"] is True
    assert memories["host-huge"] is True or "reserve more" in memories["host-huge"]
    assert memories["cuda"] is True or "NVIDIA GPUs" in memories["cuda"] or "no GPU" in memories["cuda"]


def test_the_demo_names_the_cable_that_it_broke(fablint_in_process, tmp_path, monkeypatch):
    """The check of this machine takes 2 of its 10 s: eight ranks on few CPUs."""
    monkeypatch.setattr(request, "CheckRequest", partial(request.CheckRequest, budget=2.0))
    for run in ("demo-local.run", "demo-fabric.run"):  # of an earlier demo, which this one replaces
        (tmp_path / run).mkdir()
        (tmp_path / run / MARK).touch()
        (tmp_path / run / "old").touch()
    done = fablint_in_process("demo")
    assert done.returncode == 0, done.stderr
    assert f"cable {CABLE}" in done.stdout
    pages = [f"  {run}/report/index.html" for run in ("demo-local.run", "demo-fabric.run")]
    assert done.stdout.splitlines()[-2:] == pages
    assert list(tmp_path.glob("*/old")) == []
    assert len(list(tmp_path.glob(f"*/{MARK}"))) == 2  # so the next one replaces these
    again = fablint_in_process("analyse", "demo-fabric.run")
    assert again.returncode == 1


def test_the_demo_leaves_runs_of_the_user_alone(fablint, tmp_path):
    (tmp_path / "demo-fabric.run").mkdir()
    done = fablint("demo")
    assert done.returncode == 2
    assert PINNED["demo-fabric.run exists"] in done.stderr


def test_no_pattern_plans_a_cell_that_it_does_not_measure(fablint, fablint_in_process, chosen):
    """Five ranks: one is idle in each round of all pairs, and the halves are unequal."""
    rounds = "--pattern rounds --rounds 0-1,2-3;4-0"
    rows = {
        "pair": "latency --pattern pair",
        "pairs": "latency --pattern pairs",
        "repeats": "latency --pattern all-pairs --repeats 2",
        "single": "latency --pattern all-pairs --directions single",
        "halves": "bandwidth --pattern bisection",
        "halves-single": "bandwidth --pattern bisection --directions single",
        "random": "exchange --pattern random --matchings 3",
        "file": f"latency {rounds}",
        "file-single": f"latency {rounds} --directions single",
        "fan-in": "bandwidth --pattern fan-in",
        "fan-out": "bandwidth --pattern fan-out",
        "servers": "rpc_put --pattern clients-servers --servers 2",
        "world": "allreduce --pattern world",
        "victim": "latency --pattern victim-aggressor",
        "retested": "bibandwidth --pattern all-pairs --retest 2",
    }
    options = [word for name, row in rows.items() for word in ("-r", f"{row} --sizes 8 --samples 3 --name {name}")]
    done = fablint("-q", "measure", "-n", "5", "--yes", *options, "-o", "x.run", *chosen)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(fablint_in_process("analyse", "x.run", "--json").stdout)
    assert verdict["coverage"]["pairs_measured"] == verdict["coverage"]["pairs_planned"] == 133
    kinds = {record["kind"] for finding in verdict["findings"] for record in finding["evidence"]}
    assert not {kind for kind in kinds if kind.startswith("missing")}

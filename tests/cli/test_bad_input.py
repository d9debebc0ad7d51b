"""Bad input: one line on stderr, nothing on stdout, the right exit code."""

from __future__ import annotations

import json

import pytest

from fablint_command import Fablint
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

ROW = "latency --pattern all-pairs --sizes 8 --samples 5"

REFUSED = {
    "no verb of that name": (["chekc"], "No such command 'chekc'"),
    "one rank": (["check", "--local", "1"], "Invalid value for '--local': 1 is not in the range x>=2"),
    "no ranks": (["check", "--local", "0"], "Invalid value for '--local': 0 is not in the range x>=2"),
    "no allocation": (["check"], "nothing to check: no allocation here: name hosts with -w HOSTS, or use --local N"),
    "a budget of nothing": (["plan", "--budget", "0s"], "'0s' is not a duration above 0"),
    "a budget that is not a figure": (["plan", "--budget", "nan"], "'nan' is not a duration above 0"),
    "an unknown kernel": (["measure", "-r", "latncy"], "-r:1: unknown kernel 'latncy'"),
    "an odd size": (["measure", "-r", "latency --sizes 3x"], "-r:1: --sizes: '3x' is not a size"),
    "a negative size": (["bench", "latency", "--sizes=-8"], "--sizes: '-8' is not a size"),
    "a pair of one": (["measure", "-n", "1", "-r", "latency"], "pattern pair needs at least 2 ranks"),
    "neither plan nor rows": (["measure", "-n", "2"], "give either a plan file or rows with -r"),
    "a plan that is not there": (["measure", "nope.plan"], "cannot read nope.plan: No such file or directory"),
    "an unknown percentile": (["bench", "latency", "--percentiles", "50,101"], "give numbers between 0 and 100"),
    "an mpicxx that is none": (["engine", "build", "--mpicxx", "/nope"], "names /nope, which is not a program"),
    "an output without a parent": (["measure", "-r", ROW, "-o", "no/x.run"], "no is not a directory: create it"),
    "far more ranks than CPUs": (["measure", "-n", "999999", "-r", ROW], "or --yes"),
    "far more ranks than CPUs of a benchmark": (["bench", "osu_bcast", "-n", "999999"], "999,999 ranks on"),
    "far more ranks than CPUs of this machine": (["check", "--local", "999999"], "999,999 ranks on"),
    "a discovery without hosts": (["discover"], "no hosts are known: no allocation here: name hosts with -w HOSTS\n"),
    "an option without its value": (["bench", "osu_bw", "-m"], "requires an argument: see fablint bench --help"),
    "a run that is not there": (["show", "nope.run"], "nope.run: no such run"),
    "a topology that is not there": (["check", "--local", "2", "--topology", "nope.yaml"], "nope.yaml"),
}


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    """Most bad input is given in this process: what the tests with `fablint_program` read shows what a program adds."""
    return fablint_in_process


@pytest.mark.parametrize("case", REFUSED)
def test_refused(fablint, tmp_path, case):
    words, line = REFUSED[case]
    done = fablint(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("fablint: ")
    assert done.stderr.count("\n") == 1
    assert line in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_line_seven_of_a_plan(fablint, tmp_path):
    (tmp_path / "night.plan").write_text("# rows\n" * 6 + "latency --sizs 8\n")
    done = fablint("measure", "-n", "2", "night.plan")
    assert (done.returncode, done.stderr) == (
        2,
        PINNED["night.plan:7: unknown option"],
    )


def test_a_plan_that_is_no_text(fablint, tmp_path):
    (tmp_path / "night.plan").write_bytes(b"\xff\xfe\x00")
    done = fablint("measure", "-n", "2", "night.plan")
    assert (done.returncode, done.stderr.partition(": give")[0]) == (
        2,
        PINNED["cannot read night.plan"],
    )


def test_a_run_that_exists_is_not_touched(fablint_program, tmp_path):
    (tmp_path / "x.run").mkdir()
    done = fablint_program("check", "--local", "2", "-o", "x.run")
    assert (done.returncode, done.stderr) == (2, PINNED["x.run exists: give another"])


def test_a_job_that_does_not_tell_its_hosts_is_refused(fablint):
    done = fablint("check", SLURM_JOB_ID="7")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "nothing to check: no allocation here" in done.stderr


@pytest.mark.parametrize(
    ("content", "line"),
    [("{", "zarr.json"), (json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"format": 99}}), "99")],
)
@pytest.mark.parametrize("verb", ["show", "analyse", "report", "resume"])
def test_a_damaged_run_and_a_newer_one(fablint, tmp_path, verb, content, line):
    (tmp_path / "x.run").mkdir()
    (tmp_path / "x.run" / "zarr.json").write_text(content)
    done = fablint(verb, "x.run")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert line in done.stderr


def test_a_full_disk_under_stdout():
    import subprocess
    import sys

    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "fablint.cli", "plan"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == PINNED["cannot write the result"]


def test_debug_shows_where(fablint_program):
    for words in (["--debug", "show", "nope.run"], ["show", "nope.run", "--debug"]):
        done = fablint_program(*words)
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("fablint: nope.run: no such run")


def test_our_own_mistakes_are_owned_up_to(fablint_program, tmp_path):
    broken = tmp_path / "sitecustomize.py"
    broken.write_text(
        "from fablint.workflows import run_formats\n"
        "def read(path): raise RuntimeError('two\\nlines')\nrun_formats.read = read\n"
    )
    done = fablint_program("show", "x.run", PYTHONPATH=str(tmp_path))
    assert done.returncode == 5
    assert done.stderr == PINNED["internal error: RuntimeError"]


@pytest.mark.parametrize(
    "arguments", [("analyse", "nope.run", "--json"), ("--json", "nope"), ("show", "--json", "--nope")]
)
def test_an_error_is_json_where_json_is_asked_for(fablint, arguments):
    done = fablint(*arguments)
    facts = json.loads(done.stdout)
    assert (facts["format"], facts["exit_code"], done.returncode) == (1, 2, 2)
    assert done.stderr == f"fablint: {facts['error']}\n"


def test_a_page_that_cannot_be_written_costs_no_verdict(fablint, tmp_path):
    assert fablint("simulate", "--host-count", "16", "-q", "-o", "x.run").returncode == 0
    (tmp_path / "file").touch()
    done = fablint("report", "x.run", "-o", "file/x.html", "--json")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot write the report" in done.stderr
    assert json.loads(done.stdout)["format"] == 3  # the verdict, and no second object


def test_pages_in_one_folder_keep_their_own_verdicts(fablint, tmp_path):
    assert fablint("simulate", "--host-count", "16", "-q", "-o", "x.run").returncode == 0
    for page in ("a.html", "b.html"):
        fablint("report", "x.run", "-o", page)
    assert {path.name for path in tmp_path.glob("*.json")} == {"a.verdict.json", "b.verdict.json"}

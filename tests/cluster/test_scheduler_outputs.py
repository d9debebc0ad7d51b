"""What sinfo, scontrol, sacct, pbsnodes and qstat print, recorded and made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from fablint.cluster.host_states import parse_pbsnodes, parse_sinfo
from fablint.cluster.schedulers import pbs, slurm
from fablint.cluster.schedulers.pbs_job import seconds, the_job
from fablint.cluster.schedulers.slurm_job import pairs
from fablint.cluster.srun import parsed
from pinned import pinned_by

PINNED = pinned_by("cluster.toml", __file__)

FIXTURES = Path(__file__).parents[1] / "fixtures"


def slurm_text(name):
    return (FIXTURES / "slurm" / name).read_text()


def pbs_text(name):
    return (FIXTURES / "pbs" / name).read_text()


def states(found):
    return {state.host: (state.state, state.reason) for state in found}


def test_sinfo_as_recorded():
    assert states(parse_sinfo(slurm_text("sinfo-drained-down.txt"))) == {
        "nid001000": ("busy", ""),
        "nid001001": ("idle", ""),
        "nid001002": ("down", "does not boot"),
        "nid001003": ("drained", "NHC: check_hw_ib: no port | is ACTIVE"),
    }


@pytest.mark.parametrize(
    ("word", "state", "reason"),
    [
        ("idle*", "down", "does not respond"),
        ("idle~", "idle", ""),
        ("idle$", "drained", "reserved for maintenance"),
        ("mixed-", "busy", ""),
        ("draining@", "drained", ""),
        ("allocated^", "drained", "reboots"),
        ("unknown*", "unknown", ""),
        ("mixed+planned", "busy", ""),
        ("what?", "unknown", ""),
    ],
)
def test_states_of_sinfo(word, state, reason):
    assert states(parse_sinfo(f"n1|{word}|none\n")) == {"n1": (state, reason)}


def test_a_host_of_two_partitions_is_one_host():
    assert states(parse_sinfo("n1|idle|none\nn1|drained|bad\nn1|idle|none\n")) == {"n1": ("drained", "bad")}


def test_pbsnodes():
    assert states(parse_pbsnodes(pbs_text("pbsnodes.json"))) == {
        "n001": ("idle", ""),
        "n002": ("busy", ""),
        "n003": ("busy", ""),
        "n004": ("drained", "cable of port 7 is exchanged"),
        "n005": ("down", "node down: communication closed"),
        "n006": ("busy", ""),
        "n007": ("down", ""),
    }


@pytest.mark.parametrize(
    ("name", "word", "code"),
    [
        ("running", "running", None),
        ("completed", "ended", 0),
        ("failed", "ended", 3),
        ("cancelled", "cancelled", None),
        ("killed", "killed", None),
        ("timeout", "timeout", None),
        ("pending", "pending", None),
    ],
)
def test_jobs_of_scontrol(name, word, code):
    state = slurm.parse_job(pairs(slurm_text(f"job-{name}.txt")))
    assert (state.word, state.exit_code) == (word, code)
    assert state.over == (word not in ("running", "pending"))


def test_why_a_job_waits():
    state = slurm.parse_job(pairs(slurm_text("job-pending.txt")))
    assert state.reason.startswith("Nodes required for job are DOWN, DRAINED")
    stuck = slurm.parse_job({"JobState": "PENDING", "Reason": "PartitionTimeLimit", "StartTime": "Unknown"})
    assert stuck.stuck and not stuck.over


def test_jobs_of_sacct():
    assert slurm.parse_sacct("COMPLETED|0:0|00:01:05\n") == slurm.JobState("ended", elapsed_s=65.0, exit_code=0)
    assert slurm.parse_sacct("CANCELLED by 1000|0:15|1-00:00:00\n").word == "cancelled"
    assert slurm.parse_sacct("NODE_FAIL|0:0|00:01:05\n").word == "node_fail"
    assert slurm.parse_sacct("") is None


@pytest.mark.parametrize(
    ("job", "word", "code"),
    [
        ("1300", "pending", None),
        ("1301", "running", None),
        ("1302", "ended", 1),
        ("1303", "timeout", None),
        ("1304", "cancelled", None),
        ("1305", "killed", None),
        ("1306", "cancelled", None),
        ("1307", "pending", None),
        ("1308", "pending", None),
    ],
)
def test_jobs_of_qstat(job, word, code):
    state = pbs.parse_job(the_job(pbs_text("qstat.json"), job))
    assert (state.word, state.exit_code) == (word, code)
    assert state.stuck == (job == "1308")


def test_what_qstat_says_of_time():
    text = pbs_text("qstat.json")
    assert pbs.parse_job(the_job(text, "1300.pbs01")).starts == "Tue Nov 14 11:30:00 2023"
    assert pbs.parse_job(the_job(text, "1301.pbs01")).elapsed_s == 100.0
    assert (seconds("01:00:05"), seconds("90"), seconds("x")) == (3605.0, 90.0, None)


def test_srun_that_gave_a_host_up():
    """Whoever was done by then has answered; the dead host has a reason; the one that was killed is asked again."""
    hosts = ["nid001000", "nid001001", "nid001002", "nid001003"]
    asked = parsed(hosts, slurm_text("srun-host-down.txt").splitlines(), 20)
    assert sorted(asked.answers) == ["nid001001", "nid001003"]
    assert asked.answers["nid001003"].output == "nid001003\n"
    assert asked.silent["nid001002"] == PINNED["launch failed: Communication"]


# ------------------------------------------------------------------------------------------------ anything at all

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = ("state", "resources_available", "comment", "jobs")
NODE = st.dictionaries(st.sampled_from(KEYS), ANY_JSON)
JOB = st.dictionaries(
    st.sampled_from(("job_state", "Exit_status", "comment", "estimated", "resources_used")),
    ANY_JSON | st.sampled_from(("Q", "R", "F")),
)


@given(st.text(max_size=100) | st.text(alphabet="n1|*~idle \n", max_size=60))
def test_any_output_of_sinfo(text):
    parse_sinfo(text)


@given(st.text(max_size=60) | ANY_JSON.map(json.dumps) | NODE.map(lambda node: json.dumps({"nodes": {"n1": node}})))
def test_any_output_of_pbsnodes(text):
    parse_pbsnodes(text)


@given(JOB)
def test_any_job_of_qstat(fields):
    pbs.parse_job(the_job(json.dumps({"Jobs": {"1.pbs": fields}}), "1"))


@given(ANY_JSON.map(json.dumps) | st.text(max_size=40))
def test_any_output_of_qstat(text):
    the_job(text, "1")


@given(
    st.dictionaries(st.sampled_from(("JobState", "Reason", "ExitCode", "RunTime", "StartTime")), st.text(max_size=12))
)
def test_any_job_of_scontrol(fields):
    slurm.parse_job(fields)


@given(st.text(alphabet="FAILED|0:1-\n", max_size=30))
def test_any_output_of_sacct(text):
    slurm.parse_sacct(text)


@given(st.lists(st.text(alphabet="0123: fablint-hostend*STEPn", max_size=40), max_size=8))
def test_any_output_of_srun(lines):
    parsed(["n1", "n2"], lines, 5)

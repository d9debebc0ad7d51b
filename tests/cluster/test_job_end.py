"""Whether the job of this process is over, from what scontrol prints; others test PBS and the real Slurm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fablint.cluster import why_job_ended

SLURM = {"SLURM_JOB_ID": "8", "SLURM_JOB_NODELIST": "n[1-3]"}
FIELDS = "JobId=8 JobName=interactive JobState={} Reason={} ExitCode=0:0 RunTime=00:01:05 NodeList=n[1-3] Power="


def slurm(staged: Any, folder: Path, **programs: str) -> str:
    """What is said in a Slurm job in which these programs run such shell commands."""
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    staged.variables |= SLURM | {"PATH": f"{folder}:/usr/bin:/bin"}
    return why_job_ended(staged)


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ("RUNNING", "None", ""),
        ("SUSPENDED", "None", ""),
        ("CANCELLED", "None", "Slurm job 8 has ended (cancelled)"),
        ("TIMEOUT", "TimeLimit", "Slurm job 8 has ended (its time limit is reached)"),
        ("PREEMPTED", "None", "Slurm job 8 has ended (preempted)"),
        ("COMPLETING", "None", "Slurm job 8 has ended"),
        ("COMPLETED", "None", "Slurm job 8 has ended"),
        ("unheard-of", "None", ""),
    ],
)
def test_states_of_a_slurm_job(staged: Any, tmp_path: Path, state: str, reason: str, words: str) -> None:
    assert slurm(staged, tmp_path, scontrol=f"echo '{FIELDS.format(state, reason)}'") == words


def test_a_slurm_job_that_a_node_ended_names_the_node(staged: Any, tmp_path: Path) -> None:
    down = "echo 'n1|idle|none'; echo 'n2|down*|Not responding'; echo 'n3|idle|none'"
    said = slurm(staged, tmp_path, scontrol=f"echo '{FIELDS.format('NODE_FAIL', 'NodeDown')}'", sinfo=down)
    assert said == "Slurm job 8 has ended (node failure: n2)"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("slurm_load_jobs error: Invalid job id specified", "Slurm job 8 has ended"),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", ""),
    ],
)
def test_a_slurm_job_without_fields(staged: Any, tmp_path: Path, error: str, words: str) -> None:
    assert slurm(staged, tmp_path, scontrol=f"echo '{error}' >&2; exit 1") == words


def test_outside_of_a_job_none_ends(staged: Any) -> None:
    assert why_job_ended(staged) == ""

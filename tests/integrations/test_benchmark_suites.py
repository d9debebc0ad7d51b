"""The ReFrame tests and the JUBE benchmark, run by their programs on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fablint.system import System

INTEGRATIONS = Path(__file__).parents[2] / "integrations"
BIN = Path(sys.executable).parent
REFRAME = BIN / "reframe"
ENGINES = str(System().home)  # the engine is not built again
FAULT = {"state": "FAULT"}
COVERAGE = {"pairs_planned": 4, "pairs_measured": 3}

needs_reframe = pytest.mark.skipif(not REFRAME.exists(), reason="ReFrame is not installed (ReFrame-HPC)")


def reframe(tmp_path: Path, *words: str, **environ: str) -> tuple[int, str]:
    """Exit status and output of ReFrame for the tests of fablint."""
    command = [
        REFRAME,
        "--nocolor",
        "--exec-policy=serial",
        f"--prefix={tmp_path}",
        "--performance-report",
        "-r",
        *words,
    ]
    done = subprocess.run(
        [*command, "-c", INTEGRATIONS / "reframe" / "fablint_checks.py"],
        cwd=tmp_path,
        env=os.environ
        | {"HOME": str(tmp_path), "FABLINT_HOME": ENGINES, "PATH": f"{BIN}:{os.environ['PATH']}"}
        | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
@needs_reframe
def test_reframe_measures_this_machine(tmp_path: Path) -> None:
    _, output = reframe(tmp_path, "-n", "FablintLatency|FablintPreflight")
    assert re.search(r"OK \] \(\d/2\) FablintLatency", output), output
    assert re.search(r"P: osu_latency_8B: \d+\.\d+ us", output), output
    assert re.search(r"P: unfit: [01] hosts", output) or "exit code 1" in output, output


@needs_reframe
def test_reframe_fails_where_fablint_finds_a_fault(tmp_path: Path) -> None:
    """Also where it prints no JSON at all."""
    verdict = {"exit_code": 1, "findings": [FAULT, FAULT], "coverage": COVERAGE}
    (tmp_path / "check.json").write_text(json.dumps(verdict))
    program = tmp_path / "fablint"
    program.write_text(
        f"#!/bin/sh\ncase $1 in check) cat {tmp_path}/check.json; exit 1;; esac\necho no such host\nexit 2\n"
    )
    program.chmod(0o755)
    path = f"{tmp_path}:{BIN}:{os.environ['PATH']}"
    status, output = reframe(tmp_path, "-n", "FablintCheck|FablintBandwidth", PATH=path)
    assert status != 0
    assert re.search(r"FAIL \] \(\d/2\) FablintCheck", output), output
    assert re.search(r"FAIL \] \(\d/2\) FablintBandwidth", output), output
    assert "exit code 1, not 0" in output
    assert "no JSON output" in output


@pytest.mark.skipif(shutil.which("jube") is None, reason="JUBE is not installed (Debian: jube)")
def test_jube_prints_the_tables_of_the_commitment(tmp_path: Path) -> None:
    script = (INTEGRATIONS / "jube" / "fablint.xml").read_text()
    short = script.replace(">16777216<", ">65536<")
    assert short != script
    (tmp_path / "fablint.xml").write_text(short)
    environ = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    words = ["jube", "run", "fablint.xml", "--tag", "test", "-r", "--hide-animation"]
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False)
    table = re.search(r"bandwidth:\n(.*\n)\|[-|]+\n\| +(\w+/s) \| +([\d.]+) \| +([\d.]+) \| +([\d.]+) \|", done.stdout)
    assert table, done.stdout + done.stderr
    low, mean, high = map(float, table.groups()[2:])
    assert 0 < low <= mean <= high
    assert re.search(r"\|\s+25 \| 65536 \| --bidirectional --bisection \|\s+1 \|\s+1 \|", done.stdout), done.stdout
    assert "messages of 16 MiB" in done.stdout.rpartition("rules:")[2]

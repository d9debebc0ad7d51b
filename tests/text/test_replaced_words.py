"""The linter of words: `codespell` with the configuration of pyproject.toml and lint/replaced-words.txt."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def codespell(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "codespell_lib"], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_no_replaced_word_is_used() -> None:
    done = codespell(ROOT)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        "# The sick host is excluded.",  # codespell:ignore sick
        "class SickHost: ...",  # codespell:ignore
        "is_sick_host = True",  # codespell:ignore sick
        "SICK_HOSTS = ()",  # codespell:ignore
        "_SICK = ()",  # codespell:ignore
    ],
)
def test_a_replaced_word_is_refused_in_prose_and_as_part_of_a_name(tmp_path: Path, line: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "lint", tmp_path / "lint")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "hosts.py").write_text("# A one-way stream is a term.\n")
    assert codespell(tmp_path).returncode == 0
    (tmp_path / "src" / "hosts.py").write_text(line + "\n")
    done = codespell(tmp_path)
    assert done.returncode != 0
    assert done.stdout.lower() == "./src/hosts.py:1: sick ==> faulty\n"  # codespell:ignore sick

"""tools/new_part.py in a clone: what it writes passes the tests, and what cannot be written is refused in a line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKED = (
    "tests/test_architecture.py",
    "tests/preflight/test_table.py",
    "tests/preflight/test_layout.py",
    "tests/preflight/host",
    "tests/preflight/site/test_site_expectations.py",
    "tests/store/importing",
    "tests/docs/test_recipes.py",
    "tests/cli/pages",
    "tests/snapshot",
    "tests/model",
)
NOT_OF_PARTS = "not test_folders_hold_few_modules"  # of the checkout as it is


def run(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(clone / "src")}
    return subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def new_part(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(clone, sys.executable, "tools/new_part.py", *words)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout with its history, with what is not committed, and with what mypy knows of it already."""
    folder = tmp_path_factory.mktemp("clone") / "fablint"
    subprocess.run(["git", "clone", "--quiet", "--local", str(ROOT), str(folder)], check=True)
    listed = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(["git", *listed], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, folder / name
        target.unlink(missing_ok=True)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    if (ROOT / ".mypy_cache").is_dir():
        shutil.copytree(ROOT / ".mypy_cache", folder / ".mypy_cache")
    for words in (("add", "--all"), ("-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "-m", "x")):
        subprocess.run(["git", *words], cwd=folder, check=words[0] == "add")
    return folder


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("check", "clock"), "ID=clock: write FAMILY.SUBJECT: host.clock"),
        (("check", "host.Clock"), "ID=host.Clock: write FAMILY.SUBJECT: host.clock"),
        (("check", "nofamily.x"), "ID=nofamily.x: no check is called nofamily.*: take the family of a similar check"),
        (("check", "host.clocksource"), "ID=host.clocksource: there is such a check"),
        (("check", "host." + "x" * 20), f"ID=host.{'x' * 20}: at most 20 characters, as many as sinfo -R shows"),
        (("importer", "Tool"), "TOOL=Tool: small letters, digits and _"),
        (("importer", "hp2p"), "src/fablint/store/importing/hp2p.py exists already: choose another name"),
        (("kernel", "ping-pong"), "NAME=ping-pong: small letters, digits and _"),
        (("kernel", "latency"), "engine/kernels/latency.cpp exists already: choose another name"),
    ],
)
def test_what_cannot_be_written_is_refused(words: tuple[str, ...], why: str) -> None:
    refused = new_part(ROOT, *words)
    assert (refused.returncode, refused.stderr, refused.stdout) == (1, f"{why}\n", "")


@pytest.mark.long
def test_a_new_check_and_a_new_importer_pass_the_tests(clone: Path) -> None:
    for words in (("check", "host.wobble"), ("check", "net.wobble", "--file", "/proc/wobble"), ("importer", "wobble")):
        written = new_part(clone, *words)
        assert written.returncode == 0, written.stderr
    run(clone, "git", "add", "--all")
    for linter in (("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)):
        checked = run(clone, sys.executable, "-m", *linter)
        assert checked.returncode == 0, checked.stdout
    tested = run(clone, sys.executable, "-m", "pytest", "-q", "-m", "not long", "-k", NOT_OF_PARTS, *CHECKED)
    assert tested.returncode == 0, tested.stdout
    assert "host.wobble" in (clone / "docs/reference/preflight-checks.md").read_text()
    assert "wobble" in (clone / "share/man/man1/fablint-import.1").read_text()


@pytest.mark.long
def test_a_new_kernel_is_measured(clone: Path) -> None:
    assert new_part(clone, "kernel", "wobble_back").returncode == 0
    tests = ("tests/engine/test_every_row.py", "tests/engine/kernels", "tests/cli/pages")
    tested = run(clone, sys.executable, "-m", "pytest", "-q", "-m", "not long", *tests)
    assert tested.returncode == 0, tested.stdout

"""tools/touched_tests.py on small trees: which tests a change leads to, in which order, and what is left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from touched_tests import Tree, changed_files, nearest_tests

from pinned import pinned_by

PINNED = pinned_by("tools.toml", __file__)

SCRIPT = Path(__file__).parents[2] / "tools" / "touched_tests.py"

FILES = {
    "src/fab/__init__.py": "",
    "src/fab/stage/__init__.py": """
        from fab.stage.pairs import pair
        from fab.stage.hosts import host
        """,
    "src/fab/stage/pairs.py": "def pair(): return 2",
    "src/fab/stage/hosts.py": "def host():\n    from .. import names\n    return names.NAME",
    "src/fab/stage/page.py": "TEMPLATE = 'page.html'",
    "src/fab/names.py": "NAME = 'h1'",
    "src/fab/cli/__init__.py": "VERBS = ('check', 'import')",
    "src/fab/cli/check.py": "from fab.stage import pair",
    "src/fab/cli/import_.py": "",
    "src/fab/stage/page.html": "<p>",
    "docs/figures.py": "import fab.names",
    "tests/conftest.py": """
        import pytest
        from fab import cli

        @pytest.fixture
        def command():
            return cli
        """,
    "tests/test_architecture.py": "def test_layout(): pass",
    "tests/stage/cases.py": "from fab.stage import host as given",
    "tests/stage/test_pairs.py": "from fab.stage import pair\ndef test_pair(): assert pair() == 2",
    "tests/stage/test_hosts.py": "import cases\ndef test_host(): assert cases.given() == 'h1'",
    "tests/stage/test_page.py": "from fab.stage import page\ndef test_page(): assert page.TEMPLATE",
    "tests/other/cases.py": "CASE = 1",
    "tests/other/test_other.py": "import cases\ndef test_other(): assert cases.CASE",
    "tests/cli/test_verbs.py": "def test_verb(command): assert command.VERBS",
    "tests/docs/test_figures.py": "NAME = 'figures'\ndef test_name(): assert NAME",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit on the branch main."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        path.write_text("\n".join(line.removeprefix("        ") for line in lines) + "\n")
    (tmp_path / ".gitignore").write_text("__pycache__\n.pytest_cache\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\nmarkers =\n    long: takes long\n")
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=folder, check=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=x")


def led_to(checkout: Path, *changed: str) -> list[str]:
    return [path.stem for path in nearest_tests(Tree.read(checkout), map(Path, changed))]


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text + "\n")


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, "--workers=0", *words], cwd=checkout, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("src/fab/stage/pairs.py", ["test_pairs", "test_verbs"]),  # a name of a package is that of its module
        ("src/fab/stage/hosts.py", ["test_hosts"]),  # over a module of the tests
        ("src/fab/names.py", ["test_figures", "test_hosts"]),  # an import within a function, a script by its name
        ("src/fab/cli/check.py", ["test_verbs"]),  # a command by its name, a fixture by its parameter
        ("src/fab/cli/import_.py", ["test_verbs"]),
        ("src/fab/stage/page.html", ["test_page"]),  # a file that is no module
        ("tests/stage/cases.py", ["test_hosts"]),  # and not the tests of a folder with a module of the same name
        ("tests/stage/test_page.py", ["test_page"]),
        ("README.md", []),
    ],
)
def test_a_change_leads_to_tests(checkout: Path, changed: str, tests: list[str]) -> None:
    assert led_to(checkout, changed) == tests


def test_the_nearest_come_first(checkout: Path) -> None:
    assert led_to(checkout, "src/fab/names.py", "tests/stage/test_pairs.py")[0] == "test_pairs"
    assert led_to(checkout, "src/fab/stage/pairs.py") == ["test_pairs", "test_verbs"]


def test_a_file_that_cannot_be_parsed_is_a_change_like_others(checkout: Path) -> None:
    append(checkout / "src/fab/stage/pairs.py", "def (")
    assert led_to(checkout, "src/fab/stage/pairs.py") == ["test_pairs", "test_verbs"]


def test_what_differs_from_main_is_found(checkout: Path) -> None:
    git(checkout, "checkout", "--quiet", "-b", "branch")
    append(checkout / "src/fab/names.py", "A = 1")
    commit(checkout)
    append(checkout / "src/fab/stage/pairs.py", "B = 1")
    (checkout / "src/fab/new.py").write_text("")
    assert [path.stem for path in changed_files(checkout, None)] == ["names", "new", "pairs"]
    assert [path.stem for path in changed_files(checkout, "HEAD")] == ["new", "pairs"]


def test_on_main_it_is_what_is_not_committed_or_else_the_last_commit(checkout: Path) -> None:
    append(checkout / "src/fab/names.py", "A = 1")
    assert [path.stem for path in changed_files(checkout, None)] == ["names"]
    commit(checkout)
    assert [path.stem for path in changed_files(checkout, None)] == ["names"]


def test_the_tests_run_and_what_was_left_out_is_said(checkout: Path) -> None:
    append(checkout / "src/fab/stage/pairs.py", "C = 1")
    done = run(checkout, "--files", "1")
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout + done.stderr  # the layout too
    assert PINNED["1 files differ; 2 files"] in done.stdout
    assert PINNED["farther away: 1 files"] in done.stdout


def test_when_the_time_is_over_a_failure_is_still_the_status(checkout: Path) -> None:
    append(checkout / "src/fab/stage/pairs.py", "C = 1")
    done = run(checkout, "--seconds", "0")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr
    assert "farther away: 2 files of tests" in done.stdout
    (checkout / "tests/test_architecture.py").write_text("def test_failure(): assert False\n")
    assert run(checkout, "--seconds", "0").returncode == 1


def test_workers_stop_when_the_time_is_over(checkout: Path) -> None:
    slow = "import time\nimport fab.stage.pairs\n" + "".join(f"def test_{n}(): time.sleep(0.2)\n" for n in range(200))
    (checkout / "tests" / "stage" / "test_slow.py").write_text(slow)
    done = run(checkout, "--seconds", "0", "--workers=2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "202 passed" not in done.stdout
    assert "the time is over" in done.stdout


def test_changes_of_the_engine_run_its_unit_tests(checkout: Path) -> None:
    script = checkout / "engine" / "tests" / "run.sh"
    script.parent.mkdir(parents=True)
    script.write_text('#!/bin/sh\necho "engine: $1"\nexit 3\n')
    script.chmod(0o755)
    done = run(checkout)
    assert (done.returncode, "engine: unit" in done.stdout) == (3, True), done.stdout + done.stderr

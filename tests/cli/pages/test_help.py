"""Help: there for every verb, quick, and the same as in the docs."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from fablint import __version__
from fablint.cli import cli
from fablint.cli.export import FORMATS
from fablint.errors import EXIT_CODES, FablintError
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

ROOT = Path(__file__).parents[3]


def cli_reference():
    spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "docs" / "cli_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VERBS = dict(cli_reference().commands(cli, "fablint"))


def test_help_imports_click_and_nothing_else():
    """Of what is outside the standard library and fablint."""
    code = (
        "import sys; before = set(sys.modules); from fablint.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Usage: fablint" in done.stdout
    imported = {name.partition(".")[0] for name in done.stderr.split()}
    assert imported - sys.stdlib_module_names == {"click", "fablint"}


@pytest.mark.parametrize("path", VERBS)
def test_every_verb_has_an_example_and_the_common_options(path):
    text = VERBS[path]
    assert f"  {path}" in text.partition("Example")[2] or path in ("fablint", "fablint engine", "fablint engine path")
    for option in ("--json", "-q, --quiet", "--debug", "-h, --help"):
        assert option in text


def test_only_verbs_that_read_a_run_have_options_with_values_of_the_run():
    known = {path for path, text in VERBS.items() if "[the run's own]" in " ".join(text.split())}
    assert known == {f"fablint {verb}" for verb in ("analyse", "compare", "history add", "report", "retest")}


def test_the_reference_is_fresh():
    reference = cli_reference()
    assert reference.PAGE.read_text() == reference.render(), "run docs/cli_reference.py"


def test_the_readme_names_every_verb():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in cli.commands if f"| `{name}" not in readme] == []


def test_the_choices_are_those_of_the_stages():
    from fablint.store.export import FORMATS as KNOWN

    assert tuple(KNOWN) == FORMATS


def test_functions_of_verbs_fit_a_screen():
    import inspect

    for verb in (cli.get_command(click.Context(cli), name) for name in cli.commands):
        if not isinstance(verb, click.Group):
            function = inspect.unwrap(verb.callback)
            assert len(inspect.getsource(function).splitlines()) <= 45, verb.name


def test_every_page_has_the_same_exit_codes():
    table = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())
    for page in ("README.md", "docs/reference/cli.md"):
        assert table in (ROOT / page).read_text(), page
    help_text = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"  {code:<4} {meaning}\n" in help_text for code, meaning in EXIT_CODES.items())
    assert {error.exit_code for error in errors_of(FablintError)} <= set(EXIT_CODES)


def errors_of(base):
    return [base, *(found for one in base.__subclasses__() for found in errors_of(one))]


def test_version_names_commit_engine_and_mpi(fablint_in_process, tmp_path):
    done = fablint_in_process("--version", FABLINT_HOME=str(tmp_path))
    release, commit, engine, mpi = done.stdout.splitlines()
    assert (done.returncode, release) == (0, f"fablint {__version__}")
    assert re.fullmatch(r"commit  ([0-9a-f]{12}(-dirty)?|unknown)", commit)
    assert re.match(r"engine  none built for \S*mpicxx\S* yet$|engine  none$", engine)
    assert mpi.startswith("MPI     ")
    facts = json.loads(fablint_in_process("--version", "--json", FABLINT_HOME=str(tmp_path)).stdout)
    assert (facts["fablint"], f"engine  {facts['engine']}") == (__version__, engine)
    empty = str(tmp_path / "nothing")
    without = fablint_in_process("--version", PATH=empty, FABLINT_HOME=str(tmp_path), FABLINT_MPICXX="/nowhere/mpicxx")
    assert PINNED["MPI none: $FABLINT_MPICXX"] in without.stdout

"""What a verb imports: nothing heavy that it has no use for. Seconds are measured by benchmarks/startup.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Prints the modules that a verb has left behind, its status first.
CODE = """
import sys
from fablint.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print(end.code or 0, *sys.modules, file=sys.stderr)
"""
# Sends SIGINT while the command line is imported.
INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for programs in the background
class Finder:
    def find_spec(self, name, *_):
        if name == "fablint.cli":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
from fablint.__main__ import main
main()
"""
JUDGING = {"pydantic", "scipy", "yaml"}
STORING = {"zarr", "xarray", "numcodecs", "asyncio"}
SHOWING = {"rich", "jinja2", "markdown_it", "pygments"}


def imported(folder: Path, *words: str, status: int = 0) -> set[str]:
    """Modules after `fablint WORDS`, of packages their names alone as well."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == str(status), done.stdout
    return {*modules, *(name.partition(".")[0] for name in modules)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder with the run `small.run`: a host of two ranks, as `bench` measures."""
    folder = tmp_path_factory.mktemp("runs")
    program = [sys.executable, "-m", "fablint.cli"]
    row = "latency --pattern pair --sizes 8 --iterations 10"
    subprocess.run([*program, "measure", "-q", "-r", row, "-o", "small.run"], cwd=folder, check=True)
    return folder


def test_the_package_itself_imports_nothing_but_its_version() -> None:
    """Ctrl-C while a package is imported that `python -m fablint` does not guard yet would print a traceback."""
    code = "import sys, fablint; print(*(name for name in sys.modules if name.startswith('fablint.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fablint.version"]


@pytest.mark.parametrize("words", [("show",), ("report", "--table", "bench"), ("report", "--table", "pairs")])
def test_a_run_that_is_not_judged_needs_numpy_alone(runs, words):
    modules = imported(runs, words[0], "small.run", *words[1:])
    assert "numpy" in modules
    assert modules & (JUDGING | STORING | SHOWING) == set()


@pytest.mark.parametrize("benchmark", ["osu_latency", "latency"])
def test_a_benchmark_needs_numpy_alone(tmp_path, benchmark):
    modules = imported(tmp_path, "-q", "bench", benchmark, "--sizes", "8", "-i", "10")  # no progress, which rich shows
    assert "numpy" in modules
    assert modules & (JUDGING | STORING | SHOWING | {"concurrent.futures", "fablint.measure.doctor"}) == set()


def test_the_list_of_benchmarks_needs_no_numpy(tmp_path):
    assert imported(tmp_path, "bench", "--list") & (JUDGING | STORING | SHOWING | {"numpy"}) == set()


def test_a_small_run_is_judged_without_the_large_parts_of_scipy(runs):
    modules = imported(runs, "-q", "analyse", "small.run")  # without progress, which is shown after 2 s
    heavy = {"scipy.stats", "scipy.optimize", "scipy.sparse", "scipy.ndimage", "fablint.discover"}
    assert modules & (STORING | SHOWING | heavy) == set()


def test_a_verb_does_not_import_the_others(runs):
    modules = imported(runs, "show", "small.run")
    verbs = {name for name in modules if name.startswith("fablint.cli.")}
    assert verbs == {"fablint.cli.options", "fablint.cli.param_types", "fablint.cli.session", "fablint.cli.show"}


def test_ctrl_c_while_modules_are_imported_prints_nothing():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

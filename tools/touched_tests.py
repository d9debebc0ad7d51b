"""Run the tests of what a change touches, the nearest first: `make test-fast`.

A test file is as near to a changed file as the shortest chain of imports between them, read from the syntax trees. An
import of a name from a package leads to the module that defines the name. A fixture leads to the conftest.py that has
it, and the name of a file in a string to that file. Changes of the engine run its unit tests.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

FOLDERS = ("src", "tests", "docs", "benchmarks", "tools", "integrations")
ALWAYS = Path("tests/test_architecture.py")  # reads all sources
ENGINE = "engine"


# ---- what has changed


def changed_files(root: Path, base: str | None) -> list[Path]:
    """Files that differ from `base`, relative to the root, those that git does not track yet included.

    Without a base: from where this branch left `main`; on `main` itself from the last commit, and where nothing differs
    from it, from the commit before.
    """
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    if base is None:
        base = (_git(root, "merge-base", "main", "HEAD", optional=True) or ["HEAD"])[0]
        if not new and not _git(root, "diff", "--name-only", base):
            base = "HEAD~1"
    return sorted({Path(name) for name in (*new, *_git(root, "diff", "--name-only", base))})


def _git(root: Path, *words: str, optional: bool = False) -> list[str]:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode and not optional:
        sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return [] if done.returncode else done.stdout.splitlines()


# ---- what leads to what


@dataclass(frozen=True)
class Source:
    """What a Python file refers to."""

    imports: frozenset[tuple[str, str]]  # module, and the name that is imported from it, if any
    words: frozenset[str]  # strings without blanks
    parameters: frozenset[str]  # of functions: fixtures among them
    fixtures: frozenset[str]

    @classmethod
    def of(cls, tree: ast.Module, module: str) -> Source:
        """Read the syntax tree of a file that has this name when it is imported."""
        imports: set[tuple[str, str]] = set()
        words: set[str] = set()
        parameters: set[str] = set()
        fixtures: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports.update((alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                package = ".".join(module.split(".")[: -node.level]) if node.level else ""
                name = ".".join(filter(None, (package, node.module)))
                imports.update((name, alias.name) for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                words.update((node.value, node.value.rpartition("/")[2]))
            elif isinstance(node, ast.FunctionDef):
                parameters.update(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))
                if any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list):
                    fixtures.add(node.name)
        return cls(frozenset(imports), frozenset(words), frozenset(parameters), frozenset(fixtures))


@dataclass
class Tree:
    """The Python files of a checkout and what each of them refers to directly."""

    root: Path
    sources: dict[Path, Source] = field(default_factory=dict)
    modules: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))  # by the name in an import
    names: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))  # by the name of the file

    @classmethod
    def read(cls, root: Path) -> Tree:
        """Parse all Python files; one that cannot be parsed refers to nothing."""
        tree = cls(root)
        for folder in FOLDERS:
            for path in sorted((root / folder).rglob("*.py")):
                tree._add(path.relative_to(root))
        return tree

    def _add(self, path: Path) -> None:
        words = path.with_suffix("").parts
        package = words[1:] if words[0] == "src" else words
        dotted = ".".join(package)
        try:
            parsed = ast.parse((self.root / path).read_text(encoding="utf-8"))
        except SyntaxError:
            parsed = ast.Module([], [])
        self.sources[path] = Source.of(parsed, dotted)
        if path.name not in ("__init__.py", "conftest.py"):
            self.names[path.name].append(path)
        # Modules outside of src are imported by a name that begins anywhere below the root.
        first = 0 if words[0] == "src" else len(package) - 1
        for start in range(first + 1):
            self.modules[".".join(package[start:]).removesuffix(".__init__")].append(path)

    def neighbours(self, path: Path) -> Iterator[Path]:
        """Files to which a file refers directly."""
        source = self.sources[path]
        for module, name in source.imports:
            yield from self._imported(path, module, name, set())
        if path.parts[0] == "tests":
            yield from self._conftests(path, source)
            for word in source.words:
                yield from self.names.get(word, ())
                if word.isidentifier() and len(word) > 3:  # importlib.import_module("peers")
                    yield from (file for file in self.modules.get(word, ()) if file.parts[0] != "tests")
        elif path.name == "__init__.py":  # commands that are imported by their names
            for word in source.words:
                files = (path.parent / f"{word}.py", path.parent / f"{word}_.py")  # the latter for keywords
                yield from (file for file in files if file in self.sources)

    def _imported(self, path: Path, module: str, name: str, seen: set[tuple[str, str]]) -> Iterator[Path]:
        """Files that define what is imported: a name of a package is followed to the module that defines it."""
        if (module, name) in seen:
            return
        seen.add((module, name))
        if name and f"{module}.{name}" in self.modules:
            yield from self._nearest(path, f"{module}.{name}")
            return
        for file in self._nearest(path, module):
            inner = [(of, as_) for of, as_ in self.sources[file].imports if as_ == name] if name else []
            if file.name == "__init__.py" and inner:
                for subject, as_ in inner:
                    yield from self._imported(file, subject, as_, seen)
            else:
                yield file

    def _nearest(self, path: Path, module: str) -> list[Path]:
        """Files that an import can mean, in the same folder if there is one."""
        files = self.modules.get(module, [])
        return [file for file in files if file.parent == path.parent and path.parts[0] != "src"] or files

    def _conftests(self, path: Path, source: Source) -> Iterator[Path]:
        for folder in path.parents:
            conftest = folder / "conftest.py"
            if conftest == path or conftest not in self.sources:
                continue
            if self.sources[conftest].fixtures & (source.parameters | source.words):
                yield conftest

    def users(self) -> Mapping[Path, set[Path]]:
        """Files by a file to which they refer."""
        users: dict[Path, set[Path]] = defaultdict(set)
        for path in self.sources:
            for used in self.neighbours(path):
                users[used].add(path)
        return users

    def starting_points(self, changed: Iterable[Path]) -> dict[Path, int]:
        """Python files that changed, or that name another file that did, with their distances."""
        starts: dict[Path, int] = {}
        for path in changed:
            if path in self.sources:
                starts[path] = 0
            elif path.suffix != ".py":
                starts |= {
                    file: 1 for file, source in self.sources.items() if path.name in source.words and file not in starts
                }
        return starts


def nearest_tests(tree: Tree, changed: Iterable[Path]) -> list[Path]:
    """Test files that refer to a changed file, directly or not: the nearest first."""
    users = tree.users()
    distance = tree.starting_points(changed)
    front = sorted(distance, key=distance.__getitem__)
    while front:
        following = []
        for path in front:
            for user in users.get(path, ()):
                if distance.get(user, sys.maxsize) > distance[path] + 1:
                    distance[user] = distance[path] + 1
                    following.append(user)
        front = sorted(following, key=distance.__getitem__)
    tests = [path for path in distance if path.parts[0] == "tests" and path.name.startswith("test_")]
    return sorted(tests, key=lambda path: (distance[path], path))


# ---- the run


class Deadline:
    """Plugin of pytest: ends the run after a time, and keeps what it came to."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: from now."""
        self._end = time.monotonic() + seconds
        self._session: pytest.Session | None = None
        self.begun: set[str] = set()  # files
        self.has_failed = self.has_ended_it = False

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, which the deadline stops."""
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the file of a test, and stop when the time is over."""
        self.begun.add(report.nodeid.partition("::")[0])
        self.has_failed |= report.failed
        if time.monotonic() > self._end and self._session is not None:
            # With workers it is pytest-xdist that starts the tests, and it has an attribute of its own.
            running = self._session.config.pluginmanager.get_plugin("dsession") or self._session
            running.shouldstop = "the time is over"
            self.has_ended_it = True


def run_tests(tests: Sequence[Path], deadline: Deadline, workers: str) -> int:
    """Run test files in this order until the deadline; return an exit status, 0 where no test failed."""
    words = ["-m", "not long", "-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"]
    status = pytest.main([*words, *map(str, tests)], plugins=[deadline])
    if deadline.has_failed:
        return 1
    is_good = deadline.has_ended_it or status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return 0 if is_good else int(status)


def main() -> int:
    """Find what has changed, run the tests and say what was left out."""
    options = _options()
    root = Path(_git(Path.cwd(), "rev-parse", "--show-toplevel")[0])
    began = time.monotonic()
    changed = changed_files(root, options.base)
    tests = nearest_tests(Tree.read(root), changed)
    is_engine = any(path.parts[0] == ENGINE for path in changed)
    print(f"{len(changed)} files differ; {len(tests)} files of tests lead to them", flush=True)
    if options.list:
        print(*tests, sep="\n")
        return 0
    status = 0
    if is_engine:
        status = subprocess.run(["engine/tests/run.sh", "unit"], cwd=root, check=False).returncode
    left = tests[options.files :]
    chosen = [*([ALWAYS] if (root / ALWAYS).exists() and ALWAYS not in tests else []), *tests[: options.files]]
    if tests:
        deadline = Deadline(options.seconds - (time.monotonic() - began))
        status = run_tests(chosen, deadline, options.workers) or status
        left = [path for path in tests if path.as_posix() not in deadline.begun]
    _say_what_was_left_out(left, is_engine)
    return status


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--base", help="commit to compare with (default: where this branch left main)")
    parser.add_argument("--seconds", type=float, default=50, help="no test begins later (default: 50)")
    parser.add_argument("--files", type=int, default=60, help="files of tests at most (default: 60)")
    parser.add_argument("--workers", default="auto", help="processes of pytest-xdist (default: one for each CPU)")
    parser.add_argument("--list", action="store_true", help="print the files, the nearest first, and run nothing")
    return parser.parse_args()


def _say_what_was_left_out(left: Sequence[Path], is_engine: bool) -> None:
    """One line for each folder of tests that did not run."""
    folders = Counter(path.parent.as_posix() for path in left)
    if folders:
        print(f"left out, since they are farther away: {len(left)} files of tests")
        print(*(f"  {number:3} of {folder}" for folder, number in folders.most_common()), sep="\n")
    print("left out always: long tests" + (", and the tests that start the engine" if is_engine else ""))


if __name__ == "__main__":
    sys.exit(main())

"""The layout of the source: what stands at the top, how large folders and files are, and that names occur once.

That imports go one way and have no cycles is checked by import-linter (pyproject.toml).
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parents[1]
PACKAGE = "src/fablint"
TOP = {"__init__", "__main__", "errors", "system", "version"}
MOST_MODULES = 15
MOST_LINES = 399
MOST_LINES_OF_FUNCTION = 50  # from `def` to the end, without the docstring and lines of comment

MOST_IN_CHAIN = 8  # modules of a package, each of which imports the next
LONGER_CHAINS = {"analyse": 19}  # to be shortened: no number grows

# Folders with one module for each entry of a table: they grow with it, and an entry is named after what it is for.
TABLES = {
    "engine/kernels": "a kernel each",
    "engine/transports": "a transport each",
    f"{PACKAGE}/cli": "a verb each",
    f"{PACKAGE}/cluster/schedulers": "a scheduler each",
    f"{PACKAGE}/discover/sources": "a source of topologies each",
    f"{PACKAGE}/measure/launchers": "a launcher each",
    f"{PACKAGE}/preflight/checks": "a group of checks each, in folders of what they look at",
    f"{PACKAGE}/report/tables": "a table each",
    f"{PACKAGE}/snapshot/parsers": "a program whose output is read each",
    f"{PACKAGE}/store/export": "a format each",
    f"{PACKAGE}/store/importing": "a tool whose output is read each",
    "tests/preflight": "tests of a group of checks each, in folders of what they look at",
    "tests/report/tables": "tests of a table each",
    "tests/store/importing": "tests of a tool each",
}

# Texts with dots that are not names of hosts.
OTHER_TEXTS = {
    "cluster/schedulers/pbs_job.py": "PBS job 4711.server",
    "cluster/schedulers/submission.py": "PBS job 4711.server",
    "measure/launcher_choice.py": "file mpicxx.mpich",
    "snapshot/parsers/gpu_messages.py": "PCI address 0000:3b:00.0",
    "snapshot/rdma_ports.py": "PCI address 0000:3b:00.0",
    "store/checksums.py": "chunk c.0.1",
}
# Texts with slashes that are not references to devices of hosts.
TEXTS_WITH_SLASHES = {
    "cli/param_types.py": "path",
    "preflight/host.py": "port mlx5_0/1 of a card",
    "snapshot/cards.py": "path in sysfs",
    "snapshot/counter_deltas.py": "path in sysfs",
    "snapshot/host_snapshot.py": "path in sysfs",
    "snapshot/parsers/inet.py": "network 10.0.0.0/8",
    "snapshot/parsers/nvidia_smi.py": "path in a document",
    "store/checksums.py": "path in a run directory",
    "workflows/check/cluster_check.py": "address 10.0.0.1/8",
    "workflows/check/counter_changes.py": "port mlx5_0/1 of a card",
}
SPLITS = {"partition", "rpartition", "split", "rsplit", "find", "index"}

SENTENCES = {"Sentence", "ActionKind", "NoteKind"}  # decorators of kinds, which their sentences document

SOURCES = {".py", ".cpp", ".hpp", ".inc", ".c", ".sh"}


def tracked(*folders: str) -> list[Path]:
    """Source files that git knows, relative to the root of the checkout."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in SOURCES and (ROOT / path).exists()]


def is_in_table(path: Path) -> bool:
    return any(folder.as_posix() in TABLES for folder in path.parents)


def modules_of_package() -> list[Path]:
    return [path for path in tracked(PACKAGE) if path.suffix == ".py" and path.stem not in ("__init__", "__main__")]


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file of the package."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file."""
    return list(ast.walk(parsed(path)))


def classes() -> Iterator[tuple[str, Path]]:
    """Names of the classes of the package, with their files."""
    for path in modules_of_package():
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                yield node.name, path


def repeated(named: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """Names that several files have outside of tables."""
    files: dict[str, list[str]] = defaultdict(list)
    for name, path in named:
        if not is_in_table(path):
            files[name].append(path.as_posix())
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def test_nothing_stands_at_the_top_but_errors_system_and_version() -> None:
    assert {path.stem for path in tracked(PACKAGE) if path.parent == Path(PACKAGE)} <= TOP


def test_folders_hold_few_modules() -> None:
    modules = defaultdict(set)
    for path in tracked("src", "engine", "tests", "tools", "benchmarks"):
        if path.stem not in ("__init__", "__main__", "conftest") and not is_in_table(path):
            modules[path.parent.as_posix()].add(path.stem)
    assert {folder: len(names) for folder, names in modules.items() if len(names) > MOST_MODULES} == {}


def test_tables_exist() -> None:
    assert [folder for folder in TABLES if not (ROOT / folder).is_dir()] == []


def test_every_file_of_the_engine_s_tests_is_part_of_a_program() -> None:
    """The Makefile compiles those of the folders `unit`, its subfolders, `mpi` and `fakes`."""
    folders = {path.parent.name for path in tracked("engine/tests") if path.suffix == ".cpp"}
    assert folders == {"fakes", "host", "mpi", "sockets", "unit"}


def test_files_are_short() -> None:
    paths = tracked("src", "engine", "tests", "tools", "benchmarks")
    lines = {path.as_posix(): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in paths}
    assert [path for path, count in lines.items() if count > MOST_LINES] == []


def lines_of_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Names of the functions of a file, and how many lines each has without its docstring and lines of comment."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef):
            numbers = set(range(node.lineno, cast(int, node.end_lineno) + 1))
            if ast.get_docstring(node):
                numbers -= set(range(node.body[0].lineno, cast(int, node.body[0].end_lineno) + 1))
            yield node.name, sum(not lines[number - 1].lstrip().startswith("#") for number in numbers)


def test_functions_are_short() -> None:
    functions = [(path, *function) for path in modules_of_package() for function in lines_of_functions(path)]
    assert [f"{path}: {name}" for path, name, count in functions if count > MOST_LINES_OF_FUNCTION] == []


def imports_within_packages() -> dict[str, set[str]]:
    """Modules of the package, and those of the same part of it that each imports."""
    names = {
        path.relative_to("src").with_suffix("").as_posix().replace("/", "."): path for path in modules_of_package()
    }
    imports: dict[str, set[str]] = {}
    for name, path in names.items():
        statements = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom)]
        targets = {
            text for node in statements for text in (node.module, *(f"{node.module}.{a.name}" for a in node.names))
        }
        imports[name] = {text for text in targets & names.keys() if text.split(".")[1] == name.split(".")[1]} - {name}
    return imports


def longest_chains(imports: Mapping[str, set[str]]) -> dict[str, int]:
    """Modules of the longest chain of imports in each part of the package."""

    @cache
    def length(module: str) -> int:
        return 1 + max(map(length, imports[module]), default=0)

    chains: dict[str, int] = defaultdict(int)
    for module in imports:
        part = module.split(".")[1]
        chains[part] = max(chains[part], length(module))
    return chains


def test_chains_of_imports_are_short() -> None:
    chains = longest_chains(imports_within_packages())
    assert chains["plan"] > 3
    assert {part: n for part, n in chains.items() if n > LONGER_CHAINS.get(part, MOST_IN_CHAIN)} == {}


def test_the_longest_chain_is_counted() -> None:
    imports = {"f.plan.a": {"f.plan.b", "f.plan.c"}, "f.plan.b": {"f.plan.c"}, "f.plan.c": set(), "f.text.a": set()}
    assert longest_chains(imports) == {"plan": 3, "text": 1}


def test_no_module_has_the_name_of_another() -> None:
    assert repeated((path.stem, path) for path in modules_of_package()) == {}


def test_no_module_of_the_tests_has_the_name_of_another() -> None:
    """Pytest imports those of all folders by their file names, and refuses the second."""
    names = Counter(path.name for path in tracked("tests", "tools") if path.suffix == ".py")
    assert [name for name, number in names.items() if number > 1] == ["conftest.py"]


def test_no_class_has_the_name_of_another() -> None:
    found = repeated(classes())
    assert found == {}


def undocumented(path: Path, documented: set[str]) -> Iterator[str]:
    """Public functions and methods without a docstring, but for methods whose name another class documents."""
    module = parsed(path)
    owners = [(node, node.name) for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    for owner, name in [(module, ""), *owners]:
        for node in owner.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or name.startswith("_"):
                continue
            inherits = isinstance(owner, ast.ClassDef) and node.name in documented
            is_kind = any(ast.unparse(decorator) in SENTENCES for decorator in node.decorator_list)
            if not ast.get_docstring(node) and not inherits and not is_kind:
                yield f"{path}: {name}.{node.name}".replace(": .", ": ")


def test_public_functions_have_a_docstring() -> None:
    methods = {"convert", "ev_read", "ev_hup"}  # of click.ParamType and of ClusterShell's event handler
    for path in modules_of_package():
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                methods |= {
                    item.name for item in node.body if isinstance(item, ast.FunctionDef) and ast.get_docstring(item)
                }
    assert [name for path in modules_of_package() for name in undocumented(path, methods)] == []


def modules_that(holds: Callable[[ast.AST], bool]) -> set[str]:
    """Modules with a node of a kind, but for programs that are sent to hosts: these import nothing of fablint."""
    return {
        name
        for path in modules_of_package()
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith("snapshot/agent/")
        and any(map(holds, nodes_of(path)))
    }


def is_text(node: ast.AST, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def takes_apart(node: ast.AST, separator: str) -> bool:
    """Whether a text is split at a separator, or searched for it."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.In | ast.NotIn) and is_text(node.left, separator)
    is_split = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SPLITS
    return is_split and any(is_text(value, separator) for value in [*node.args, *(key.value for key in node.keywords)])


def writes_device(node: ast.AST) -> bool:
    """Whether an f-string begins with a host, a slash and a value."""
    if not isinstance(node, ast.JoinedStr) or len(node.values) < 3:
        return False
    first, slash, device = node.values[:3]
    has_host = isinstance(first, ast.FormattedValue) and re.search("host|node", ast.unparse(first.value)) is not None
    return has_host and is_text(slash, "/") and isinstance(device, ast.FormattedValue)


def test_no_other_module_takes_a_host_name_apart() -> None:
    found = modules_that(lambda node: takes_apart(node, "."))
    assert found == {*OTHER_TEXTS, "model/host_name.py"}


def test_no_other_module_reads_or_writes_a_reference_to_a_device() -> None:
    found = modules_that(lambda node: takes_apart(node, "/") or writes_device(node))
    assert found == {*TEXTS_WITH_SLASHES, "model/host_name.py"}


def test_types_of_arrays_stand_in_one_module() -> None:
    """No other module defines or spells one: `model/arrays.py` has them with dtype and shape."""
    modules = [path for path in modules_of_package() if path.name != "arrays.py"]
    assert [path.as_posix() for path in modules if "NDArray" in (ROOT / path).read_text(encoding="utf-8")] == []


def test_one_function_selects_the_nics_of_the_fabric() -> None:
    """Others call those of `snapshot/fabric_nics.py`."""
    found = modules_that(
        lambda node: isinstance(node, ast.FunctionDef) and node.name in ("fabric_nics", "message_nics")
    )
    assert found == {"snapshot/fabric_nics.py"}


def test_attributes_of_runs_are_read_by_the_store_alone() -> None:
    """Others read the fields of `RunFacts` and `RowFacts`; the keys of the JSON stand in `model/facts`."""
    found = set()
    for path in modules_of_package():
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("store/", "model/facts/", "cli/bench_")):  # options of click have attributes too
            nodes = nodes_of(path)
            found |= {name for node in nodes if isinstance(node, ast.Attribute) and node.attr == "attributes"}
    templates = [path for path in (ROOT / PACKAGE).rglob("*.j2") if ".attributes" in path.read_text(encoding="utf-8")]
    assert (found, templates) == (set(), [])


def test_xarray_is_imported_by_open_run_alone() -> None:
    """It is an extra, since it brings pandas."""
    importing = [
        path.relative_to(PACKAGE).as_posix()
        for path in modules_of_package()
        if re.search(r"^\s*(import|from) (xarray|pandas)\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert importing == ["store/labels.py"]

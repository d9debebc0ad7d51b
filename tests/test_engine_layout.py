"""The folders of the engine stand on floors: an include goes to the same folder or to a folder of a lower floor."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from fablint.model.registry import KERNELS, TRANSPORTS
from test_architecture import PACKAGE, ROOT, modules_of_package, tracked

ENGINE = Path("engine")
# From the top. Folders of one floor do not include each other.
FLOORS = (
    {"."},
    {"measure"},
    {"output"},
    {"spec"},
    {"kernels"},
    {"transports"},
    {"verbs"},
    {"libraries"},
    {"messaging", "host"},
    {"ranks", "memories"},
    {"patterns", "sockets", "gpu"},
    {"base"},
    {"registry"},
)
FLOOR = {folder: -floor for floor, folders in enumerate(FLOORS) for folder in folders}


def sources() -> list[Path]:
    return [path for path in tracked("engine") if path.is_relative_to(ENGINE) and "tests" not in path.parts]


def test_every_folder_of_the_engine_has_a_floor() -> None:
    assert {path.relative_to(ENGINE).parent.as_posix() for path in sources()} == set(FLOOR)


def test_includes_of_the_engine_go_down_only() -> None:
    upward = []
    for path in sources():
        folder = path.relative_to(ENGINE).parent.as_posix()
        for included in re.findall(r'^#include "([^"]+)"', (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE):
            target = Path(included).parent.as_posix()
            if target != folder and FLOOR[target] >= FLOOR[folder]:
                upward.append(f"{path} includes {included}")
    assert upward == []


# Other meanings of the name of a transport or kernel.
NAMED = {
    ("cli/peers/imb.py", "reduce_scatter"): "a benchmark of IMB",
    ("report/preflight/preflight_text.py", "null"): "nothing, in JSON",
    ("simulate/simulated_rows.py", "null"): "the transport that a simulated row states",
    ("store/importing/pairs_csv.py", "null"): "a word for a missing figure",
}


def test_what_a_transport_or_collective_does_is_read_from_the_tables() -> None:
    """No module of the package compares names of transports without messages, or of nccl-tests' collectives."""
    silent = {transport.name for transport in TRANSPORTS.values() if transport.moves_nothing}
    names = silent | {kernel.name for kernel in KERNELS.values() if kernel.nccl_test}
    constants = {
        (path.relative_to(PACKAGE).as_posix(), node.value)
        for path in modules_of_package()
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    }
    assert constants == set(NAMED)

"""The folders of the engine stand on floors: an include goes to the same folder or to a folder of a lower floor."""

from __future__ import annotations

import re
from pathlib import Path

from test_architecture import ROOT, tracked

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

"""What is computed of a folder, once for all hosts that have it in common.

Snapshots of like hosts share the folders that are equal (see sharing.py), and no folder changes after it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from fablint.snapshot.host_snapshot import Tree

_MOST = 4096  # folders of which a function remembers what it made
_Made = TypeVar("_Made")


def once_per_folder(function: Callable[[Tree], _Made]) -> Callable[[Tree], _Made]:
    """Remember what a function makes of a folder, by the folder's identity: to compare folders would take as long."""
    results: dict[int, tuple[Tree, _Made]] = {}

    @wraps(function)
    def made(folder: Tree) -> _Made:
        kept = results.get(id(folder))
        if kept is None or kept[0] is not folder:
            if len(results) >= _MOST:
                results.clear()
            kept = results[id(folder)] = folder, function(folder)  # the folder is kept: no other gets its identity
        return kept[1]

    return made

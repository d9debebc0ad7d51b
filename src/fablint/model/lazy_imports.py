"""Imports that do not wait for each other: names of a package on first use, modules while processes start.

A package that lists what its modules offer would otherwise import all of them, and what they import, for any one name.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    Parameters
    ----------
    package
        Its `__name__`.
    modules
        The module below it that has each name.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


def import_meanwhile(module: str) -> None:
    """Import a module in a thread of its own, while the caller waits for other processes.

    An import that fails is not reported here: the import statement that needs the module reports it.
    """

    def load() -> None:
        with suppress(ImportError):
            import_module(module)

    threading.Thread(target=load, name=f"import {module}", daemon=True).start()

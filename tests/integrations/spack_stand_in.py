"""Stand-in of Spack that executes a package file and records its directives; it concretizes and builds nothing.

Directives, their arguments and `when` are those of Spack 0.23: depends_on(spec, when=, type=), variant(name, default=,
description=), version(name), license(name). A name that Spack does not have is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

DEPENDENCY_TYPES = {"build", "link", "run", "test"}


@dataclass
class Recorded:
    """Directives of a package, and its class."""

    package: type = object
    depends_on: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)  # spec, when, types
    variants: dict[str, Any] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    licenses: list[str] = field(default_factory=list)


class Environment:
    """What setup_run_environment sets."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}

    def set(self, name: str, value: str) -> None:
        self.variables[name] = str(value)


class PythonPackage:
    """Base class of a package; `spec` has the MPI library that Spack would have chosen."""

    def __init__(self, mpicxx: str) -> None:
        self.spec = {"mpi": SimpleNamespace(mpicxx=mpicxx)}


def execute(path: Path) -> Recorded:
    """Execute a package file whose only import of Spack is `from spack.package import *`."""
    recorded = Recorded()
    conditions: list[str] = []

    @contextmanager
    def when(spec: str) -> Iterator[None]:
        conditions.append(spec)
        yield
        conditions.pop()

    def depends_on(spec: str, *, when: str = "", type: str | tuple[str, ...] = ("build", "link")) -> None:
        types = (type,) if isinstance(type, str) else type
        if not set(types) <= DEPENDENCY_TYPES:
            raise ValueError(f"depends_on({spec!r}): no such type: {types}")
        recorded.depends_on.append((spec, " ".join((*conditions, when)).strip(), types))

    def variant(name: str, *, default: bool, description: str) -> None:
        recorded.variants[name] = (default, description)

    module = ModuleType("spack.package")
    vars(module).update(
        PythonPackage=PythonPackage,
        depends_on=depends_on,
        variant=variant,
        version=recorded.versions.append,
        license=recorded.licenses.append,
        when=when,
    )
    namespace: dict[str, Any] = {"__name__": "fablint_package"}
    before = {name: sys.modules.get(name) for name in ("spack", "spack.package")}
    sys.modules.update({"spack": ModuleType("spack"), "spack.package": module})
    try:
        exec(compile(path.read_text(), path, "exec"), namespace)
    finally:
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old
    packages = (value for value in namespace.values() if isinstance(value, type) and value.__base__ is PythonPackage)
    recorded.package = next(packages)
    return recorded

"""Build hook: a wheel carries the engine without its tests, and the commit that it is made of (`fablint --version`)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_DESCRIBE = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
_NOT_OF_THE_ENGINE = "tests"  # folder of its sources


class PackageHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is not installed where mypy runs
    """Adds the engine's sources to a wheel, and `commit.txt` to a wheel and to an sdist, whose wheel takes it over."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files to add; an installation of a checkout needs none."""
        if version == "editable":
            return
        root, added = Path(self.root), build_data["force_include"]
        is_wheel = self.target_name == "wheel"
        if is_wheel:
            parts = (part for part in (root / "engine").iterdir() if part.name != _NOT_OF_THE_ENGINE)
            added |= {str(part): f"fablint/engine_sources/{part.name}" for part in parts}
        if commit := _commit(root):
            file = Path(self.directory) / "commit.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(commit)
            added[str(file)] = f"{'' if is_wheel else 'src/'}fablint/commit.txt"


def _commit(root: Path) -> str:
    """Return the commit of a checkout; '' elsewhere."""
    if not (root / ".git").exists():
        return ""
    return subprocess.run(_DESCRIBE, cwd=root, capture_output=True, text=True, check=False).stdout

"""Snapshots as hosts print them, and samples of /sys as files: what tests of several folders share."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"


def printed(document: object) -> str:
    """A document as machine.py prints it, behind what a host says by itself."""
    text = base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()
    lines = [f"fablint:{text[start : start + 400]}.\n" for start in range(0, len(text), 400)]
    return "Welcome to this cluster.\n" + "".join(lines)


def nested(files: Mapping[str, str]) -> dict[str, Any]:
    """Files by absolute path as a snapshot has them."""
    tree: dict[str, Any] = {}
    for path, text in files.items():
        *folders, name = path.strip("/").split("/")
        at = tree
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = text.rstrip("\n")
    return tree


def unfold(folder: Path, sample: str) -> Path:
    """A sample of a tree (`discover/sysroot/cxi-2rail-good`) as files below a folder."""
    for path, content in json.loads((FIXTURES / f"{sample}.json").read_text()).items():
        at = folder / path.removesuffix("/@link").lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/@link"):
            at.symlink_to(content.strip())
        else:
            at.write_text(content)
    return folder

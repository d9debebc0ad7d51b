"""`zarr.json` files: read with errors that name the file, replaced by rename so that a reader never sees a partial
file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fablint.errors import BrokenRunError
from fablint.system.written_files import replace_text

DAMAGED = "the file is damaged: restore it, or measure again"


def read_node(folder: Path, kind: str) -> dict[str, Any]:
    """Read the `zarr.json` of a group or an array.

    Raises
    ------
    BrokenRunError
        The file cannot be read, is not JSON, or describes something else.
    """
    path = folder / "zarr.json"
    try:
        node = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BrokenRunError(f"{path}: cannot be read ({error.strerror})", DAMAGED) from None
    except ValueError as error:
        raise BrokenRunError(f"{path}: is not JSON ({error})", DAMAGED) from None
    if not isinstance(node, dict) or node.get("zarr_format") != 3 or node.get("node_type") != kind:
        raise BrokenRunError(f"{path}: does not describe a Zarr v3 {kind}", DAMAGED)
    return node


def array_node(
    dtype: str, dimensions: Sequence[str], shape: Sequence[int], chunks: Sequence[int], fill: float | str
) -> dict[str, Any]:
    """Metadata of an array: uncompressed, little-endian numbers or texts (`string`), chunk files named `c.0.0`."""
    codec = {"name": "vlen-utf8"} if dtype == "string" else {"name": "bytes", "configuration": {"endian": "little"}}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN" if fill != fill else fill,
        "codecs": [codec],
        "attributes": {},
        "dimension_names": list(dimensions),
    }


def replace_node(folder: Path, node: Mapping[str, Any]) -> None:
    """Replace the metadata in `folder` in one step; on OSError the old metadata is kept."""
    replace_text(folder / "zarr.json", json.dumps(node, indent=1))


def change_attributes(folder: Path, **attributes: Any) -> None:
    """Replace attributes of a group in one step; on OSError the old ones are kept."""
    node = read_node(folder, "group")
    replace_node(folder, {**node, "attributes": {**node["attributes"], **attributes}})

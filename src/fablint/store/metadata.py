"""`zarr.json` files: read with errors that name the file, replaced by rename so that a reader never sees a partial
file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fablint.errors import BrokenRunError, UsageError
from fablint.model.facts.json_objects import Facts, document_of, facts_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import RunFacts
from fablint.store.layout import FORMAT, STATES
from fablint.system.written_files import replace_text

DAMAGED = "the file is damaged: restore it, or measure again"

ROOT_ATTRIBUTES: Mapping[str, type] = {"state": str, "rows": list, "ranks": int, "hosts": list, "rank_host": list}
ROW_ATTRIBUTES: Mapping[str, type] = {
    "kernel": str,
    "options": str,
    "layout": str,
    "state": str,
    "rounds": int,
    "repeats": int,
}


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


def read_run_facts(path: Path) -> RunFacts:
    """Read the facts of a run directory.

    Raises
    ------
    UsageError
        There is no run at `path`.
    BrokenRunError
        The run exists, but this program cannot read it.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such run", "name the directory that fablint measure or check wrote")
    if not (path / "zarr.json").is_file():
        raise UsageError(
            f"{path}: not a run directory (no zarr.json in it)", "name the directory that fablint measure wrote"
        )
    where = path / "zarr.json"
    attributes = _attributes(path)
    number = attributes.get("format")
    if not isinstance(number, int):
        raise BrokenRunError(f"{where}: no format number", "this Zarr group was not written by fablint")
    if number > FORMAT:
        raise BrokenRunError(f"{where}: format {number}, this fablint reads up to {FORMAT}", "upgrade fablint")
    _check(attributes, ROOT_ATTRIBUTES, where)
    hosts, places = attributes["hosts"], attributes["rank_host"]
    if len(places) != attributes["ranks"] or not all(type(p) is int and 0 <= p < len(hosts) for p in places):
        raise BrokenRunError(
            f"{where}: attribute rank_host does not give one of the hosts to each of the ranks", DAMAGED
        )
    return _facts_of(RunFacts, attributes, where)


def read_row_facts(folder: Path) -> RowFacts:
    """Read the facts of a row group.

    Raises
    ------
    BrokenRunError
        The file is damaged, or an attribute is missing or unknown.
    """
    where = folder / "zarr.json"
    attributes = _attributes(folder)
    _check(attributes, ROW_ATTRIBUTES, where)
    if attributes["layout"] not in ("matrix", "list"):
        raise BrokenRunError(f"{where}: layout '{attributes['layout']}' is unknown", DAMAGED)
    cells = attributes.get("cells_per_round")
    per_round = [cells] * attributes["rounds"] if isinstance(cells, int) else cells
    if not isinstance(per_round, list) or len(per_round) != attributes["rounds"]:
        raise BrokenRunError(f"{where}: attribute cells_per_round does not fit {attributes['rounds']} rounds", DAMAGED)
    return _facts_of(RowFacts, attributes, where)


def _attributes(folder: Path) -> dict[str, Any]:
    attributes = read_node(folder, "group").get("attributes")
    if not isinstance(attributes, dict):
        raise BrokenRunError(f"{folder / 'zarr.json'}: no attributes", DAMAGED)
    return attributes


def _facts_of(kind: type[Facts], attributes: Mapping[str, Any], where: Path) -> Facts:
    try:
        return facts_of(kind, attributes)
    except TypeError as error:
        raise BrokenRunError(f"{where}: {error}", DAMAGED) from None


def _check(attributes: Mapping[str, Any], types: Mapping[str, type], where: Path) -> None:
    for name, expected in types.items():
        if type(attributes.get(name)) is not expected:
            raise BrokenRunError(f"{where}: attribute {name} is missing or not of type {expected.__name__}", DAMAGED)
    if attributes["state"] not in STATES:
        raise BrokenRunError(f"{where}: state '{attributes['state']}' is unknown", DAMAGED)


def write_facts(folder: Path, facts: RunFacts | RowFacts) -> None:
    """Replace the facts of a run or a row in one step; on OSError the old ones are kept."""
    node = read_node(folder, "group") if (folder / "zarr.json").exists() else {"zarr_format": 3, "node_type": "group"}
    replace_node(folder, {**node, "attributes": document_of(facts)})


def array_node(
    dtype: str, dimensions: Sequence[str], shape: Sequence[int], chunks: Sequence[int], fill: float
) -> dict[str, Any]:
    """Metadata of an array: uncompressed, little-endian, chunk files named `c.0.0`."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN" if fill != fill else fill,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
        "dimension_names": list(dimensions),
    }


def replace_node(folder: Path, node: Mapping[str, Any]) -> None:
    """Replace the metadata in `folder` in one step; on OSError the old metadata is kept."""
    replace_text(folder / "zarr.json", json.dumps(node, indent=1))

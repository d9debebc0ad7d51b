"""Facts of runs and rows in a run directory, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fablint.errors import BrokenRunError, UsageError
from fablint.model.facts.json_objects import Facts, document_of, facts_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import NOT_COUNTED, PortCounters, RunFacts
from fablint.store.facts.columns import read_columns, read_nics, write_columns, write_nics
from fablint.store.facts.counter_tables import read_counters, write_counters
from fablint.store.layout import FORMAT, STATES, TABLES
from fablint.store.metadata import DAMAGED, read_node, replace_node

ROOT_ATTRIBUTES: Mapping[str, type] = {"state": str, "rows": list, "ranks": int, "hosts": list, "rank_host": list}
ROW_ATTRIBUTES: Mapping[str, type] = {
    "kernel": str,
    "options": str,
    "layout": str,
    "state": str,
    "rounds": int,
    "repeats": int,
}


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
    _add_tables(path, attributes)
    _check(attributes, ROOT_ATTRIBUTES, where)
    hosts, places = attributes["hosts"], attributes["rank_host"]
    if len(places) != attributes["ranks"] or not all(type(p) is int and 0 <= p < len(hosts) for p in places):
        raise BrokenRunError(
            f"{where}: attribute rank_host does not give one of the hosts to each of the ranks", DAMAGED
        )
    return _facts_of(RunFacts, attributes, where)


def read_row_facts(folder: Path, hosts: Sequence[str] | None = None) -> RowFacts:
    """Read the facts of a row group.

    Parameters
    ----------
    folder
        Folder of the row.
    hosts
        Hosts of the run; None: only the attributes are read, without what each rank or host has.

    Raises
    ------
    BrokenRunError
        The file is damaged, or an attribute is missing or unknown.
    """
    where = folder / "zarr.json"
    attributes = _attributes(folder)
    if hosts is not None:
        _add_tables(folder, attributes, hosts)
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


def _add_tables(group: Path, attributes: dict[str, Any], hosts: Sequence[str] | None = None) -> None:
    """Add the arrays of the group `tables` of a run, or of a row of a run on `hosts`, to the attributes."""
    tables = group / TABLES
    if not tables.is_dir():
        return
    read_columns(tables, attributes)
    of_run = attributes.get("hosts", ()) if hosts is None else hosts
    more = {"nics": read_nics(tables, of_run), "counters": read_counters(tables, of_run)}
    attributes.update({name: value for name, value in more.items() if value})


def write_run_facts(folder: Path, facts: RunFacts) -> None:
    """Replace the facts of a run: first the arrays, then the attributes in one step."""
    write_nics(folder / TABLES, facts)
    _write(folder, replace(facts, nics={}, counters=NOT_COUNTED), facts.counters, facts.hosts)


def write_row_facts(folder: Path, facts: RowFacts, hosts: Sequence[str]) -> None:
    """Replace the facts of a row of a run on `hosts`: first the arrays, then the attributes in one step."""
    bare = replace(facts, result=replace(facts.result, counters=NOT_COUNTED))
    _write(folder, bare, facts.result.counters, hosts)


def _write(folder: Path, facts: RunFacts | RowFacts, counters: PortCounters, hosts: Sequence[str]) -> None:
    attributes = {name: value for name, value in document_of(facts).items() if name not in ("nics", "counters")}
    write_counters(folder / TABLES, counters, hosts)
    attributes = write_columns(folder / TABLES, attributes)
    if (folder / TABLES).is_dir():
        replace_node(folder / TABLES, {"zarr_format": 3, "node_type": "group", "attributes": {}})
    node = read_node(folder, "group") if (folder / "zarr.json").exists() else {"zarr_format": 3, "node_type": "group"}
    replace_node(folder, {**node, "attributes": attributes})

"""The record of a check in its run directory, from which a check that was ended early is resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fablint.model import Finding, Note, Slots
from fablint.model.names import fold, unfold
from fablint.model.preflight_results import Outcome, Result, hosts_by_result
from fablint.workflows.check.exclusions import Exclusion
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.context import KeptLaunch, load_launch
from fablint.workflows.run_files import CHECK, errors_of, save_text


@dataclass(frozen=True)
class CheckRecord:
    """The request of a check, and the state of the check before the last launch."""

    request: CheckRequest
    slots: tuple[Slots, ...] = ()  # hosts of the run and their ranks, by the names in the request
    topology: str = ""  # text of a topology file; empty: none is known
    site: str = ""  # text of the site file
    findings: tuple[Finding, ...] = ()  # from before the measurement
    inside: tuple[Finding, ...] = ()  # between ranks of one host
    warnings: tuple[Result, ...] = ()  # of preflight: check, host, target, outcome and message count
    exclusions: Mapping[str, Exclusion] = field(default_factory=dict)  # by host: the level that it failed
    notes: tuple[Note, ...] = ()  # what the site file suppresses
    network: tuple[str, ...] = ()  # networks that preflight did not examine
    ended: bool = False  # it came to its verdict


@cache
def _adapter() -> TypeAdapter[CheckRecord]:
    return TypeAdapter(CheckRecord)


def save_check(check: CheckRecord, run: Path) -> None:
    """Write the record into a run directory. Raises IncompleteError where it cannot be written."""
    document = _adapter().dump_python(check, mode="json")
    document["warnings"] = [[*what, fold(hosts)] for what, hosts in hosts_by_result(check.warnings).items()]
    save_text(run / CHECK, json.dumps({"format": 1, **document}, indent=1))


def load_check(run: Path) -> CheckRecord | None:
    """Read the record of a run directory; None where it is not of a check by levels. Raises BrokenRunError."""
    path = run / CHECK
    if not path.exists():
        return None
    with errors_of(path, "a check that can be resumed", "run the check again"):
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        document["warnings"] = [result for entry in document["warnings"] for result in _warnings(*entry)]
        return _adapter().validate_python(document)


def kept_launch(run: Path) -> KeptLaunch:
    """Return what the user chose for the launches of a run: by the request of its check, else as first launched.

    A check may be killed before its first launch. Raises BrokenRunError where a record cannot be read.
    """
    launch, record = load_launch(run), load_check(run)
    if record is None:
        return launch
    return replace(launch, mpicxx=str(record.request.mpicxx or ""), launcher=record.request.launcher)


def _warnings(check: str, target: str, outcome: str, message: str, hosts: str) -> list[Result]:
    """Return the result of a check for each of the hosts."""
    return [Result(str(check), host, str(target), Outcome(outcome), str(message)) for host in unfold(hosts)]

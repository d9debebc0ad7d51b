"""What a run directory keeps of the check that writes it, so that a check that was ended early can go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from fablint.errors import BrokenRunError
from fablint.model import Slots
from fablint.model.preflight_results import Outcome, Result, alike
from fablint.text.names import fold, unfold
from fablint.workflows.run_files import CHECK as CHECK, keep_text

if TYPE_CHECKING:
    from fablint.model import Finding

Unfit = Literal["refuse", "exclude", "measure"]


@dataclass(frozen=True)
class KeptCheck:
    """What was asked for, and what was found before the last launch."""

    suite: str
    slots: Sequence[Slots] = ()  # hosts of the run and their ranks, by the names that were asked for
    unequal: bool = False
    ranks_per_nic: int | None = None
    budget_s: float | None = None
    unfit: Unfit = "refuse"
    nics: Sequence[str] = ()  # that the user says are the fabric's
    topology: str = ""  # text of a topology file; empty: none is known
    site: str = ""  # text of the site file
    findings: Sequence[Finding] = ()  # of what was known before anything was measured
    inside: Sequence[Finding] = ()  # between ranks of one host
    failed: Mapping[str, str] = field(default_factory=dict)  # by host: the level that it failed
    warnings: Sequence[Result] = ()  # of preflight: check, host, target, outcome and message count
    notes: Sequence[str] = ()  # what the site file suppresses
    network: Sequence[str] = ()  # what of the network preflight did not look at
    ended: bool = False  # it came to its verdict


def keep_check(check: KeptCheck, run: Path) -> None:
    """Write it into a run directory in one step. IncompleteError where it cannot be written."""
    document = {
        **vars(check),
        "format": 1,
        "slots": [[slot.host, slot.ranks] for slot in check.slots],
        "findings": [one.model_dump(mode="json") for one in check.findings],
        "inside": [one.model_dump(mode="json") for one in check.inside],
        "failed": dict(check.failed),
        "nics": list(check.nics),
        "warnings": [[*what, fold(hosts)] for what, hosts in alike(check.warnings).items()],
        "notes": list(check.notes),
        "network": list(check.network),
    }
    keep_text(run / CHECK, json.dumps(document, indent=1))


def load_check(run: Path) -> KeptCheck | None:
    """The check of a run directory; None where it is of no check by levels. BrokenRunError where it is damaged."""
    path = run / CHECK
    if not path.exists():
        return None
    try:
        return _understood(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BrokenRunError(f"{path}: cannot be read ({error.strerror})", "restore it, or measure again") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BrokenRunError(f"{path}: is no check that can go on", "run the check again") from None


def _understood(document: dict[str, Any]) -> KeptCheck:
    """Raises ValueError, KeyError or TypeError where it is no such document."""
    from fablint.model import Finding

    if document["unfit"] not in get_args(Unfit):
        raise ValueError(document["unfit"])
    budget, each = document["budget_s"], document["ranks_per_nic"]
    return KeptCheck(
        suite=str(document["suite"]),
        slots=tuple(Slots(str(host), int(ranks)) for host, ranks in document["slots"]),
        unequal=bool(document["unequal"]),
        ranks_per_nic=None if each is None else int(each),
        budget_s=None if budget is None else float(budget),
        unfit=document["unfit"],
        nics=[str(nic) for nic in document["nics"]],
        topology=str(document["topology"]),
        site=str(document["site"]),
        findings=[Finding.model_validate(one) for one in document["findings"]],
        inside=[Finding.model_validate(one) for one in document["inside"]],
        failed={str(host): str(level) for host, level in document["failed"].items()},
        warnings=[one for entry in document["warnings"] for one in _warnings(*entry)],
        notes=[str(note) for note in document["notes"]],
        network=[str(one) for one in document["network"]],
        ended=bool(document["ended"]),
    )


def _warnings(check: str, target: str, outcome: str, message: str, hosts: str) -> list[Result]:
    """The same of each host."""
    return [Result(str(check), host, str(target), Outcome(outcome), str(message)) for host in unfold(hosts)]

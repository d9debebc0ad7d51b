"""The record of a check in its run directory, from which a check that was ended early is resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from fablint.errors import BrokenRunError
from fablint.model import Medium, Slots
from fablint.model.names import fold, unfold
from fablint.model.preflight_results import Outcome, Result, hosts_by_result
from fablint.workflows.run_files import CHECK, save_text

if TYPE_CHECKING:
    from fablint.model import Finding
    from fablint.workflows.check.exclusions import Exclusion

UnfitPolicy = Literal["refuse", "exclude", "measure"]


@dataclass(frozen=True)
class CheckRecord:
    """The request of a check, and its state before the last launch."""

    suite: str
    slots: Sequence[Slots] = ()  # hosts of the run and their ranks, by the names in the request
    unequal: bool = False
    ranks_per_nic: int | None = None
    budget_s: float | None = None
    unfit: UnfitPolicy = "refuse"
    media: tuple[Medium, ...] = (Medium(),)
    nics: Sequence[str] = ()  # that the user names as those of the fabric
    topology: str = ""  # text of a topology file; empty: none is known
    site: str = ""  # text of the site file
    findings: Sequence[Finding] = ()  # from before the measurement
    inside: Sequence[Finding] = ()  # between ranks of one host
    warnings: Sequence[Result] = ()  # of preflight: check, host, target, outcome and message count
    exclusions: Mapping[str, Exclusion] = field(default_factory=dict)  # by host: the level that it failed
    notes: Sequence[str] = ()  # what the site file suppresses
    network: Sequence[str] = ()  # networks that preflight did not examine
    ended: bool = False  # it came to its verdict


def save_check(check: CheckRecord, run: Path) -> None:
    """Write the record into a run directory. Raises IncompleteError where it cannot be written."""
    document = {
        **vars(check),
        "format": 1,
        "slots": [[slot.host, slot.ranks] for slot in check.slots],
        "findings": [one.model_dump(mode="json") for one in check.findings],
        "inside": [one.model_dump(mode="json") for one in check.inside],
        "exclusions": {host: exclusion.facts() for host, exclusion in check.exclusions.items()},
        "media": [vars(medium) for medium in check.media],
        "nics": list(check.nics),
        "warnings": [[*what, fold(hosts)] for what, hosts in hosts_by_result(check.warnings).items()],
        "notes": list(check.notes),
        "network": list(check.network),
    }
    save_text(run / CHECK, json.dumps(document, indent=1))


def load_check(run: Path) -> CheckRecord | None:
    """Read the record of a run directory; None where it is not of a check by levels. Raises BrokenRunError."""
    path = run / CHECK
    if not path.exists():
        return None
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BrokenRunError(f"{path}: cannot be read ({error.strerror})", "restore it, or measure again") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BrokenRunError(f"{path}: is not a check that can be resumed", "run the check again") from None


def _parsed(document: dict[str, Any]) -> CheckRecord:
    """Raises ValueError, KeyError or TypeError where the document is not a record."""
    from fablint.model import Finding
    from fablint.workflows.check.exclusions import Exclusion

    if document["unfit"] not in get_args(UnfitPolicy):
        raise ValueError(document["unfit"])
    budget, each = document["budget_s"], document["ranks_per_nic"]
    return CheckRecord(
        suite=str(document["suite"]),
        slots=tuple(Slots(str(host), int(ranks)) for host, ranks in document["slots"]),
        unequal=bool(document["unequal"]),
        ranks_per_nic=None if each is None else int(each),
        budget_s=None if budget is None else float(budget),
        unfit=document["unfit"],
        media=tuple(Medium(**medium) for medium in document["media"]),
        nics=[str(nic) for nic in document["nics"]],
        topology=str(document["topology"]),
        site=str(document["site"]),
        findings=[Finding.model_validate(one) for one in document["findings"]],
        inside=[Finding.model_validate(one) for one in document["inside"]],
        exclusions={str(host): Exclusion.parsed(facts) for host, facts in document["exclusions"].items()},
        warnings=[one for entry in document["warnings"] for one in _warnings(*entry)],
        notes=[str(note) for note in document["notes"]],
        network=[str(one) for one in document["network"]],
        ended=bool(document["ended"]),
    )


def _warnings(check: str, target: str, outcome: str, message: str, hosts: str) -> list[Result]:
    """The same of each host."""
    return [Result(str(check), host, str(target), Outcome(outcome), str(message)) for host in unfold(hosts)]

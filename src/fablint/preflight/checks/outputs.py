"""What programs printed, before it is understood: why there is nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.base import Check
from fablint.snapshot import Output
from fablint.text.sanitise import shortened

HUNG = "no answer in time"
_TOO_LONG = "it printed more than "
_ROOT = re.compile(r"root|permission|permitted|privileg|denied", re.IGNORECASE)


def was_ended(why: str) -> bool:
    """Was a program started, and ended before it had printed all?"""
    return why == HUNG or why.startswith(_TOO_LONG)


def instead_of(check: Check, host: str, target: str, said: Output) -> Result | None:
    """The result where a program printed nothing to understand; None where it did.

    That it is not installed, or wants root, is no fault. That it was started and gave no answer is never a pass.
    """
    if said.text.strip():
        return None
    why = shortened(said.error)
    if not said.ran:
        ended = was_ended(said.error)
        return check.unclear(host, target, why) if ended else check.skipped(host, target, why or "there is no output")
    if said.status and _ROOT.search(said.error):
        return check.skipped(host, target, why)
    return check.unclear(host, target, f"it printed nothing{f', but {why}' if why else ''}")


def without_answer(said: Output) -> str:
    """Why a program gave nothing to understand: `not installed`, its first line on stderr, what it printed."""
    return shortened(said.error or (said.text if said.status else "")) or "it does not report it"


def with_reasons(results: Iterable[Result], absent: str, reasons: Mapping[str, str]) -> Iterator[Result]:
    """Results of which those that say `absent` say why, by host; that there was no answer in time is no skip."""
    for one in results:
        why = reasons.get(one.host, "") if one.message == absent else ""
        if why.endswith(HUNG):
            yield one._replace(outcome=Outcome.ERROR, message=why)
        else:
            yield one._replace(message=why) if why else one

"""What programs printed, before it is understood: why there is nothing."""

from __future__ import annotations

import re

from fablint.fitness import Result
from fablint.preflight.check import Check
from fablint.preflight.wording import shortened
from fablint.snapshot import Output

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
        return check.unclear(host, target, why) if was_ended(said.error) else check.skipped(host, target, why)
    if said.status and _ROOT.search(said.error):
        return check.skipped(host, target, why)
    return check.unclear(host, target, f"it printed nothing{f', but {why}' if why else ''}")

"""Results for programs without usable output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.base import Check
from fablint.snapshot import Output
from fablint.text.sanitise import shortened

TIMED_OUT = "no answer in time"
_TOO_LONG = "it printed more than "
_ROOT = re.compile(r"root|permission|permitted|privileg|denied", re.IGNORECASE)


def was_ended(why: str) -> bool:
    """Tell whether a program was ended before it had printed everything."""
    return why == TIMED_OUT or why.startswith(_TOO_LONG)


def instead_of(check: Check, host: str, target: str, said: Output) -> Result | None:
    """Return the result for a program without output; None if there is output.

    A program that is not installed or needs root is skipped. A program that ran without an answer is an error.
    """
    if said.text.strip():
        return None
    why = shortened(said.error)
    if not said.ran:
        ended = was_ended(said.error)
        return check.error(host, target, why) if ended else check.skip(host, target, why or "no output")
    if said.status and _ROOT.search(said.error):
        return check.skip(host, target, why)
    return check.error(host, target, f"no output{f': {why}' if why else ''}")


def without_answer(said: Output) -> str:
    """Return why a program has no usable output: `not installed`, its first line on stderr, or its output."""
    return shortened(said.error or (said.text if said.status else "")) or "not reported"


def with_reasons(results: Iterable[Result], absent: str, reasons: Mapping[str, str]) -> Iterator[Result]:
    """Replace the message `absent` by the reason of the host; a timeout becomes an error instead of a skip."""
    for one in results:
        why = reasons.get(one.host, "") if one.message == absent else ""
        if why.endswith(TIMED_OUT):
            yield one._replace(outcome=Outcome.ERROR, message=why)
        else:
            yield one._replace(message=why) if why else one

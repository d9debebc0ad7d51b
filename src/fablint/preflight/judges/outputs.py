"""Results of programs without usable output, and reasons for a skip that several checks have."""

from __future__ import annotations

from typing import Any

from fablint.model.preflight_results import Result
from fablint.preflight.check import UNREADABLE, Check, was_ended
from fablint.preflight.host import Host
from fablint.snapshot import Output
from fablint.snapshot.parsers.documents import is_cut_off
from fablint.snapshot.parsers.inet import Listed
from fablint.text.sanitise import shortened

_ROOT = ("root", "permission", "permitted", "privileg", "denied")

NO_INTERFACE = "no network interface of the fabric"
NO_PCI_DEVICE = "no fabric device on PCI Express"
NO_RDMA_DEVICE = "no RDMA device"
NO_SLINGSHOT_NIC = "no Slingshot NIC"
TOO_FEW = "too few similar hosts to compare with"
LEAST_SIMILAR = 3  # hosts, for a comparison with their median


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
    if said.status and any(word in said.error.lower() for word in _ROOT):
        return check.skip(host, target, why)
    return check.error(host, target, f"no output{f': {why}' if why else ''}")


def without_answer(said: Output) -> str:
    """Return why a program has no usable output: `not installed`, its first line on stderr, or its output.

    The reason for an output with a beginning of JSON or XML and without its end is UNREADABLE.
    """
    return shortened(said.error or (said.text if said.status else "")) or (
        UNREADABLE if is_cut_off(said.text) else "not reported"
    )


def unseen(check: Check, host: Host, output: Listed[Any]) -> Result:
    """Return the result of a check whose output of `ip` is missing: an error if it is malformed, else a skip."""
    make = check.error if output.garbled else check.skip
    return make(host.name, "", output.missing)

"""A rank that stalled or died, as the engine reports it and as a run directory has it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SILENCE = re.compile(r"failed \((no message for|did not come to the next round for) \d+ s\)")


@dataclass(frozen=True)
class FailedRank:
    """A rank that stalled or died; None if not known. An entry of the run's attribute `lost`."""

    rank: int | None
    host: str | None
    round: int | None
    partner: int | None
    reason: str

    def is_other_end(self, other: FailedRank) -> bool:
        """Tell whether this rank and another one were reported by each other."""
        return self.partner is not None and (self.rank, self.partner) == (other.partner, other.rank)

    def __str__(self) -> str:
        return f"{self.place} {self.reason}{self._when}"

    @property
    def place(self) -> str:
        """Rank and host: `rank 2 on n003`."""
        rank = "a rank" if self.rank is None else f"rank {self.rank}"
        return f"{rank} on {self.host}" if self.host else rank

    @property
    def _when(self) -> str:
        return f" in round {self.round}" if self.round is not None else ""

    @property
    def cause(self) -> str:
        """Return what the rank that reports this one knows beside its own wait: `no TCP connection to ...`; '' if
        nothing.
        """
        is_silence = _SILENCE.fullmatch(self.reason) or not self.reason.startswith("failed (")
        return "" if is_silence else self.reason.removeprefix("failed (").removesuffix(")")

    def with_other_end(self, other: FailedRank) -> str:
        """Text of two reports by the two ends of a pair, of which one is cut off."""
        causes = [
            f"{reporter.host or reporter.place}: {report.cause}"
            for report, reporter in ((self, other), (other, self))
            if report.cause
        ]
        reasons = f" ({'; '.join(causes)})" if causes else ""
        return (
            f"{self.place} and {other.place} received nothing from each other{self._when}{reasons}:"
            f" {_what_failed(self.host, other.host)}"
        )

    def with_reporter(self, reporter: int, host: str) -> str:
        """Text of a single report that this rank does not answer, of which either end may be the cause."""
        why = self.reason.removeprefix("failed (").removesuffix(")")
        unanswered = f"rank {reporter} on {host} received nothing from {self.place}{self._when} ({why})"
        return f"{unanswered}: {_what_failed(self.host, host)}"


def _what_failed(host: str | None, other: str | None) -> str:
    """Return what is known to have failed where two ranks did not reach each other."""
    if host and host == other:
        return "one of the two ranks failed"
    return "one of the two hosts, or the path between them, failed"

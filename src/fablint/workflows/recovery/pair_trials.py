"""Trials of two hosts: do they exchange small and large messages, over the transports of the check?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fablint.errors import IncompleteError, StoppedError, UsageError
from fablint.model import Medium, RowSpec, Run, Slots
from fablint.model.facts.failed_rank import FailedRank
from fablint.workflows import measurement
from fablint.workflows.context import Context

WATCHDOG_S = 10.0
SMALL, LARGE = 8, 64 << 10  # bytes: a frame; more than a frame of any MTU
_ROWS = (
    RowSpec("latency", sizes=(SMALL,), samples=5),
    RowSpec("bandwidth", sizes=(LARGE,), window=2, warmup=(0, 0), samples=1),
)


_OF_ACCEPTING_END = re.compile(r"no TCP connection from the rank within \d+ s")


@dataclass(frozen=True)
class StallCause:
    """What a rank that waits knows of its peer, such as a connection that it requests in vain."""

    text: str
    host: str = ""  # of this rank


@dataclass(frozen=True)
class TrialFailure:
    """How a trial failed."""

    transport: str = ""  # over which messages stalled; empty: the launch ended before
    size: int = 0  # of these messages, bytes
    cause: StallCause | None = None
    control: str = ""  # MPI or TCP, if control messages arrived, and those of another transport did not


@dataclass(frozen=True)
class PairTrials:
    """Launches of two hosts. Over MPI first: if MPI fails, the other transports are not the cause."""

    context: Context
    media: Sequence[Medium] = (Medium(),)

    def failure(self, item: str, other: str) -> TrialFailure | None:
        """Launch a rank on each of two hosts, rank 0 on the first, or two on one host; None if all messages arrive."""
        from fablint.plan import plan_of
        from fablint.plan.rows.side_by_side import over_media

        media = sorted(self.media, key=lambda medium: medium.transport != "mpi")
        rows = [row for medium in media for row in over_media(_ROWS, [medium])]
        slots = (Slots(item, 1), Slots(other, 1)) if item != other else (Slots(item, 2),)
        plan = replace(plan_of(rows, 2), slots=slots)
        system, context = self.context.system, replace(self.context, is_scratch=True)
        with system.temporary_folder(system.home_folder("scratch")) as folder:
            try:
                options = ["--watchdog", f"{WATCHDOG_S:g}"]
                measured = measurement.measure(context, plan, folder / "trial.run", options)
            except StoppedError:
                raise
            except (IncompleteError, UsageError) as error:
                return TrialFailure(cause=StallCause(error.message))
            if not measured.error and measured.run.state == "complete":
                return None
            return _stall(measured.run)


def _stall(run: Run) -> TrialFailure:
    """Return which messages of a trial did not arrive, and why."""
    entries, hosts = run.facts.lost, run.rank_host
    reporters = ["" if entry.partner is None else hosts[entry.partner] for entry in entries]
    cause = cause_of(zip(entries, reporters, strict=True))
    row = next((row for row in run.rows if row.facts.state != "complete"), None)
    if row is None:
        return TrialFailure(cause=cause)
    transport = row.medium.transport
    has_begun = transport != "mpi" and any(reporters)  # after a barrier, which control messages make
    control = ("MPI" if run.facts.launch.mpi else "TCP") if has_begun else ""
    return TrialFailure(transport, int(row.sizes[-1]), cause, control)


def cause_of(reports: Iterable[tuple[FailedRank, str]]) -> StallCause | None:
    """Return the cause in reports of failed ranks, each with the host of the rank that reports; None if all report
    silence.

    The rank that requests a connection knows why there is none. The rank that accepts it knows the time only, and may
    report first.
    """
    causes = [StallCause(entry.cause, host) for entry, host in reports]
    named_causes = [cause for cause in causes if cause.text]
    return next(
        (cause for cause in named_causes if not _OF_ACCEPTING_END.fullmatch(cause.text)), next(iter(named_causes), None)
    )

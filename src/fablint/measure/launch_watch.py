"""State of a launch: the messages of the engine and the output of the launcher so far."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fablint.measure import engine_messages
from fablint.measure.engine_messages import (
    EndMessage,
    ErrorMessage,
    RequestEnd,
    RoundMessage,
    SizeMessage,
    StalledRank,
    UnconnectedHost,
    WaitingRank,
)
from fablint.measure.launcher_reasons import is_without_daemon, launcher_reason
from fablint.measure.launchers.launcher import Death, Mpiexec
from fablint.measure.launchers.rendezvous import IN_USE, MISSING, Joining
from fablint.measure.progress import Progress
from fablint.model.facts.failed_rank import FailedRank

_MOST_NAMED = 8  # ranks named in a message
_LAST_LINES = 200  # of output that is not the engine's
_DISCONNECTED = re.compile(rf"\d+ ranks? of \d+ (was|were) started|{IN_USE}")
_ABORTED = re.compile(r"Primary job +terminated normally, but \d+ process")  # mpirun of Open MPI may wait without end
_OUTSIDE = re.compile(r"srun: error: .*(Requested node configuration is not available|Invalid node name)")
_WITHOUT_ERROR = (0, 1)  # status of the engine
_KILLED = "(Killed)"  # in the reason of a death: the rank itself prints nothing


@dataclass
class Watch:
    """Messages of a launch so far."""

    rows: Sequence[int]  # number of rounds of every row
    ranks: int
    on_size: Callable[[], None] | None = None  # called when another size is in the run directory
    is_served: bool = False  # the ranks stay after the plan
    errors: list[str] = field(default_factory=list)
    reported: list[FailedRank] = field(default_factory=list)
    stalled: list[StalledRank] = field(default_factory=list)
    launcher_output: list[str] = field(default_factory=list)  # lines that are not the engine's
    unconnected: list[UnconnectedHost] = field(default_factory=list)
    joining: Joining = field(default_factory=Joining)
    started: bool = False
    start_s: float = 0.0  # duration of the start of the ranks
    ended: int | None = None  # the engine's exit status, once it writes nothing more
    request_end: int | None = None  # status of a request of --serve that is done
    is_written: bool = False  # the engine reported that all it measured is in the run
    rows_begun: list[str] = field(default_factory=list)
    size: SizeMessage | None = None  # the last one, of a row that is written by size

    def deaths(self, mpiexec: Mpiexec) -> list[Death]:
        return mpiexec.kind.deaths(self.launcher_output)

    def take(self, line: str, progress: Progress, now: float) -> None:
        """Process one line of the engine's output, read at `now`, in seconds of the monotonic clock."""
        message = engine_messages.parse(line)
        self.started |= message is not None and not isinstance(message, WaitingRank | UnconnectedHost)
        match message:
            case WaitingRank() | UnconnectedHost():
                self._wait(message, now)
            case RoundMessage() as begun:
                self._round(begun, progress)
            case SizeMessage():
                self.size = message
                if self.on_size:
                    self.on_size()
                self.show(progress)
            case FailedRank() as failed:
                self.reported.append(failed)
            case StalledRank() as stalled:
                self.stalled.append(stalled)
            case RequestEnd() | EndMessage():
                self._end(message)
            case ErrorMessage(text):
                self.errors.append(text)
            case None if line.strip():
                self.launcher_output.append(line)
                del self.launcher_output[:-_LAST_LINES]
            case _:
                pass

    def show(self, progress: Progress) -> None:
        """Show how many sizes are measured, also while one takes long."""
        if self.size:
            progress.step(f"{self.size.row}, sizes", self.size.size, self.size.of)

    def failed_ranks(self) -> tuple[FailedRank, ...]:
        """Failed ranks, the rank with the most reports first, without reports by ranks that are reported themselves.

        A rank that was disconnected also reports others. Two ranks that only report each other are both returned:
        either of them, or the path between them, has failed.
        """
        voices = Counter(report.rank for report in self.reported)
        credible: list[FailedRank] = []
        for report in sorted(self.reported, key=lambda report: -voices[report.rank]):
            named = {entry.rank for entry in credible}
            is_pair = any(report.is_other_end(entry) for entry in credible) and voices[report.partner] == 1
            if report.partner is None or report.partner not in named or is_pair:
                credible.append(report)
        return tuple(credible) or tuple(filter(None, [self.silent_rank()]))

    def status(self) -> int | None:
        """Exit status of the plan, as the engine reports it; None where it does not.

        Ranks that stay and end without an error have not measured a plan of which they did not report the end.
        """
        is_unmeasured = self.is_served and self.ended in _WITHOUT_ERROR
        return self.ended if self.request_end is None and not is_unmeasured else self.request_end

    def launcher_message(self, deaths: Sequence[Death] = ()) -> str:
        """Return why the ranks did not start, by the output of the launcher and its `deaths`; '' if there is no
        output.
        """
        killed = [death for death in deaths[:1] if _KILLED in death.reason]
        report = "".join(str(FailedRank(death.rank, death.host, None, None, death.reason)) for death in killed)
        reason = launcher_reason(self.launcher_output, report)
        return f"{reason} (are all hosts in this Slurm job?)" if _OUTSIDE.search(reason) else reason

    def absence(self) -> str:
        """Return why the ranks have not started so far, as the ranks and the launcher report it."""
        unconnected = [f"{report.host}: {report.reason}" for report in self.unconnected[:_MOST_NAMED]]
        reports = filter(None, (self.joining.missing, *unconnected, self.launcher_message()))
        return "; ".join(reports) or "no message from the launcher"

    def has_unreachable_host(self) -> bool:
        """Tell whether the launcher waits for a host on which its daemon does not start, as where ssh does not reach
        it.
        """
        return not self.started and is_without_daemon(self.launcher_output)

    def is_aborted(self) -> bool:
        """Tell whether the launcher has reported, before all ranks had started, that it ends them because one ended."""
        return not self.started and any(map(_ABORTED.match, self.launcher_output))

    def is_disconnected(self) -> bool:
        """Tell whether the ranks did not connect, although the list of hosts is right."""
        has_no_connection = any(map(_DISCONNECTED.match, self.errors))
        return has_no_connection or (not self.started and not any(map(_OUTSIDE.search, self.launcher_output)))

    def has_connected(self) -> bool:
        """Tell whether the ranks connected: messages of the engine are about more than ranks that are missing."""
        return self.started and not any(_DISCONNECTED.match(error) or MISSING.match(error) for error in self.errors)

    def silent_rank(self) -> FailedRank | None:
        """Rank that stalled in a group of more than two: the rank that did not report that it waits."""
        if not self.stalled:
            return None
        candidates = sorted(set(range(self.ranks)) - {report.rank for report in self.stalled})
        first = self.stalled[0]
        if len(candidates) == 1:
            return FailedRank(candidates[0], None, first.round, None, f"failed ({first.reason})")
        names = ", ".join(map(str, candidates[:_MOST_NAMED])) + (", ..." if len(candidates) > _MOST_NAMED else "")
        return FailedRank(None, None, first.round, None, f"among {names or 'all'} failed ({first.reason})")

    def _wait(self, message: WaitingRank | UnconnectedHost, now: float) -> None:
        """Keep what a rank waits for while the ranks start."""
        if isinstance(message, WaitingRank):
            self.joining.take(message, now)
        else:
            self.unconnected.append(message)

    def _end(self, message: RequestEnd | EndMessage) -> None:
        """Note that a request, or the launch, has measured what it could."""
        self.is_written = message.is_written
        if isinstance(message, RequestEnd):
            self.request_end = message.status
        else:
            self.ended = message.status

    def _round(self, begun: RoundMessage, progress: Progress) -> None:
        if begun.row not in self.rows_begun:
            self.rows_begun.append(begun.row)
        if self.size and self.size.row == begun.row:
            return  # the only round of the row, which ends early where the run is stopped
        number, count = len(self.rows_begun), len(self.rows)
        # a retest is not part of the plan
        which = f"row {number} of {count}, {begun.row}" if number <= count > 1 else begun.row
        progress.step(which, begun.round, begun.of, begun.left_s)

"""What was seen of a launch so far: the engine's messages, and what the launcher says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fablint.measure import engine_messages
from fablint.measure.engine_messages import Ended, Failed, Lost, RoundBegun, Started, Stuck
from fablint.measure.launchers.launcher import Death, Mpiexec
from fablint.measure.progress import Progress

_SILENT_SHOWN = 8  # ranks named in a message
_LAST_LINES = 200  # of what others than the engine print
_APART = re.compile(r"\d+ ranks? of \d+ (was|were) started")
_UNREACHED = re.compile(r"ssh: (Could not resolve|connect to host) |ORTE has lost communication with a remote daemon")
_OUTSIDE = re.compile(r"srun: error: .*(Requested node configuration is not available|Invalid node name)")
# What says more than the first line of a launcher.
_TELLING = re.compile(
    r"srun: error: (?!.*: tasks? [\d,-]+: )|not built with SLURM's PMI|ssh: |connect\(\) to \S+ failed"
)


@dataclass
class Watch:
    """What was seen so far."""

    rows: Sequence[int]  # rounds of every row
    ranks: int
    errors: list[str] = field(default_factory=list)
    accused: list[Lost] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # lines that are not the engine's
    started: bool = False
    start_s: float = 0.0  # that the ranks took to start
    ended: int | None = None  # the engine's exit status, once the run is written
    rows_begun: list[str] = field(default_factory=list)

    def deaths(self, mpiexec: Mpiexec) -> list[Death]:
        return mpiexec.kind.deaths(self.others)

    def take(self, line: str, progress: Progress) -> None:
        message = engine_messages.parse(line)
        self.started |= message is not None
        match message:
            case Started():
                pass
            case RoundBegun() as begun:
                self._round(begun, progress)
            case Lost() as lost:
                self.accused.append(lost)
            case Stuck() as stuck:
                self.stuck.append(stuck)
            case Ended(status):
                self.ended = status
            case Failed(text):
                self.errors.append(text)
            case None if line.strip():
                self.others.append(line)
                del self.others[:-_LAST_LINES]
            case _:
                pass

    def lost(self) -> tuple[Lost, ...]:
        """Who is accused, the rank with the most accusers first; but not by those who are accused themselves.

        A rank that was cut off accuses as well, and so does one that hung when it is woken to be ended.
        """
        voices = Counter(one.rank for one in self.accused)
        kept: list[Lost] = []
        for one in sorted(self.accused, key=lambda one: -voices[one.rank]):
            if one.partner is None or one.partner not in {other.rank for other in kept}:
                kept.append(one)
        return tuple(kept) or tuple(filter(None, [self.silent()]))

    def said(self) -> str:
        """The launcher's most telling line, else its first that is neither a ruler nor blank; empty where none is."""
        lines = [line.strip() for line in self.others if any(letter.isalpha() for letter in line)]
        said = next(filter(_TELLING.search, lines), lines[0] if lines else "")
        return f"{said} (are all hosts in this Slurm job?)" if _OUTSIDE.search(said) else said

    def unreached(self) -> bool:
        """Does the launcher wait for a host that ssh does not reach?"""
        return not self.started and any(map(_UNREACHED.match, self.others))

    def apart(self) -> bool:
        """Did the ranks not find each other, although their hosts are right?"""
        alone = any(map(_APART.match, self.errors))
        return alone or (not self.started and not any(map(_OUTSIDE.search, self.others)))

    def silent(self) -> Lost | None:
        """The rank that hangs in a group of many: the one that did not say that it waits."""
        if not self.stuck:
            return None
        silent = sorted(set(range(self.ranks)) - {one.rank for one in self.stuck})
        first = self.stuck[0]
        if len(silent) == 1:
            return Lost(silent[0], None, first.round, None, f"was lost ({first.reason})")
        shown = ", ".join(map(str, silent[:_SILENT_SHOWN])) + (", ..." if len(silent) > _SILENT_SHOWN else "")
        return Lost(None, None, first.round, None, f"among {shown or 'all'} was lost ({first.reason})")

    def _round(self, begun: RoundBegun, progress: Progress) -> None:
        if begun.row not in self.rows_begun:
            self.rows_begun.append(begun.row)
        number, of = len(self.rows_begun), len(self.rows)
        which = f"row {number} of {of}, {begun.row}" if number <= of > 1 else begun.row  # a retest is in no plan
        progress.step(which, begun.round, begun.of, begun.left_s)

"""A launch of the engine that stays for further plans: `fablint-engine --serve`, docs/reference/engine.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fablint.errors import UsageError
from fablint.measure.launchers.launcher import Death, Launch
from fablint.model import Plan

_OF_LAUNCH = ("--threads",)  # run options that a request cannot have
_LAST = "end\n"
HELD = "fablint: the run is complete, but the ranks do not end by themselves: they are terminated"
END_S = 5.0  # until all ranks have ended: ranks of some MPI libraries stay in MPI_Finalize
_POLL_S = 0.05

StartOfRanks = Callable[[Plan, Sequence[str]], Launch]  # of the ranks of a plan, with options of the engine


@dataclass(frozen=True)
class LaunchSetup:
    """What two plans must have in common to be measured by the same launch."""

    launcher: Path
    engine: Path
    environ: Mapping[str, str]
    words: tuple[str, ...]  # options of the engine that a request cannot have

    @classmethod
    def of(cls, launcher: Path, engine: Path, environ: Mapping[str, str], words: Sequence[str]) -> LaunchSetup:
        """Return the setup of a plan that is measured with these run options."""
        return cls(launcher, engine, environ, tuple(word for word in words if word in _OF_LAUNCH))


@dataclass
class ServedLaunch:
    """The launch of a check: its ranks measure one plan after the other. There is at most one at a time.

    Attributes
    ----------
    fewest_each
        Number of ranks on each host that its plans need; a plan may need fewer.
    early_s
        Seconds from the start of the ranks to their first plan, of all launches that measured one.
    """

    fewest_each: int = 1
    early_s: float = field(default=0.0, init=False)
    _setup: LaunchSetup | None = field(default=None, init=False)
    _process: Launch | None = field(default=None, init=False)
    _launched: Plan = field(default=Plan(0, ()), init=False)
    _members: Sequence[int] | None = field(default=None, init=False)  # ranks of the last plan; None: all
    _begun: float | None = field(default=None, init=False)  # time of the start; None: a plan has followed

    def begin(self, setup: LaunchSetup, plan: Plan, start: StartOfRanks) -> None:
        """Start the ranks of a plan; what they are to measure follows."""
        self._launched, self._setup, self._begun = self.widened(plan), setup, time.monotonic()
        self._process = start(self._launched, ["--serve", *setup.words])

    def measure(
        self, setup: LaunchSetup, plan: Plan, request: Callable[[Sequence[str]], str], start: StartOfRanks
    ) -> tuple[Launch, bool]:
        """Give a plan to the ranks that wait.

        A launch that has failed since its last request is not replaced: its output says which host it was.

        Parameters
        ----------
        setup
            Of the plan.
        plan
            What is to be measured.
        request
            Makes the request with further run options of the engine.
        start
            Launches other ranks. It is called where the ranks that wait do not suit.

        Returns
        -------
        tuple
            The launch, and whether the plan is its first one.
        """
        if self._begun is not None and _hosts(plan) != _hosts(self._launched):
            self.kill()  # a host that is excluded since may keep the others from starting
        suits = self._process is not None and self._process.poll() != 0 and self._setup == setup
        members = members_of(plan, self._launched) if suits else None
        if members is None:
            self.close()
            self.begin(setup, plan, start)
            members = members_of(plan, self._launched)
        assert members is not None
        assert self._process is not None
        is_first = self._begun is not None
        if self._begun is not None:
            self.early_s += time.monotonic() - self._begun
            self._begun = None
        self._members = None if len(members) == self._launched.ranks else members
        words = [] if self._members is None else ["--only-ranks", ",".join(map(str, members))]
        self._process.feed(request(words))
        return self._process, is_first

    def widened(self, plan: Plan) -> Plan:
        """Return the plan with the ranks that later plans need."""
        slots = tuple(replace(slot, ranks=max(slot.ranks, self.fewest_each)) for slot in plan.slots)
        return replace(plan, slots=slots, ranks=sum(slot.ranks for slot in slots) if slots else plan.ranks)

    def death_in_plan(self, death: Death) -> Death:
        """Return a launcher's report with the number that the rank has in the last plan, or with its host alone."""
        if self._members is None or death.rank is None:
            return death
        if death.rank in self._members:
            return replace(death, rank=self._members.index(death.rank))
        return replace(death, rank=None, host=host_of(self._launched, death.rank))

    def kill(self) -> None:
        """Kill the ranks of a launch that has ended or must not go on."""
        if self._process is not None:
            self._process.kill()
        self._process = self._begun = None

    def release(self) -> None:
        """Tell the ranks that no request follows; they end by themselves."""
        if self._process is not None:
            self._process.feed(_LAST)

    def close(self) -> bool:
        """End the ranks, and wait until they have ended; tell whether they did that by themselves."""
        if self._process is None or self._begun is not None:  # ranks without a plan may still wait for each other
            self.kill()
            return True
        self.release()
        deadline, has_ended = time.monotonic() + END_S, False
        while not has_ended and time.monotonic() < deadline:
            try:
                self._process.read_line(_POLL_S)
            except EOFError:
                has_ended = True
        self.kill()
        return has_ended


def _hosts(plan: Plan) -> list[str]:
    return [slot.host for slot in plan.slots]


def host_of(plan: Plan, rank: int) -> str:
    """Return the host of a rank."""
    return [slot.host for slot in plan.slots for _ in range(slot.ranks)][rank]


def members_of(plan: Plan, launched: Plan) -> Sequence[int] | None:
    """Return which ranks of a launch measure a plan, in order; None where the launch lacks some or has another first.

    They are the first ranks of each host.
    """
    if not plan.slots or not launched.slots:
        return list(range(plan.ranks)) if (plan.ranks, plan.slots) == (launched.ranks, launched.slots) else None
    members: list[int] = []
    left, first = list(plan.slots), 0
    for slot in launched.slots:
        if left and left[0].host == slot.host and left[0].ranks <= slot.ranks:
            members += range(first, first + left.pop(0).ranks)
        first += slot.ranks
    return None if left or members[0] != 0 else members


def request_text(plan: Plan, output: Path, words: Sequence[str]) -> str:
    """Return the request to measure a plan into a run directory; `words` are run options of the engine.

    Raises UsageError for a name with a line break, which a request cannot have.
    """
    if "\n" in str(output):
        raise UsageError(f"{str(output)!r} has a line break", "give another name with -o")
    words = [word for word in words if word not in _OF_LAUNCH]
    lines = [f"--output {output}"]
    for word in words:
        if word.startswith("--"):
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    rows = [line for line in plan.text.splitlines() if line]
    return "\n".join([*lines, *rows]) + "\n\n"

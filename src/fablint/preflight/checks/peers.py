"""A figure that should be no less than what similar hosts have, or else similar parts of the same host."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from fablint.model.preflight_results import Result
from fablint.preflight.base import Check, Value
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host


class Part(NamedTuple):
    """A part of a host and its figure."""

    target: str
    value: float | None  # None: it cannot be seen
    make: str = ""  # parts of a host that should be alike
    most: float | None = None  # what it could have; None where nobody knows
    why: str = ""  # it cannot be seen


class PeerCheck(Check):
    """Less than most similar hosts have is wrong; else less than most similar parts of the host have.

    Where there is no majority, less than the part itself could have is a warning: the host may be built so. An
    `absolute` figure that is less on most similar hosts is a warning of all of these: a setting of the BIOS.
    """

    words: ClassVar[str]  # with {:g} for the value: `x{:g}`
    absent: ClassVar[str]
    expects = True
    numeric = True
    absolute: ClassVar[bool] = False  # less than the part could have is a warning, even if all similar hosts have it so

    @abstractmethod
    def parts(self, host: Host) -> Iterable[Part]:
        """The parts of a host that have such a figure."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        every = [(host, list(self.parts(host))) for host in fleet.hosts]
        like: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for host, parts in every:
            for part in parts:
                if part.value is not None:
                    like[part.target, *host.like(part.target)].append(part.value)
        agreed = {key: Agreement.of(values) for key, values in like.items()}
        for host, parts in every:
            if not parts:
                yield self.skipped(host.name, "", self.absent)
            for part in parts:
                if part.value is None:
                    yield self.skipped(host.name, part.target, part.why or self.absent)
                else:
                    yield self._judged(host, part, part.value, agreed[part.target, *host.like(part.target)], parts)

    def site_values(self, host: Host) -> Mapping[str, Value]:
        return {part.target: part.value for part in self.parts(host)}

    def is_met(self, value: Value, expected: Value) -> bool:
        return isinstance(value, float | int) and isinstance(expected, float | int) and value >= expected

    def worded(self, target: str, value: Value) -> str:
        return self.words.format(value)

    def _judged(self, host: Host, part: Part, value: float, agreed: Agreement, parts: Sequence[Part]) -> Result:
        is_divided = agreed.with_more_as_usual.is_divided
        if is_divided and value < agreed.most:
            return self.warned(host.name, part.target, agreed.kinds(self.words), value)
        others = "others" if agreed.count > 1 else "other"
        if agreed.usual is None:
            agreed = Agreement.of([one.value for one in parts if one.make == part.make and one.value is not None])
            others = "similar part of this host" if agreed.count == 1 else "similar parts of this host"
        usual, said = agreed.usual, self.words.format(value)
        if usual is not None and value < usual:
            message = f"{said}, {agreed.count} {others} {self.words.format(usual)}"
            return self.differs(agreed.with_more_as_usual.is_clear, host.name, part.target, message, value, usual)
        if self.absolute and part.most is not None and usual is not None and value == usual < part.most:
            message = f"{said} on all like it, could be {self.words.format(part.most)}: a setting, or the slot?"
            return self.warned(host.name, part.target, message, value, part.most)
        if usual is None and part.most is not None and value < part.most:
            message = f"{said}, could be {self.words.format(part.most)}"
            return self.warned(host.name, part.target, message, value, part.most)
        return self.passed(host.name, part.target, value=value)

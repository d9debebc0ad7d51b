"""Base of checks of a figure that must not be lower than on similar hosts, or on similar components of the host."""

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
    """A component of a host and its figure."""

    target: str
    value: float | None  # None: not visible
    make: str = ""  # equal for comparable components of a host
    most: float | None = None  # largest possible figure; None if unknown
    why: str = ""  # reason why it is not visible


class PeerCheck(Check):
    """Base of checks of a figure: lower than on most similar hosts is wrong, or else than on similar components.

    Without a majority a figure below the component's own maximum is a warning, since the host may be built so. An
    `absolute` figure below the maximum on most similar hosts is a warning for all of them: a BIOS setting.
    """

    words: ClassVar[str]  # with {:g} for the value: `x{:g}`
    absent: ClassVar[str]
    expects = True
    numeric = True
    absolute: ClassVar[bool] = False  # a figure below the maximum is a warning, even on all similar hosts

    @abstractmethod
    def parts(self, host: Host) -> Iterable[Part]:
        """Return the components of a host, each with its figure in the unit of `words`.

        Empty where the host has no such component; the figure of one that is not visible is None, with the reason.
        """

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
                yield self.skip(host.name, "", self.absent)
            for part in parts:
                if part.value is None:
                    yield self.skip(host.name, part.target, part.why or self.absent)
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
            return self.warning(host.name, part.target, agreed.kinds(self.words), value)
        others = "others" if agreed.count > 1 else "other"
        if agreed.usual is None:
            agreed = Agreement.of([one.value for one in parts if one.make == part.make and one.value is not None])
            others = "similar part of this host" if agreed.count == 1 else "similar parts of this host"
        usual, said = agreed.usual, self.words.format(value)
        if usual is not None and value < usual:
            message = f"{said}, {agreed.count} {others} {self.words.format(usual)}"
            return self.difference(agreed.with_more_as_usual.is_clear, host.name, part.target, message, value, usual)
        if self.absolute and part.most is not None and usual is not None and value == usual < part.most:
            message = f"{said} on all similar hosts, supported {self.words.format(part.most)}: check settings and slot"
            return self.warning(host.name, part.target, message, value, part.most)
        if usual is None and part.most is not None and value < part.most:
            message = f"{said}, supported {self.words.format(part.most)}"
            return self.warning(host.name, part.target, message, value, part.most)
        return self.ok(host.name, part.target, value=value)

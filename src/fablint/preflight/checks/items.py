"""Settings of which a host has many: those that differ among like hosts are compared, in one result."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from fablint.fitness import Result
from fablint.preflight.check import LEAST_OTHERS, UniformCheck
from fablint.preflight.host import Fleet, Host
from fablint.preflight.wording import shortened

Items = Mapping[str, str]  # name of a setting -> its value
Texts = Counter[tuple[tuple[str, str], ...]]  # the settings of hosts, and how many have just these
_MOST = 4  # that are named


class ItemsCheck(UniformCheck):
    """Many settings of a target: those are compared that most like hosts share and some hosts do not have so.

    A setting of which every host has a value of its own (an address, a serial number) has no majority and is not
    compared. A setting that a host lacks is `no NAME`.
    """

    written: ClassVar[str] = "{} {}"  # a setting and its value

    @abstractmethod
    def items(self, host: Host) -> Mapping[str, Items]:
        """The settings of each target."""

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        self._items = {id(host): self.items(host) for host in fleet.hosts}
        texts: dict[tuple[str, str], Texts] = defaultdict(Counter)
        for host in fleet.hosts:
            for target, items in self._items[id(host)].items():
                texts[host.kind, target][tuple(sorted(items.items()))] += 1
        self._differing = {key: _differing(found) for key, found in texts.items()}
        return super().judge(fleet)

    def values(self, host: Host) -> Mapping[str, Any]:
        return {
            target: self._said(items, self._differing[host.kind, target])
            for target, items in self._items[id(host)].items()
        }

    def _said(self, items: Items, names: list[str]) -> str:
        """The settings that are compared; a value of this check."""
        if not names:
            return "alike"
        said = [self._one(name, items.get(name)) for name in names]
        if len(said) <= _MOST:
            return "; ".join(said)
        rest = zlib.crc32("; ".join(said[_MOST:]).encode())  # what is not named is compared as well
        return f"{'; '.join(said[:_MOST])}; and {len(said) - _MOST} more ({rest:08x})"

    def _one(self, name: str, value: str | None) -> str:
        return f"no {name}" if value is None else self.written.format(name, shortened(value, 60)).strip()


def _differing(texts: Texts) -> list[str]:
    """Names of settings that most hosts have alike, and not all."""
    if len(texts) < LEAST_OTHERS:
        return []
    total = texts.total()
    values: dict[str, Counter[str]] = defaultdict(Counter)
    for items, count in texts.items():
        for name, value in items:
            values[name][value] += count
    most = {name: max(*counts.values(), total - counts.total()) for name, counts in values.items()}
    return sorted(name for name, count in most.items() if LEAST_OTHERS <= count < total and 2 * count > total)

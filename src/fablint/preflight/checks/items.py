"""Base of checks of many settings per host: a result for each setting that differs, and one for all others."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.base import UniformCheck, Value
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.text.sanitise import shortened

Items = Mapping[str, str]  # name of a setting -> its value
_ABSENT, _ANY = "absent", "* "
Texts = Counter[tuple[tuple[str, str], ...]]  # sets of settings with the number of hosts


class ItemsCheck(UniformCheck):
    """Base of checks of settings in groups, such as those of a NIC; the target of a result is `GROUP NAME`.

    A setting with a different value on most hosts (an address, a serial number) is not compared. A missing setting is
    `no NAME`. A difference that follows from another difference has no result. A setting that is poor on all hosts is a
    warning for the group.
    """

    words = "{}"
    named = True
    written: ClassVar[str] = "{} {}"  # a setting and its value

    @abstractmethod
    def items(self, host: Host) -> Mapping[str, Items]:
        """Return the settings of each group (a NIC, say) as texts by name; empty where the host has none."""

    def causes(self, host: Host, group: str, name: str) -> Iterable[str]:
        """Return the settings that a setting follows from; if one of these differs, only that one is reported."""
        return ()

    def poor(self, host: Host, group: str) -> Iterable[str]:
        """Return the names of the settings of a group that slow down messages, even if all hosts have them.

        `group` is a key of `items(host)`. Such settings are a warning; by default there are none.
        """
        return ()

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        self._items = {id(host): self.items(host) for host in fleet.hosts}
        self._names: dict[str, str] = {}  # setting of each target, for the comparison with a site file
        texts: dict[tuple[str, str], Texts] = defaultdict(Counter)
        for host in fleet.hosts:
            for group, items in self._items[id(host)].items():
                texts[host.kind, group][tuple(sorted(items.items()))] += 1
        self._differing = {key: _differing(found) for key, found in texts.items()}
        known = set()
        for host in fleet.hosts:
            for group, items in self._items[id(host)].items():
                known.add(host.name)
                poor = [name for name in self.poor(host, group) if name not in self._differing[host.kind, group]]
                if poor:
                    message = ", ".join(self._written(name, items[name]) for name in poor)
                    total = texts[host.kind, group].total()
                    where = f" on all {total} similar hosts" if total > 1 else ""
                    yield self.warning(host.name, group, message + where, message)
                elif texts[host.kind, group].total() > 1:
                    yield self.ok(host.name, group, value=len(items))
                else:
                    yield self.skip(host.name, group, "no other host has these settings to compare with")
        compared = list(super().judge(fleet))
        wrong = {(one.host, one.target) for one in compared if one.outcome in (Outcome.WARN, Outcome.FAIL)}
        follows = {
            (host.name, f"{group} {name}")
            for host in fleet.hosts
            for group in self._items[id(host)]
            for name in self._differing[host.kind, group]
            if any((host.name, f"{group} {cause}") in wrong for cause in self.causes(host, group, name))
        }
        for one in compared:
            of_no_part = one.host in known and not one.target and one.outcome is Outcome.SKIP
            if not of_no_part and (one.host, one.target) not in wrong & follows:
                yield one

    def site_values(self, host: Host) -> Mapping[str, Value]:
        found: dict[str, Value] = {}
        for group, items in self._items[id(host)].items():
            for name, value in items.items():
                target = f"{group} {name}".strip()
                self._names[target] = name
                found[target] = shortened(value, 80)
        return found

    def lacking(self, host: Host, expected: Collection[str]) -> Mapping[str, Value]:
        """Return the settings that a site file expects and a host lacks, as `GROUP NAME` with the value `absent`.

        `expected` holds the targets of the site file, `GROUP NAME` or `* NAME`; those of other groups do not count.
        """
        found: dict[str, Value] = {}
        for group, items in self._items[id(host)].items():
            heads = (f"{group} ", _ANY)
            names = {key.removeprefix(head) for key in expected for head in heads if key.startswith(head)}
            for name in sorted(names - items.keys()):
                self._names[f"{group} {name}"] = name
                found[f"{group} {name}"] = _ABSENT
        return found

    def alias(self, target: str) -> str:
        """Return the name of a setting in any group: `* rx-checksumming`."""
        return f"{_ANY}{self._names.get(target, target)}"

    def is_met(self, value: Value, expected: Value) -> bool:
        return value == expected

    def against(self, host: str, target: str, value: Value, expected: Value, site: str) -> Result:
        if self.is_met(value, expected):
            return self.ok(host, target, value=value)
        name = self._names.get(target, target)
        own = self._written(name, None if value == _ABSENT else str(value))
        return self.failure(host, target, f"{own}, {self._written(name, str(expected))} in {site}", value, expected)

    def values(self, host: Host) -> Mapping[str, Any]:
        return {
            f"{group} {name}".strip(): self._written(name, items.get(name))
            for group, items in self._items[id(host)].items()
            for name in self._differing[host.kind, group]
        }

    def _written(self, name: str, value: str | None) -> str:
        return f"no {name}" if value is None else self.written.format(name, shortened(value, 80)).strip()


def _differing(texts: Texts) -> list[str]:
    """Return settings that differ between hosts, except those that differ on most hosts."""
    if len(texts) < 2:
        return []
    total = texts.total()
    values: dict[str, Counter[str]] = defaultdict(Counter)
    for items, count in texts.items():
        for name, value in items:
            values[name][value] += count
    kinds = {name: len(counts) + (counts.total() < total) for name, counts in values.items()}
    return sorted(name for name, count in kinds.items() if 1 < count <= max(2, total // 2))

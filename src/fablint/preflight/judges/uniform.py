"""Judge of properties that must be equal on similar hosts, one per component or many settings per group.

Similar hosts are those of one class (`Host.kind`); similar components have the same part number. Without a clear
majority, also of two hosts, all hosts of the class have one warning that counts the values. A poor value is a warning
for all hosts that have it, however many; a host that differs from a poor value is not wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import ABSENT, Absent, Check, Judge, SiteValues, Value
from fablint.preflight.class_values import Agreement, majority, worded
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.text.sanitise import shortened

Facts = Callable[[Host], Mapping[str, Any]]  # the value of each target; None if it is not visible
Settings = Mapping[str, str]  # name of a setting -> its value
_Texts = Counter[tuple[tuple[str, str], ...]]  # sets of settings with the number of hosts


def _never(_: Any) -> bool:
    return False


@dataclass(frozen=True)
class ValueComparison:
    """How the values of similar hosts are compared."""

    words: str  # with {} for the value: `MTU {}`, `{} GPU[s]`
    absent: Absent = "not visible"
    below: bool = False  # only a lower value than on other hosts is wrong
    by_class: bool = False  # compares components by name within a class, also those with another part number
    is_poor: Callable[[Any], bool] = _never  # whether a value slows down messages even if all hosts have it
    compares_pairs: bool = True  # else only two hosts may differ: values may be those of a host, such as its address
    compares_parts: bool = False  # without similar hosts, equal components of a host are compared with each other

    def results(self, facts: Facts, check: Check, fleet: Fleet) -> Iterator[Result]:
        """Yield the results of all hosts for each of their targets."""
        like: dict[tuple[str, ...], list[tuple[str, Any]]] = defaultdict(list)
        of_parts: dict[str, Mapping[str, Any]] = {}
        for host in fleet.hosts:
            values = facts(host)
            if self.compares_parts:
                of_parts[host.name] = values
            if not values:
                yield check.absence(host, "", self.absent)
            for target, value in values.items():
                if value is None:
                    yield check.absence(host, target, self.absent)
                elif self.by_class:
                    like[target, host.kind].append((host.name, value))
                else:
                    like[target, *host.like(target)].append((host.name, value))
        for (target, *_), value_of_hosts in like.items():
            yield from self._compared(check, target, value_of_hosts, of_parts)

    def _compared(
        self,
        check: Check,
        target: str,
        value_of_hosts: Sequence[tuple[str, Any]],
        of_parts: Mapping[str, Mapping[str, Any]],
    ) -> Iterator[Result]:
        agreed = Agreement.of([value for _, value in value_of_hosts])
        usual, count = agreed.usual, agreed.count
        if self.below:
            agreed = agreed.with_more_as_usual
        divided = agreed.is_divided and (
            usual is None or any(self.is_wrong(value, usual) for _, value in value_of_hosts)
        )
        divided = divided and (self.compares_pairs or not agreed.is_pair)
        kinds = agreed.kinds(self.words, value_of_hosts) if divided else ""
        for host, value in value_of_hosts:
            if divided:
                yield check.warning(host, target, kinds, value)
            elif self.is_poor(value) and (usual is None or value == usual):
                yield check.warning(host, target, f"{worded(self.words, value)}{_among(agreed, value)}", value)
            elif usual is None and self._differs_from_parts(target, value, of_parts.get(host, {})):
                yield check.warning(
                    host, target, f"{worded(self.words, value)}, most others of this host differ", value
                )
            elif usual is None:
                yield check.skip(host, target, f"{worded(self.words, value)}; no majority to compare with")
            elif not self.is_wrong(value, usual) or (self.is_poor(usual) and not self.is_poor(value)):
                yield check.ok(host, target, value=value)
            else:
                message = f"{worded(self.words, value)}, {count} other{'s' if count > 1 else ''} {usual}"
                yield check.difference(agreed.is_clear, host, target, message, value, usual)

    def _differs_from_parts(self, target: str, value: Any, values: Mapping[str, Any]) -> bool:
        """Tell whether a component differs from most components of its host with the same words after their name."""
        make = target.partition(" ")[2]
        usual, _ = majority([one for name, one in values.items() if name.partition(" ")[2] == make])
        return usual is not None and self.is_wrong(value, usual)

    def is_wrong(self, value: Any, usual: Any) -> bool:
        """Tell whether a value differs from the usual one in the wrong direction."""
        return bool(value < usual if self.below else value != usual)

    def judge(self, facts: Facts, *, numeric: bool = False, reads: str = "") -> Judge:
        """Return the judge that compares these values; see `uniform`."""
        site = SiteValues(
            lambda _, host: facts(host),
            lambda _, value: worded(self.words, value),
            numeric,
            is_met=lambda value, expected: not self.is_wrong(value, expected),
        )
        return Judge(partial(self.results, facts), reads=reads, site=site)


def _among(agreed: Agreement, value: Any) -> str:
    """Return ` on 6 of 8 similar hosts`; '' for a single host."""
    count = next((count for other, count in agreed.values if other == value), 0)
    return f" on {count} of {agreed.total} similar hosts" if agreed.total > 1 else ""


def uniform(
    facts: Facts,
    words: str,
    *,
    absent: Absent = "not visible",
    below: bool = False,
    is_poor: Callable[[Any], bool] = _never,
    numeric: bool = False,
    reads: str = "",
) -> Judge:
    """Judge a property that must be equal on similar hosts.

    Parameters
    ----------
    facts
        Returns the value of each target of a host; None if it is not visible.
    words, absent, below, is_poor
        See the fields of `ValueComparison`.
    numeric
        A site file expects numbers, not texts.
    reads
        A long text that other checks read as well.
    """
    comparison = ValueComparison(words, absent, below, is_poor=is_poor)
    return comparison.judge(facts, numeric=numeric, reads=reads)


# ------------------------------------------------------------------------------------------------ settings


def no_causes(_: Host, __: str, ___: str) -> Iterable[str]:
    """Return no setting: a setting follows from no other."""
    return ()


def no_settings(_: Host, __: str) -> Iterable[str]:
    """Return no setting: no setting of a group is poor."""
    return ()


@dataclass(frozen=True)
class SettingsComparison:
    """How the settings of groups, such as those of a NIC, are compared; the target of a result is `GROUP NAME`.

    A setting with a different value on most hosts (an address, a serial number) is not compared. A missing setting is
    `no NAME`. A difference that follows from another difference has no result. A setting that is poor on all hosts is a
    warning for the group.
    """

    facts: Callable[[Host], Mapping[str, Settings]]  # settings of each group as texts; none where the host has no group
    absent: Absent
    written: str = "{} {}"  # a setting and its value
    missing_differs: bool = True  # else a setting that a host lacks is not compared
    causes: Callable[[Host, str, str], Iterable[str]] = no_causes  # settings from which a setting of a group follows
    poor: Callable[[Host, str], Iterable[str]] = no_settings  # settings of a group that slow down messages
    compares_pairs: bool = True  # see `ValueComparison`

    def results(self, check: Check, fleet: Fleet) -> Iterator[Result]:
        """Yield a result for each setting that differs, and one for all others of a group."""
        settings = {id(host): self.facts(host) for host in fleet.hosts}
        texts: dict[tuple[str, str], _Texts] = defaultdict(Counter)
        for host in fleet.hosts:
            for group, settings_of_group in settings[id(host)].items():
                texts[host.kind, group][tuple(sorted(settings_of_group.items()))] += 1
        differing = {key: _differing(counts) for key, counts in texts.items()}
        for host in fleet.hosts:
            for group, settings_of_group in settings[id(host)].items():
                bad = [name for name in self.poor(host, group) if name not in differing[host.kind, group]]
                yield self._of_group(check, host.name, group, settings_of_group, bad, texts[host.kind, group].total())

        def values(host: Host) -> dict[str, str | None]:
            return {
                f"{group} {name}".strip(): self.words(name, settings_of_group.get(name))
                if self.missing_differs or name in settings_of_group
                else None
                for group, settings_of_group in settings[id(host)].items()
                for name in differing[host.kind, group]
            }

        comparison = ValueComparison("{}", self.absent, compares_pairs=self.compares_pairs)
        compared = list(comparison.results(values, check, fleet))
        wrong = {(one.host, one.target) for one in compared if one.outcome in (Outcome.WARN, Outcome.FAIL)}
        examined = {host.name for host in fleet.hosts if settings[id(host)]}
        follows = {
            (host.name, f"{group} {name}")
            for host in fleet.hosts
            for group in settings[id(host)]
            for name in differing[host.kind, group]
            if any((host.name, f"{group} {cause}") in wrong for cause in self.causes(host, group, name))
        }
        for item in compared:
            of_no_part = item.host in examined and not item.target and item.outcome is Outcome.SKIP
            if not of_no_part and (item.host, item.target) not in wrong & follows:
                yield item

    def _of_group(
        self, check: Check, host: str, group: str, settings: Settings, poor: Sequence[str], hosts: int
    ) -> Result:
        """Return the result for the settings of a group that do not differ; `hosts` have the group."""
        if poor:
            message = ", ".join(self.words(name, settings[name]) for name in poor)
            return check.warning(
                host, group, message + (f" on all {hosts} similar hosts" if hosts > 1 else ""), message
            )
        if hosts > 1:
            return check.ok(host, group, value=len(settings))
        return check.skip(host, group, "no other host has these settings to compare with")

    def words(self, name: str, value: Value) -> str:
        """Format a setting with its value; `no NAME` for a missing setting."""
        return f"no {name}" if value is None else self.written.format(name, shortened(str(value), 80)).strip()

    def site_values(self, _: Fleet, host: Host) -> Mapping[str, Value]:
        """Return the values of all settings of a host."""
        return {
            f"{group} {name}".strip(): shortened(value, 80)
            for group, settings in self.facts(host).items()
            for name, value in settings.items()
        }


def uniform_settings(comparison: SettingsComparison, *, reads: str = "") -> Judge:
    """Judge settings that must be equal on similar hosts; `reads` is a long text that other checks read as well."""
    site = SiteValues(
        comparison.site_values, comparison.words, named=True, groups=comparison.facts, missing=lambda _: ABSENT
    )
    return Judge(comparison.results, reads=reads, site=site)


def _differing(texts: _Texts) -> list[str]:
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

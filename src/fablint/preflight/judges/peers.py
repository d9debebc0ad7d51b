"""Judges of facts compared with those of similar hosts; a figure must not be lower than there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fablint.model.preflight_results import Result
from fablint.preflight.check import Absent, Check, Judge, SiteValues, Value
from fablint.preflight.class_values import Agreement
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host

Fact = TypeVar("Fact")


class Part(NamedTuple):
    """A component of a host and its figure."""

    target: str
    value: float | None  # None: not visible
    make: str = ""  # equal for comparable components of a host
    most: float | None = None  # largest possible figure; None if unknown
    why: str = ""  # reason why it is not visible


def at_least_peers(
    parts: Callable[[Host], Iterable[Part]], words: str, absent: str, *, absolute: bool = False, reads: str = ""
) -> Judge:
    """Judge a figure: lower than on most similar hosts is wrong, or else than on similar components.

    Without a majority a figure below the component's own maximum is a warning, since the host may be built so.

    Parameters
    ----------
    parts
        Returns the components of a host, each with its figure in the unit of `words`; none where it has no such
        component.
    words
        With {:g} for the value: `x{:g}`.
    absent
        Reason for a skip of a host without such a component.
    absolute
        A figure below the maximum on most similar hosts is a warning for all of them: a BIOS setting.
    reads
        A long text that other checks read as well.
    """

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        parts_of_hosts = [(host, list(parts(host))) for host in fleet.hosts]
        like: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for host, of_host in parts_of_hosts:
            for part in of_host:
                if part.value is not None:
                    like[part.target, *host.like(part.target)].append(part.value)
        agreed = {key: Agreement.of(values) for key, values in like.items()}
        for host, of_host in parts_of_hosts:
            if not of_host:
                yield check.skip(host.name, "", absent)
            for part in of_host:
                if part.value is None:
                    yield check.skip(host.name, part.target, part.why or absent)
                else:
                    result = agreed[part.target, *host.like(part.target)]
                    best = part.most if absolute else None
                    yield _judged(check, host.name, part, result, of_host, words, best)

    site = SiteValues(
        lambda _, host: {part.target: part.value for part in parts(host)},
        lambda _, value: words.format(value),
        numeric=True,
        is_met=is_at_least,
    )
    return Judge(results, reads=reads, site=site)


def is_at_least(value: Value, expected: Value) -> bool:
    """Tell whether a figure is not below another."""
    return isinstance(value, float | int) and isinstance(expected, float | int) and value >= expected


def _judged(
    check: Check,
    host: str,
    part: Part,
    agreed: Agreement,
    parts: Sequence[Part],
    words: str,
    best: float | None,
) -> Result:
    """Return the result for a component; a figure below `best` on all similar hosts is a warning."""
    is_divided, target, value = agreed.with_more_as_usual.is_divided, part.target, part.value or 0.0
    similar = Agreement.of([other.value for other in parts if other.make == part.make and other.value is not None])
    is_below = agreed.usual is None and similar.usual is not None and value < similar.usual
    if is_divided and value < agreed.most and not is_below:
        return check.warning(host, target, agreed.kinds(words), value)
    others = "others" if agreed.count > 1 else "other"
    if agreed.usual is None:
        agreed = similar
        others = "similar part of this host" if agreed.count == 1 else "similar parts of this host"
    usual, said = agreed.usual, words.format(value)
    if usual is not None and value < usual:
        message = f"{said}, {agreed.count} {others} {words.format(usual)}"
        return check.difference(agreed.with_more_as_usual.is_clear, host, target, message, value, usual)
    if best is not None and usual is not None and value == usual < best:
        message = f"{said} on all similar hosts, supported {words.format(best)}: check settings and slot"
        return check.warning(host, target, message, value, best)
    if usual is None and part.most is not None and value < part.most:
        return check.warning(host, target, f"{said}, supported {words.format(part.most)}", value, part.most)
    return check.ok(host, target, value=value)


def among_peers(
    facts: Callable[[Check, Host], Mapping[str, Result | Fact]],
    compared: Callable[[Check, str, Sequence[tuple[Host, Fact]]], Iterable[Result]],
    absent: Absent,
    site: SiteValues | None = None,
) -> Judge:
    """Judge facts of components by those of the same component of similar hosts.

    Parameters
    ----------
    facts
        Returns the fact of each component of a host, or its result where the fact is not compared.
    compared
        Returns the results of a component of similar hosts.
    absent
        Reason for a skip of a host without such a component.
    site
        Values that a site file can expect.
    """

    def results(check: Check, fleet: Fleet) -> Iterator[Result]:
        like: dict[tuple[str, ...], list[tuple[Host, Fact]]] = defaultdict(list)
        for host in fleet.hosts:
            facts_of_host = facts(check, host)
            if not facts_of_host:
                yield check.absence(host, "", absent)
            for target, fact in facts_of_host.items():
                if isinstance(fact, Result):
                    yield fact
                else:
                    like[target, *host.like(target)].append((host, fact))
        for (target, *_), of_target in like.items():
            yield from compared(check, target, of_target)

    return Judge(results, site=site)

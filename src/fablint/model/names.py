"""Names of hosts and switches as sources spell them, and as a topology can hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

MOST_LETTERS = 80  # of a name: a longer text is not a name
MOST_HOSTS = 250_000  # that one folded list of a source may stand for
_NODE = re.compile(r"(x\d{1,4}c\d)s\d+b\d+n\d+")  # xname of a host
_LAST_NUMBER = re.compile(r"(.*\d)(?:[^\d]+)\d+")
_UNWRITABLE = re.compile(r"[^A-Za-z0-9_.:-]+")
_NO_PORT = re.compile(r"[^A-Za-z0-9_.:/-]+")
_PLAIN = re.compile(r"[A-Za-z0-9._:/-]+")
_DIGITS = re.compile(r"(\d{1,18})")
_BRACKETS = re.compile(r"\[([^\]]*)")  # closed or not: ClusterShell may expand it before it reports the missing end
_RANGE = re.compile(r"\s*(\d+)-(\d+)(?:/\d+)?\s*")
_SINGLE = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")  # stands for itself in ClusterShell; most names of long lists
_ITEM = re.compile(r"(?:\[[^\]]*\]?|[^,!&^\[])+")  # between ClusterShell's operators, outside of brackets
_FEW = 32  # names, whose folded text is cached
_MOST_DIGITS = 18  # of the end of a range
_SHOWN = 60  # letters of a list in a message
_SWITCH_MODULE = re.compile(r"x\d{1,4}c[0-7]r\d{1,2}")  # an xname without its controller


def plain(name: object) -> str:
    """Name without special meaning in a node set: other characters become `-`. '' if nothing is left."""
    return _UNWRITABLE.sub("-", str(name).strip()[:MOST_LETTERS]).strip("-")


def port_name(name: object) -> str:
    """Name of a port as people type it: `Ethernet1/1`, `xe-0/0/1:0`; blanks and separators become `-`."""
    return _NO_PORT.sub("-", str(name).strip()[:MOST_LETTERS]).strip("-")


def rack_name(host: str) -> str:
    """Return the name of a host before its last number: `r12` of `r12n03`, `x1000c0` of an xname; '' if it has none."""
    match = _NODE.fullmatch(host) or _LAST_NUMBER.fullmatch(host)
    return match[1] if match else ""


def switch_name(name: object) -> str:
    """Name of a switch; an xname of a Slingshot switch module as LLDP writes it, `x1000c0r3b0`."""
    text = plain(name)
    return f"{text}b0" if _SWITCH_MODULE.fullmatch(text) else text


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sorting key: `h2` before `h10`."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name) if part)


def fold(names: Iterable[str], between: str = ",") -> str:
    """`nid[001000-001003]`, `nid[001-002]/hsn0`; names with a special meaning in a node set stay single."""
    single = set(names)
    if len(single) == 1:
        return next(iter(single))
    return (_folded_few if len(single) <= _FEW else _folded_many)(frozenset(single), between)


def _folded(single: frozenset[str], between: str) -> str:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if all(map(_PLAIN.fullmatch, single)):
        with suppress(NodeSetException):
            return str(NodeSet.fromlist(_ranges(single), resolver=RESOLVER_NOGROUP))
    return between.join(sorted(single, key=natural))


def _ranges(names: Iterable[str]) -> list[str]:
    """Node sets of the names that have one number, and the other names: ClusterShell reads a range in the time of a
    name.
    """
    texts: list[str] = []
    numbers: dict[tuple[str, str, int], list[int]] = {}
    for name in names:
        parts = _DIGITS.split(name)
        if len(parts) == 3:
            numbers.setdefault((parts[0], parts[2], len(parts[1])), []).append(int(parts[1]))
        else:
            texts.append(name)
    for (head, tail, width), values in numbers.items():
        ordered = sorted(values)
        starts = [place for place, value in enumerate(ordered) if not place or value - 1 != ordered[place - 1]]
        ranges = zip(starts, [*starts[1:], len(ordered)], strict=True)
        words = ",".join(f"{ordered[first]:0{width}d}-{ordered[end - 1]:0{width}d}" for first, end in ranges)
        texts.append(f"{head}[{words}]{tail}")
    return texts


_folded_few = lru_cache(maxsize=4096)(_folded)  # every host of a fleet has NICs of the same names
_folded_many = lru_cache(maxsize=16)(_folded)  # all hosts of a fleet stand in many lines of a report


def printable(text: str) -> str:
    """Text without characters that steer a terminal or break a line: names and messages come from hosts and files."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def unfold(text: str) -> tuple[str, ...]:
    """Single names of `nid[1-4],login1`; () if the text is not a list of names."""
    try:
        return () if text in ("", "(null)") else tuple(filter(None, map(plain, expanded(text))))
    except ValueError:
        return ()


def expanded(text: str) -> tuple[str, ...]:
    """Names that a folded list stands for, in ClusterShell's order. Groups (`@name`) are not looked up.

    Every list of names that fablint reads is expanded here, so that a slip such as `n[1-99999999999]` is refused.

    Raises
    ------
    ValueError
        The text is not a list of names, or stands for more than MOST_HOSTS names; the reason is one line.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if _SINGLE.fullmatch(text):
        return (text,)
    refuse_too_many(text)
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError, OverflowError, AssertionError) as error:
        raise ValueError(f"{quoted(text)} is not a list of hosts: {beginning(str(error))}") from None


def refuse_too_many(text: str) -> None:
    """Raise ValueError if a folded list stands for more names than the world's largest cluster has hosts."""
    if most_names(text) > MOST_HOSTS:
        raise ValueError(f"{quoted(text)} stands for more than {MOST_HOSTS:,} names")


def most_names(text: str) -> int:
    """An upper bound of the number of names that a folded list stands for; MOST_HOSTS + 1 where it is larger.

    >>> most_names("n[1-10]p[0-1],login"), most_names("rack1-99999999999")
    (21, 1)
    """
    total = 0
    for item in _ITEM.findall(text):
        count = 1
        for content in _BRACKETS.findall(item):
            count *= max(sum(map(_numbers, content.split(","))), 1)
            if count > MOST_HOSTS:
                return MOST_HOSTS + 1
        total += count
    return min(total, MOST_HOSTS + 1)


def _numbers(text: str) -> int:
    """Upper bound of the number of numbers that `1-10` stands for.

    A step is not counted: ClusterShell expands the range first. An unusual range such as `1-4-9` counts as the longest
    that its digits can mean: ends may be negative.
    """
    if text.strip().isdecimal():
        return 1
    match = _RANGE.fullmatch(text)
    ends = match.groups() if match else tuple(re.findall(r"\d+", text))
    if max(map(len, ends), default=0) > _MOST_DIGITS:
        return MOST_HOSTS + 1
    return max(int(ends[1]) - int(ends[0]) + 1, 1) if match else sum(map(int, ends)) + 1


def quoted(text: str) -> str:
    """Text of a user or a file, quoted for a message."""
    return f"'{beginning(text)}'"


def beginning(text: str) -> str:
    """Return the first 60 characters of a text in one line, and three dots for the others."""
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def plural(count: int, word: str) -> str:
    """`1 switch`, `2 switches`."""
    ending = "" if count == 1 else "es" if word.endswith(("s", "ch", "x")) else "s"
    return f"{count:,} {word}{ending}"

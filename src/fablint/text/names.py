"""Names of hosts and switches as sources spell them, and as a topology can hold them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress

MOST_LETTERS = 80  # of a name: what is longer is no name
MOST_HOSTS = 200_000  # that one folded list of a source may stand for
_UNWRITABLE = re.compile(r"[^A-Za-z0-9_.:-]+")
_PLAIN = re.compile(r"[A-Za-z0-9._:/-]+")
_DIGITS = re.compile(r"(\d{1,18})")
_BRACKETS = re.compile(r"\[([^\]]*)")  # closed or not: ClusterShell may have expanded it before it sees that
_RANGE = re.compile(r"\s*(\d+)-(\d+)(?:/\d+)?\s*")
_SINGLE = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")  # means itself to ClusterShell, and is most of long lists
_ITEM = re.compile(r"(?:\[[^\]]*\]?|[^,!&^\[])+")  # between ClusterShell's operators, outside of brackets
_MOST_DIGITS = 18  # of the end of a range
_SHOWN = 60  # letters of a list in a message
_SWITCH_MODULE = re.compile(r"x\d{1,4}c[0-7]r\d{1,2}")  # an xname without its controller


def plain(name: object) -> str:
    """A name that means itself in a node set: others' letters become `-`. Empty where nothing is left."""
    return _UNWRITABLE.sub("-", str(name).strip()[:MOST_LETTERS]).strip("-")


def switch_name(name: object) -> str:
    """The name of a switch; an xname of a Slingshot switch module as LLDP writes it, `x1000c0r3b0`."""
    text = plain(name)
    return f"{text}b0" if _SWITCH_MODULE.fullmatch(text) else text


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sorting key: `h2` before `h10`."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name) if part)


def fold(names: Iterable[str], between: str = ",") -> str:
    """`nid[001000-001003]`, `nid[001-002]/hsn0`; names that mean something else in a node set one after the other."""
    single = set(names)
    if len(single) == 1:
        return next(iter(single))
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if all(map(_PLAIN.fullmatch, single)):
        with suppress(NodeSetException):
            return str(NodeSet.fromlist(single, resolver=RESOLVER_NOGROUP))
    return between.join(sorted(single, key=natural))


def printable(text: str) -> str:
    """Names and messages come from hosts and files: nothing in them may steer a terminal or break a line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def unfold(text: str) -> tuple[str, ...]:
    """Single names of `nid[1-4],login1`; none where it is no list of names."""
    try:
        return () if text in ("", "(null)") else tuple(filter(None, map(plain, expanded(text))))
    except ValueError:
        return ()


def expanded(text: str) -> tuple[str, ...]:
    """Names that a folded list stands for, in ClusterShell's order. Groups (`@name`) are not looked up.

    Every list of names that fablint reads is expanded here, so that a slip such as `n[1-99999999999]` is refused.

    Raises:
        ValueError: it is no such list, or stands for more than MOST_HOSTS names; the reason is one line.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if _SINGLE.fullmatch(text):
        return (text,)
    refuse_too_many(text)
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError, OverflowError, AssertionError) as error:
        raise ValueError(f"{quoted(text)} is no list of hosts: {beginning(str(error))}") from None


def refuse_too_many(text: str) -> None:
    """Raise ValueError where a folded list stands for more names than the world's largest cluster has hosts."""
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
    """At most how many numbers `1-10` stands for. A step is not counted: ClusterShell expands the range first.

    What is no usual range, as `1-4-9`, is taken for the longest that its figures can mean: ends may be negative.
    """
    if text.strip().isdecimal():
        return 1
    match = _RANGE.fullmatch(text)
    ends = match.groups() if match else tuple(re.findall(r"\d+", text))
    if max(map(len, ends), default=0) > _MOST_DIGITS:
        return MOST_HOSTS + 1
    return max(int(ends[1]) - int(ends[0]) + 1, 1) if match else sum(map(int, ends)) + 1


def quoted(text: str) -> str:
    """What a user or a file gave, for a message."""
    return f"'{beginning(text)}'"


def beginning(text: str) -> str:
    """The first letters of a text, in one line."""
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def ends_of(name: str) -> list[str]:
    """The two ends of a cable `s0=s1` or a link `s0>s1`, in this order; another name is one end."""
    return name.replace(">", "=").split("=")


def directions(name: str) -> set[tuple[str, str]]:
    """Ordered pairs of ends of a path, link or cable, whose names may be folded: `s0>s[1-2]`, `s0=s1`; else none."""
    ends = [unfold(end) for end in ends_of(name)]
    if len(ends) != 2:
        return set()
    there = {(a, b) for a in ends[0] for b in ends[1]}
    return there if ">" in name else there | {(b, a) for a, b in there}


def one_spelling(asked: Iterable[str], heard: Iterable[str]) -> Callable[[str], str]:
    """Makes `nid1.site.org` and `nid1` one name: as it was asked for, else the shorter."""
    kept = dict.fromkeys(asked)
    by_short: dict[str, str] = {}
    for name in [*kept, *sorted(heard, key=len)]:
        by_short.setdefault(name.partition(".")[0], name)

    def spell(name: str) -> str:
        short = name.partition(".")[0]
        other = by_short.get(short, name)
        return other if name not in kept and short in (name, other) else name  # of two long names both stay

    return spell


def plural(count: int, word: str) -> str:
    """`1 switch`, `2 switches`."""
    ending = "" if count == 1 else "es" if word.endswith(("s", "ch", "x")) else "s"
    return f"{count:,} {word}{ending}"

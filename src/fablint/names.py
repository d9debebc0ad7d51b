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
_RANGE = re.compile(r"(\d+)-(\d+)")
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
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    if text in ("", "(null)") or _too_many(text):
        return ()
    try:
        return tuple(filter(None, map(plain, NodeSet(text, resolver=RESOLVER_NOGROUP))))
    except (NodeSetException, ValueError):
        return ()


def _too_many(text: str) -> bool:
    """Does it stand for more names than there are hosts in the world's largest cluster? Ranges multiply."""
    count = 1
    for first, last in _RANGE.findall(text):
        if len(last) > 18:
            return True
        count *= max(int(last) - int(first) + 1, 1)
    return count > MOST_HOSTS


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

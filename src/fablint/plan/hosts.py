"""Lists of hosts as they are written: `server[2-3]`, `client[1-3,10]`, `client{1,5,7}`, `login,n[001-064]`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from fablint.errors import UsageError
from fablint.model import Slots

_BRACES = re.compile(r"\{([^{}]*)\}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NUMBERS = re.compile(r"\d+(-\d+)?")


def parse_hosts(text: str) -> tuple[str, ...]:
    """The hosts of a list, in its order; ClusterShell unfolds the brackets.

    Braces mean what a shell makes of them: `client{1,5,7}` is client1, client5, client7, and so is `client[1,5,7]`;
    `n{a,b}` is na, nb. Braces around whole names, `{n1,n5}`, are left out; around mere numbers they name no host.

    Raises:
        UsageError: brackets that do not close, a host twice, a number in the place of a name, no host at all.
    """
    hosts = [host for item in _items(text) for host in _unfolded(_without_braces(item), text)]
    if not hosts:
        raise UsageError(f"'{text}' names no host", "write them as client[1-3,10]")
    for host in hosts:
        if host.isdigit():
            raise UsageError(f"'{text}': {host} is a number and no host", "put the name before it, as client{1,5,7}")
        if not _HOST.fullmatch(host):
            raise UsageError(f"'{text}': '{host}' is no host", "write them as client[1-3,10]")
    twice = next((host for host, count in Counter(hosts).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"'{text}': {twice} appears twice", "give every host once")
    return tuple(hosts)


def parse_slots(text: str, each: int) -> tuple[Slots, ...]:
    """`each` ranks on every host of a list."""
    return tuple(Slots(host, each) for host in parse_hosts(text))


def joined(*lists: Iterable[Slots]) -> tuple[Slots, ...]:
    """One list after the other; a host that ends one and begins the next has the ranks of both."""
    slots: list[Slots] = []
    for slot in (slot for one in lists for slot in one):
        if slots and slots[-1].host == slot.host:
            slot = Slots(slot.host, slots.pop().ranks + slot.ranks)
        slots.append(slot)
    return tuple(slots)


def _items(text: str) -> list[str]:
    """The parts between the commas outside of all brackets."""
    items, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            items.append("")
        else:
            items[-1] += letter
    return [item.strip() for item in items if item.strip()]


def _without_braces(item: str) -> list[str]:
    """Braces around numbers as brackets, others as one name for each of the alternatives."""
    found = _BRACES.search(item)
    if found is None:
        return [item]
    before, after = item[: found.start()], item[found.end() :]
    words = [word.strip().replace("..", "-") for word in found[1].split(",")]
    if all(_NUMBERS.fullmatch(word) for word in words):
        return _without_braces(f"{before}[{','.join(words)}]{after}")
    return [name for word in words for name in _without_braces(f"{before}{word}{after}")]


def _unfolded(names: list[str], text: str) -> list[str]:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return [host for name in names for host in NodeSet(name, resolver=RESOLVER_NOGROUP)]
    except NodeSetException as error:
        raise UsageError(f"'{text}' is no list of hosts: {error}", "write them as client[1-3,10]") from None

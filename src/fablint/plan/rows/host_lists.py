"""Lists of hosts as they are written: `server[2-3]`, `client[1-3,10]`, `client{1,5,7}`, `login,n[001-064]`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv6Address
from itertools import islice

from fablint.errors import UsageError
from fablint.model import Slots
from fablint.model.names import MOST_HOSTS, beginning, expanded, quoted

_BRACES = re.compile(r"\{([^{}]*)\}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ADDRESS = re.compile(r"\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\]")
_NUMBERS = re.compile(r"\d+(-\d+)?")
_HINT = "write them as client[1-3,10]"


def parse_hosts(text: str) -> tuple[str, ...]:
    """The hosts of a list, in its order; ClusterShell unfolds the brackets. Written as for `parse_rank_hosts`.

    Raises
    ------
    UsageError
        As `parse_rank_hosts`, or a host appears twice.
    """
    hosts = parse_rank_hosts(text)
    twice = next((host for host, count in Counter(hosts).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"{quoted(text)}: {beginning(twice)} appears twice", "give every host once")
    return hosts


def parse_rank_hosts(text: str) -> tuple[str, ...]:
    """The hosts of ranks in rank order: a host with several ranks is named for each of them.

    Braces mean what a shell makes of them: `client{1,5,7}` is client1, client5, client7, and so is `client[1,5,7]`;
    `n{a,b}` is na, nb. Braces around whole names, `{n1,n5}`, are left out; around mere numbers they name no host.
    A host may be an IPv6 address: `fd00::1`, `[fd00::1]`, `fd00::[1-4]`.

    Raises
    ------
    UsageError
        Brackets that do not close, a number in the place of a name, no host at all, more than MOST_HOSTS.
    """
    hosts = [_short_address(host) or host for host in _expanded(text)]
    if not hosts:
        raise UsageError(f"{quoted(text)} names no host", _HINT)
    for host in hosts:
        if host.isdigit():
            number = f"{beginning(host)} is a number and no host"
            raise UsageError(f"{quoted(text)}: {number}", "put the name before it, as client{1,5,7}")
        if not (_HOST.fullmatch(host) or _short_address(host)):
            raise UsageError(f"{quoted(text)}: {quoted(host)} is not a host", _HINT)
    return tuple(hosts)


def _short_address(text: str) -> str:
    """Return an IPv6 address without a zone in its short form, so that each has one spelling; '' for other texts."""
    try:
        return "" if "%" in text else str(IPv6Address(text))
    except AddressValueError:
        return ""


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


def _without_braces(item: str) -> Iterator[str]:
    """Braces around numbers as brackets, others as one name for each of the alternatives."""
    waiting = [item]
    while waiting:
        item = waiting.pop()
        match = _BRACES.search(item)
        if match is None:
            yield item
            continue
        before, after = item[: match.start()], item[match.end() :]
        words = [word.strip().replace("..", "-") for word in match[1].split(",")]
        if all(_NUMBERS.fullmatch(word) for word in words):
            waiting.append(f"{before}[{','.join(words)}]{after}")
        else:
            waiting += [f"{before}{word}{after}" for word in reversed(words)]


def _expanded(text: str) -> list[str]:
    """All names, in order. Braces multiply, as ranges do: what comes behind too many names is not expanded."""
    hosts: list[str] = []
    names = (name for item in _items(text) for name in _without_braces(item))
    try:
        for name in islice(names, MOST_HOSTS + 1):
            address = _ADDRESS.fullmatch(name)
            hosts += [address[1]] if address else expanded(name)
            if len(hosts) > MOST_HOSTS:
                break
    except ValueError as error:
        raise UsageError(str(error), _HINT) from None
    if len(hosts) > MOST_HOSTS:
        raise UsageError(f"{quoted(text)} stands for more than {MOST_HOSTS:,} names", _HINT)
    return hosts

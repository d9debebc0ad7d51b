"""Names of hosts: unfolded, and found again where one side writes `n01` and the other `n01.site.org`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LARGEST = 1 << 20  # hosts; a range such as n[1-999999999] is a slip, and would eat the memory


def is_host(name: str) -> bool:
    """Can this be the name of a host?"""
    return _HOST.fullmatch(name) is not None


def unfold(nodelist: str) -> tuple[str, ...]:
    """The hosts of a scheduler's list, `nid[001000-001003],login`, in its order.

    Raises:
        ValueError: it is no such list.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    _refuse_too_many(nodelist)
    try:
        hosts = tuple(host for item in _items(nodelist) for host in NodeSet(item, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError, OverflowError) as error:
        raise ValueError(f"'{nodelist}' is no list of hosts: {error}") from None
    odd = next((host for host in hosts if not is_host(host)), None)
    if odd is not None:
        raise ValueError(f"'{odd}' is no host")
    return tuple(dict.fromkeys(hosts))


def _refuse_too_many(nodelist: str) -> None:
    for first, last in re.findall(r"(\d+)-(\d+)", nodelist):
        if len(last) > 18 or int(last) - int(first) >= _LARGEST:
            raise ValueError(f"'{nodelist}' names more than {_LARGEST} hosts")


def _items(nodelist: str) -> list[str]:
    """The parts between the commas outside of brackets: ClusterShell would sort the whole."""
    return [item.strip() for item in re.split(r",(?![^\[]*\])", nodelist) if item.strip()]


class Roster:
    """Hosts that can be asked for by their full name or by the part before the first dot."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._full = {host: host for host in hosts}
        self._short: dict[str, str | None] = {}
        for host in hosts:
            short = host.split(".")[0]
            self._short[short] = None if short in self._short else host

    def find(self, name: str) -> str | None:
        """The host as the roster writes it; None where it is not on it, or two of the same short name are."""
        return self._full.get(name) or self._short.get(name.split(".")[0])

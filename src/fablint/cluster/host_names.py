"""Names of hosts: unfolding of lists."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

from fablint.model.names import expanded, quoted, refuse_too_many

_ITEM = re.compile(r"(?:\[[^\]]*\]|[^,\[]|\[)+")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_host(name: str) -> bool:
    """Tell whether this can be the name of a host."""
    return _HOST.fullmatch(name) is not None


def address(text: str) -> str:
    """Return an IPv6 address, with or without brackets, in its short form.

    Raises
    ------
    ValueError
        The text is not such an address.
    """
    try:
        return str(IPv6Address(text.removeprefix("[").removesuffix("]")))
    except AddressValueError:
        raise ValueError(f"{quoted(text)} is not an IPv6 address") from None


def unfold(nodelist: str) -> tuple[str, ...]:
    """Hosts of a scheduler's list, `nid[001000-001003],login`, in its order.

    Raises
    ------
    ValueError
        The text is not such a list.
    """
    refuse_too_many(nodelist)
    hosts = tuple(host for item in _items(nodelist) for host in expanded(item))
    odd = next((host for host in hosts if not is_host(host)), None)
    if odd is not None:
        raise ValueError(f"{quoted(odd)} is not a host")
    return tuple(dict.fromkeys(hosts))


def _items(nodelist: str) -> list[str]:
    """Items between the commas outside of brackets: ClusterShell would sort the whole list."""
    return [item.strip() for item in _ITEM.findall(nodelist) if item.strip()]

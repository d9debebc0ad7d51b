"""Hosts on a network: what `ip -j` prints on them."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from typing import Any

from preflight_help import host, nic

from fablint.preflight.host import Host

RULES = [{"priority": 0, "src": "all", "table": "local"}, {"priority": 32766, "src": "all", "table": "main"}]


def mac(index: int, rail: int = 0) -> str:
    return f"02:15:00:00:{rail:02x}:{index:02x}"


def wired(
    index: int,
    rails: Mapping[str, str] | None = None,
    *,
    routes: Sequence[Mapping[str, Any]] = (),
    rules: Sequence[Mapping[str, Any]] = (),
    neighbours: Sequence[tuple[str, str, str]] = (),
    files: Mapping[str, str] | None = None,
    **more: Any,
) -> Host:
    """`n3`: an address on each rail, the routes that the kernel makes of them, and more. Neighbours: address, MAC,
    state, on the first rail."""
    rails = {"hsn0": f"10.1.0.{index}/16"} if rails is None else rails
    mine = {name: ipaddress.ip_interface(text) for name, text in rails.items() if text}
    addresses = [
        {"ifname": name, "addr_info": [{"family": "inet", "local": str(at.ip), "prefixlen": at.network.prefixlen,
                                        "scope": "global"}]}
        for name, at in mine.items()
    ]  # fmt: skip
    own = [{"dst": str(at.network), "dev": name, "scope": "link", "flags": []} for name, at in mine.items()]
    own += [{"type": "local", "dst": str(at.ip), "dev": name, "table": "local"} for name, at in mine.items()]
    known = [
        {"dst": address, "dev": next(iter(rails)), "lladdr": lladdr, "state": [state], "updated": 9}
        for address, lladdr, state in neighbours
    ]
    tree: dict[str, str] = {}
    for number, name in enumerate(rails):
        tree |= nic(name, address=mac(index, number))
    said = {"ip-addr": addresses, "ip-route": [*routes, *own], "ip-rule": [*rules, *RULES], "ip-neigh": known}
    commands = {name: json.dumps(document) for name, document in said.items()}
    return host(f"n{index}", {**tree, **(files or {})}, commands={**commands, **more.pop("commands", {})}, **more)

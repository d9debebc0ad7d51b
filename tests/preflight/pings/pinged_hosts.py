"""Hosts that ping each other: what each of them says of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from preflight_help import host, nic, of, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight import offsets
from fablint.preflight.check import Check
from fablint.preflight.checks.network import reachability as checks
from fablint.preflight.checks.network.loss import PING_LOSS
from fablint.preflight.host import Host

FAMILY = (
    checks.PING_ANSWERS,
    checks.PING_ROUTES,
    checks.FULL_SIZE,
    PING_LOSS,
    checks.ROUND_TRIP,
    checks.PEER_NAMES,
)
FINE = ("", 200, 0, "", 3, 3)
LOST = ("no answer", None, 0, "", 12, 0)
SHORT = ("mtu", None, 1500, "", 12, 0)
Row = tuple[str, int | None, int, str, int, int]


def mac(number: int, rail: int = 0) -> str:
    return f"02:00:00:0{rail}:{number // 256:02x}:{number % 256:02x}"


def address(number: int, rail: int = 0) -> str:
    return f"10.{150 + rail}.{number // 200}.{10 + number % 200}"


def entry(name: str, *local: str) -> dict[str, Any]:
    split = [one.split("/") for one in local]
    return {
        "ifname": name,
        "addr_info": [{"local": one, "prefixlen": int(length), "scope": "global"} for one, length in split],
    }


def bare(number: int, rails: int = 1, reach: Mapping[str, Any] | None = None) -> Host:
    """A host with its NICs and addresses, and what its pinger said."""
    every = {}
    listed = []
    for rail in range(rails):
        every |= nic(f"hsn{rail}", address=mac(number, rail))
        listed.append(entry(f"hsn{rail}", f"{address(number, rail)}/16"))
    return host(f"n{number}", every, commands={"ip-addr": json.dumps(listed)}, reach=reach or {})


def pinged(
    count: int,
    outcome: Callable[[int, int], Row] = lambda one, other: FINE,
    rails: int = 1,
    level: str = "quick",
    say: Callable[[int, list[int]], Mapping[str, Any]] = lambda number, peers: {},
) -> list[Host]:
    """Hosts that pinged each other with the given results; `say` gives additional output of a host."""
    found = []
    for number in range(count):
        peers = [(number + offset) % count for offset in offsets(count, level)]
        labels = [f"hsn{rail}" for rail in range(rails)] if rails > 1 else [""]
        said = {
            "fablint_reach": 1,
            "pings": [[f"n{peer}", label, *outcome(number, peer)] for peer in peers for label in labels],
            "names": [[f"n{p}", address(p), f"n{p}-hsn0", [address(p)]] for p in peers],
        }
        found.append(bare(number, rails, {**said, **say(number, peers)}))
    return found


def detections(hosts: Iterable[Host], **known: Any) -> list[tuple[str, str, str, Outcome, str]]:
    """Check, host, target, outcome and message of all that the family finds wrong."""
    found = []
    for check in FAMILY:
        found += [(check.id, *one) for one in wrong(of(check, *hosts, **known))]
    return found


def named(check: Check, hosts: Iterable[Host]) -> list[tuple[str, str, Outcome]]:
    return [(name, target, outcome) for name, target, outcome, _ in wrong(of(check, *hosts))]


def without(*dead: int, kind: Row = LOST) -> Callable[[int, int], Row]:
    return lambda one, other: kind if one in dead or other in dead else FINE

"""Checks of bonds: state and speed of their members, partner of LACP, mode.

Linux, Documentation/networking/bonding.rst: `mode` is `802.3ad 4`; with LACP `ad_partner_mac` is that of the switch and
members that aggregate have one `ad_aggregator_id`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from fablint.model.names import fold
from fablint.model.preflight_results import Result
from fablint.preflight.check import Check
from fablint.preflight.host import NET, Host
from fablint.preflight.judges import limit, uniform_settings
from fablint.preflight.judges.uniform import Settings, SettingsComparison
from fablint.text.sanitise import shortened

_LACP = "802.3ad"
_NO_PARTNER = "00:00:00:00:00:00"
_NO_BOND = "no bond"


def _bonds(host: Host) -> Mapping[str, list[str]]:
    """Return the members of each bond with at least one."""
    members = {name: (host.read(f"{NET}/{name}/bonding/slaves") or "").split() for name in host.snapshot.names(NET)}
    return {name: of_bond for name, of_bond in members.items() if of_bond}


def _wrong_members(host: Host, members: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the members of a bond."""
    members = list(members)
    down = [name for name in members if host.read(f"{NET}/{name}/bonding_slave/mii_status") in ("down", "fail")]
    down += [name for name in members if name not in down and host.read(f"{NET}/{name}/operstate") == "down"]
    if down:
        yield f"{fold(down)} down"
    up = [name for name in members if name not in down]
    speeds = Counter(speed for name in up if (speed := host.number(f"{NET}/{name}/speed") or 0) > 0)
    if len(speeds) > 1:
        yield "members of " + ", ".join(f"{speed} Mbit/s" for speed in sorted(speeds))


def _wrong_aggregation(host: Host, bond: str, members: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with LACP."""
    mode = host.read(f"{NET}/{bond}/bonding/mode") or ""
    if not mode.startswith(_LACP):
        return
    if host.read(f"{NET}/{bond}/bonding/ad_partner_mac") == _NO_PARTNER:
        yield "no partner: the switch does not aggregate its ports (LACP)"
        return
    groups = {name: host.read(f"{NET}/{name}/bonding_slave/ad_aggregator_id") for name in members}
    counted = Counter(group for group in groups.values() if group)
    if len(counted) > 1:
        usual = counted.most_common(1)[0][0]
        away = [name for name, group in groups.items() if group and group != usual]
        yield f"{fold(away)} does not aggregate with the other members (LACP)"


def _judged(check: Check, host: Host) -> Iterator[Result]:
    for bond, members in _bonds(host).items():
        wrong = [*_wrong_members(host, members), *_wrong_aggregation(host, bond, members)]
        name = shortened(bond)
        if wrong:
            yield check.failure(host.name, name, "; ".join(wrong), len(wrong), 0)
        else:
            yield check.ok(host.name, name, value=len(members))


BONDS = Check(
    id="net.bond",
    what="the members of every bond: links, speeds, aggregation with the switch",
    source=f"{NET}/BOND/bonding, {NET}/NIC/bonding_slave",
    rule="every member is up, all have one speed; with LACP there is a partner, and all members aggregate with it",
    component="nic",
    remedy="check the cable of the member, and LACP on its switch ports",
    judge=limit(_judged, _NO_BOND),
)


_SETTINGS = ("mode", "xmit_hash_policy", "lacp_rate", "miimon")


def _settings(host: Host) -> Mapping[str, Settings]:
    result: dict[str, dict[str, str]] = {}
    for bond, members in _bonds(host).items():
        texts = {name: host.read(f"{NET}/{bond}/bonding/{name}") for name in _SETTINGS}
        settings = {name: shortened(text) for name, text in texts.items() if text}
        result[shortened(bond)] = {**settings, "members": str(len(members))}
    return result


BOND_SETTINGS = Check(
    id="net.bond.mode",
    what="the settings of every bond: mode, hash of the packets, number of members",
    source=f"{NET}/BOND/bonding/mode, xmit_hash_policy, lacp_rate, miimon, slaves",
    remedy="use the same settings on all hosts",
    judge=uniform_settings(SettingsComparison(_settings, _NO_BOND)),
)

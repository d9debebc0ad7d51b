"""Speeds that both ends of an Ethernet cable advertise, and the negotiated speed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.checks.outputs import TIMED_OUT, without_answer
from fablint.preflight.host import Host
from fablint.snapshot import NicFact

_MODES = re.compile(
    r"^\s*(Supported|Advertised|Link partner advertised) link modes:((?:\s+\d{1,7}base\S{1,20})*)", re.MULTILINE
)
_MODE = re.compile(r"(\d{1,7})base")
_SPEED = re.compile(r"^\s*Speed: (\d{1,7})Mb/s", re.MULTILINE)


class _Ends(NamedTuple):
    """Speeds in Mbit/s."""

    own: frozenset[int]  # supported by the card
    offered: frozenset[int]  # advertised by the host; a subset if restricted by a setting
    other: frozenset[int]  # advertised by the other end; empty without auto-negotiation
    now: int | None


class LinkModes(HostCheck):
    id = "net.link.modes"
    what = "the speed of every Ethernet NIC of the fabric, compared with the speeds that both ends support"
    source = "ethtool NIC: supported modes, modes that the link partner advertises, speed"
    rule = "the highest that both ends support, even if all similar hosts run slower"
    severity = Severity.WARN
    component = "config"
    remedy = (
        "check the speed that is set on the host (ethtool -s) and on the port of the switch, and the rate of the cable"
    )
    absent = ABSENT

    def look(self, host: Host) -> Iterable[Result]:
        for nic in host.interfaces:
            if not nic.members and not nic.parent and nic.kind == "ethernet":
                yield self._judge(host, nic)

    def _judge(self, host: Host, nic: NicFact) -> Result:
        output = host.command(f"ethtool/{nic.name}")
        ends = ends_of(output.text)  # also if ethtool fails: some facts need root
        speed = ends.now or nic.speed
        if output.error == TIMED_OUT:
            return self.error(host.name, nic.name, f"ethtool: {TIMED_OUT}")
        if nic.state != "up":
            return self.skip(host.name, nic.name, "the link is down")
        if not ends.own or speed is None:
            return self.skip(host.name, nic.name, f"ethtool: {without_answer(output)}")
        if not ends.other:
            most = f" of {max(ends.own)}" if max(ends.own) > speed else ""
            why = "the speeds of the other end are unknown (no auto-negotiation)"
            return self.skip(host.name, nic.name, f"{speed}{most} Mbit/s; {why}")
        both = max(ends.own & ends.other, default=speed)
        if speed >= both:
            return self.ok(host.name, nic.name, value=speed, unit="Mbit/s")
        restricted = ends.offered and max(ends.offered) < both
        cause = ": the host does not advertise it" if restricted else ""
        message = f"{speed} Mbit/s, both ends support {both}{cause}"
        return self.failure(host.name, nic.name, message, speed, both, "Mbit/s")


@lru_cache(maxsize=4096)  # similar hosts say the same
def ends_of(text: str) -> _Ends:
    """Parse the speeds of both ends in the output of `ethtool NIC`."""
    speeds = {title: frozenset(map(int, _MODE.findall(modes))) for title, modes in _MODES.findall(text)}
    now = _SPEED.search(text)
    titles = ("Supported", "Advertised", "Link partner advertised")
    own, offered, other = (speeds.get(title, frozenset()) for title in titles)
    return _Ends(own, offered, other, int(now[1]) if now else None)

"""How fast both ends of an Ethernet cable could run, as they tell each other, and how fast they do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck
from fablint.preflight.checks.network.links import ABSENT
from fablint.preflight.checks.outputs import HUNG, without_answer
from fablint.preflight.host import Host
from fablint.snapshot import NicFact

_MODES = re.compile(
    r"^\s*(Supported|Advertised|Link partner advertised) link modes:((?:\s+\d{1,7}base\S{1,20})*)", re.MULTILINE
)
_MODE = re.compile(r"(\d{1,7})base")
_SPEED = re.compile(r"^\s*Speed: (\d{1,7})Mb/s", re.MULTILINE)


class _Ends(NamedTuple):
    """Speeds in Mbit/s."""

    own: frozenset[int]  # that the card can run at
    offered: frozenset[int]  # that it offers to the other end; a subset, where somebody restricted it
    other: frozenset[int]  # that the other end offers; none where it does not tell
    now: int | None


class LinkModes(HostCheck):
    id = "net.link.modes"
    what = "the speed of every Ethernet NIC of the fabric, of those that both ends of its cable could run at"
    source = "ethtool NIC: supported modes, modes that the link partner advertises, speed"
    rule = "the highest that both could, also where all like hosts run slower"
    severity = Severity.WARN
    component = "config"
    remedy = (
        "look at the speed that is set on the host (ethtool -s) and on the port of the switch, and at the cable's rate"
    )
    absent = ABSENT

    def look(self, host: Host) -> Iterable[Result]:
        for nic in host.interfaces:
            if not nic.members and not nic.parent and nic.kind == "ethernet":
                yield self._looked(host, nic)

    def _looked(self, host: Host, nic: NicFact) -> Result:
        said = host.command(f"ethtool/{nic.name}")
        ends = ends_of(said.text)  # also where it ends with an error: a user may not see all of it
        speed = ends.now or nic.speed
        if said.error == HUNG:
            return self.unclear(host.name, nic.name, f"ethtool: {HUNG}")
        if nic.state != "up":
            return self.skipped(host.name, nic.name, "the link is down")
        if not ends.own or speed is None:
            return self.skipped(host.name, nic.name, f"ethtool: {without_answer(said)}")
        if not ends.other:
            most = f" of {max(ends.own)}" if max(ends.own) > speed else ""
            why = "what the other end of the cable could do is not told (no auto-negotiation)"
            return self.skipped(host.name, nic.name, f"{speed}{most} Mbit/s; {why}")
        both = max(ends.own & ends.other, default=speed)
        if speed >= both:
            return self.passed(host.name, nic.name, value=speed, unit="Mbit/s")
        restricted = ends.offered and max(ends.offered) < both
        cause = ": the host offers no more" if restricted else ""
        message = f"{speed} Mbit/s, card and link partner both could do {both}{cause}"
        return self.wrong(host.name, nic.name, message, speed, both, "Mbit/s")


@lru_cache(maxsize=4096)  # like hosts say the same
def ends_of(text: str) -> _Ends:
    """What `ethtool NIC` says of both ends."""
    speeds = {title: frozenset(map(int, _MODE.findall(modes))) for title, modes in _MODES.findall(text)}
    now = _SPEED.search(text)
    titles = ("Supported", "Advertised", "Link partner advertised")
    own, offered, other = (speeds.get(title, frozenset()) for title in titles)
    return _Ends(own, offered, other, int(now[1]) if now else None)

"""Speeds that both ends of an Ethernet cable advertise, and the negotiated speed."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.preflight_results import Result
from fablint.preflight.check import TIMED_OUT, Check
from fablint.preflight.host import Host
from fablint.preflight.judges import limit
from fablint.preflight.judges.outputs import NO_INTERFACE, without_answer
from fablint.snapshot import NicFact
from fablint.snapshot.parsers.ethtool import link_speeds


def _link_modes(check: Check, host: Host) -> Iterable[Result]:
    for nic in host.interfaces:
        if not nic.members and not nic.parent and nic.kind == "ethernet":
            yield _judge(check, host, nic)


def _judge(check: Check, host: Host, nic: NicFact) -> Result:
    output = host.command(f"ethtool/{nic.name}")
    ends = link_speeds(output.text)  # also if ethtool fails: some facts need root
    speed = ends.now or nic.speed
    if output.error == TIMED_OUT:
        return check.error(host.name, nic.name, f"ethtool: {TIMED_OUT}")
    if nic.state != "up":
        return check.skip(host.name, nic.name, "the link is down")
    if not ends.own or speed is None:
        return check.skip(host.name, nic.name, f"ethtool: {without_answer(output)}")
    if not ends.other:
        most = f" of {max(ends.own)}" if max(ends.own) > speed else ""
        why = "the speeds of the other end are unknown (no auto-negotiation)"
        return check.skip(host.name, nic.name, f"{speed}{most} Mbit/s; {why}")
    both = max(ends.own & ends.other, default=speed)
    if speed >= both:
        return check.ok(host.name, nic.name, value=speed, unit="Mbit/s")
    restricted = ends.offered and max(ends.offered) < both
    cause = ": the host does not advertise it" if restricted else ""
    message = f"{speed} Mbit/s, both ends support {both}{cause}"
    return check.failure(host.name, nic.name, message, speed, both, "Mbit/s")


LINK_MODES = Check(
    id="net.link.modes",
    what="the speed of every Ethernet NIC of the fabric, compared with the speeds that both ends support",
    source="ethtool NIC: supported modes, modes that the link partner advertises, speed",
    rule="the highest that both ends support, even if all similar hosts run slower",
    remedy=(
        "check the speed that is set on the host (ethtool -s) and on the port of the switch, and the rate of the cable"
    ),
    judge=limit(_link_modes, NO_INTERFACE),
)

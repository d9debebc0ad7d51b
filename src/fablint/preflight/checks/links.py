"""Network interfaces of the fabric: link, speed, MTU, flaps, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fablint.fitness import Result, Severity
from fablint.preflight.check import HostCheck, UniformCheck
from fablint.preflight.host import NET, Host


class LinkUp(HostCheck):
    id = "net.link.up"
    what = "the link of every NIC of the fabric"
    source = f"{NET}/NIC/operstate, carrier"
    rule = "up"
    severity = Severity.FAIL
    component = "nic"
    mend = "look at cable, NIC and the port of the switch"
    absent = "no network interface of the fabric"

    def look(self, host: Host) -> Iterable[Result]:
        for nic in host.interfaces:
            if not nic.state:
                yield self.skipped(host.name, nic.name, "the driver tells neither state nor carrier")
            elif nic.state == "up":
                yield self.passed(host.name, nic.name)
            else:
                yield self.wrong(host.name, nic.name, f"link {nic.state}", nic.state, "up")


class LinkMtu(UniformCheck):
    id = "net.link.mtu"
    what = "the MTU of every NIC of the fabric"
    source = f"{NET}/NIC/mtu"
    rule = "as most like hosts have it"
    severity = Severity.FAIL
    component = "config"
    mend = "set the same MTU everywhere; long messages are lost on the way"
    words = "MTU {}"
    absent = "no network interface of the fabric"

    def values(self, host: Host) -> Mapping[str, Any]:
        return {nic.name: nic.mtu for nic in host.interfaces}

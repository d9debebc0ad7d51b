"""The network of a host that the other checks examine."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.names import fold
from fablint.model.preflight_results import NETWORK, Result, Severity
from fablint.preflight.base import HostCheck
from fablint.preflight.host import INFINIBAND, Host


class NetworkExamined(HostCheck):
    id = NETWORK
    what = "which NICs belong to the fabric"
    source = "/sys/class/net, /sys/class/infiniband, ip -j addr, ip -j route, --nic"
    rule = "at least one NIC; a host without one is not fit"
    severity = Severity.FAIL
    component = "nic"
    remedy = "name the NICs of the fabric with --nic"

    def look(self, host: Host) -> Iterable[Result]:
        ports = [f"{device}/{port}" for device, port in host.ports]
        if host.interfaces:
            return [self.ok(host.name, "", value=fold(nic.name for nic in host.interfaces))]
        if host.snapshot.incomplete:
            return [self.error(host.name, "", "the time limit was reached before its interfaces were read")]
        if host.snapshot.nics:
            return [self.error(host.name, "", f"it has no {', '.join(host.snapshot.nics)} (--nic)")]
        if host.cxi or any(_is_infiniband(host, *port) for port in host.ports):
            message = "no network interface, so no addresses and no pings"
            return [self.ok(host.name, "", message, fold([*ports, *host.cxi]))]
        if ports:
            return [self.error(host.name, "", f"no network interface of {fold(ports)} can be seen here")]
        return [self.error(host.name, "", "no network interface except loopback and virtual ones")]


def _is_infiniband(host: Host, device: str, port: str) -> bool:
    return host.read(f"{INFINIBAND}/{device}/ports/{port}/link_layer") == "InfiniBand"

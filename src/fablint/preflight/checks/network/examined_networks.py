"""The network of a host that the other checks examine."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.names import fold
from fablint.model.preflight_results import NETWORK, Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import limit


def _network_examined(check: Check, host: Host) -> Iterable[Result]:
    ports = [port.target for port in host.ports]
    if host.interfaces:
        return [check.ok(host.name, "", value=fold(nic.name for nic in host.interfaces))]
    if host.snapshot.incomplete:
        return [check.error(host.name, "", "the time limit was reached before its interfaces were read")]
    if host.snapshot.nics:
        return [check.error(host.name, "", f"it has no {', '.join(host.snapshot.nics)} (--nic)")]
    if host.cxi or any(port.link_layer == "InfiniBand" for port in host.ports):
        message = "no network interface, so no addresses and no pings"
        return [check.ok(host.name, "", message, fold([*ports, *host.cxi]))]
    if ports:
        return [check.error(host.name, "", f"no network interface of {fold(ports)} can be seen here")]
    return [check.error(host.name, "", "no network interface except loopback and virtual ones")]


NETWORK_EXAMINED = Check(
    id=NETWORK,
    what="which NICs belong to the fabric",
    source="/sys/class/net, /sys/class/infiniband, ip -j addr, ip -j route, --nic",
    rule="at least one NIC; a host without one is not fit",
    severity=Severity.FAIL,
    component="nic",
    remedy="name the NICs of the fabric with --nic",
    judge=limit(_network_examined),
)

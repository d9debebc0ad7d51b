"""Checks of Slingshot NICs: link, speed, retry, pause, firmware, services. Cassini-1 and Cassini-2 differ in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge, SiteValues, Value
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import CXI, NET, Host
from fablint.preflight.judges import limit, uniform
from fablint.preflight.judges.growth import Limit, excess
from fablint.preflight.judges.outputs import NO_SLINGSHOT_NIC, instead_of
from fablint.snapshot.host_snapshot import Tree, integer
from fablint.snapshot.memo import once_per_folder
from fablint.snapshot.parsers.ama import decode
from fablint.snapshot.parsers.slingshot_tools import enabled_services
from fablint.text.sanitise import shortened

_FLAPS_1H, _FLAPS_10H = 5, 10
_NO_TIME = 1 << 40
_RING = 10  # restarts that a NIC stores


def port_setting(file: str, expected: str, holds: Callable[[str], bool] | None = None) -> Judge:
    """Judge one property of each port; a port without a link is only reported by the check of the link."""
    name = file.replace("_", " ")
    is_met = holds or expected.__eq__

    def look(check: Check, host: Host) -> Iterator[Result]:
        for device in host.cxi:
            text = host.cxi_port(device, file)
            if text is None:
                yield check.skip(host.name, device, f"the driver does not report its {name}")
            elif file != "link" and device not in host.cxi_up:
                yield check.skip(host.name, device, "the link is not up")
            elif is_met(text):
                yield check.ok(host.name, device, value=text)
            else:
                yield check.failure(host.name, device, f"{name} {text}", text, expected)

    def values(_: Fleet, host: Host) -> Mapping[str, Value]:
        shown = host.cxi if file == "link" else host.cxi_up
        return {device: host.cxi_port(device, file) if device in shown else None for device in host.cxi}

    return limit(look, NO_SLINGSHOT_NIC, site=SiteValues(values, lambda _, value: f"{name} {value}"))


CXI_LINK = Check(
    id="cxi.link",
    what="the link of every Slingshot NIC",
    source=f"{CXI}/CXI/device/port/link",
    rule="up",
    severity=Severity.FAIL,
    component="nic",
    remedy="check the cable and the switch port; slingshot-diag reports details",
    judge=port_setting("link", "up"),
)


def _cxi_speed(host: Host) -> Mapping[str, Any]:
    return {device: host.cxi_port(device, "speed") if device in host.cxi_up else None for device in host.cxi}


CXI_SPEED = Check(
    id="cxi.speed",
    what="the speed of every Slingshot NIC",
    source=f"{CXI}/CXI/device/port/speed",
    severity=Severity.FAIL,
    component="cable",
    far_end=True,
    remedy="reseat the cable, then replace it; compare the port policy of the switch",
    judge=uniform(_cxi_speed, "speed {}", absent="no Slingshot NIC with a link"),
)


CXI_RETRY = Check(
    id="cxi.llr",
    what="link layer retry of every Slingshot NIC",
    source=f"{CXI}/CXI/device/port/link_layer_retry",
    rule="on; without it every bit error loses a packet",
    severity=Severity.FAIL,
    component="nic",
    remedy="set the private flag llr with ethtool, and the same on the switch port",
    judge=port_setting("link_layer_retry", "on"),
)


CXI_LOOPBACK = Check(
    id="cxi.loopback",
    what="the loopback mode of every Slingshot NIC",
    source=f"{CXI}/CXI/device/port/loopback",
    rule="off; in loopback a NIC receives only its own packets",
    severity=Severity.FAIL,
    component="nic",
    remedy="clear the private flags internal-loopback and external-loopback with ethtool",
    judge=port_setting("loopback", "off"),
)


def _has_flow_control(text: str) -> bool:
    """Return whether a setting of flow control is on: priority flow control, or a number other than 0."""
    return text.startswith("pfc") or bool(integer(text))  # or a bit map of the classes with PFC


CXI_PAUSE = Check(
    id="cxi.pause",
    what="priority flow control of every Slingshot NIC",
    source=f"{CXI}/CXI/device/port/pause",
    rule="pfc/802.1qbb",
    severity=Severity.FAIL,
    remedy="enable PFC on the port with the settings of the switch",
    judge=port_setting("pause", "pfc/802.1qbb", _has_flow_control),
)


def _cxi_flaps(check: Check, host: Host) -> Iterable[Result]:
    for device in host.cxi:
        folder = f"{CXI}/{device}/device/link_restarts"
        restarts = _restart_times(host.snapshot.folder(folder))
        if not restarts:
            yield check.skip(host.name, device, "the driver does not report restarts")
            continue
        ages = [host.snapshot.time - moment for moment in restarts if 0 < moment <= host.snapshot.time]
        yield _judged(check, host.name, device, ages)


def _judged(check: Check, host: str, device: str, ages: list[float]) -> Result:
    hour, ten = (sum(age <= hours * 3600 for age in ages) for hours in (1, 10))
    if hour >= _FLAPS_1H:
        return check.failure(host, device, f"link restarted {_restarts(hour)} in 1 h", hour, _FLAPS_1H - 1)
    if ten >= _FLAPS_10H:
        return check.warning(host, device, f"link restarted {_restarts(ten)} in 10 h", ten, _FLAPS_10H - 1)
    return check.ok(host, device, value=ten)


CXI_FLAPS = Check(
    id="cxi.flaps",
    what="the link restarts of every Slingshot NIC",
    source=f"{CXI}/CXI/device/link_restarts/time_0 to time_9",
    rule=f"fewer than {_FLAPS_1H} in an hour; {_FLAPS_10H} in ten hours warn",
    severity=Severity.FAIL,
    component="cable",
    remedy="clean and reseat the cable, then replace it; show-flaps on the fabric manager shows which end",
    judge=limit(_cxi_flaps, NO_SLINGSHOT_NIC),
)


@once_per_folder
def _restart_times(folder: Tree) -> list[int]:
    """Return the times of link restarts in seconds since 1970."""
    times = (integer(text) for text in folder.values() if isinstance(text, str))
    return [moment for moment in times if moment is not None and moment < _NO_TIME]


def _restarts(count: int) -> str:
    return f"{'at least ' if count >= _RING else ''}{count} times"


def _cxi_firmware(host: Host) -> Mapping[str, Any]:
    versions = {device: host.read(f"{CXI}/{device}/device/uc/version") for device in host.cxi}
    return {device: shortened(version) if version else None for device, version in versions.items()}


CXI_FIRMWARE = Check(
    id="cxi.fw",
    what="the firmware of every Slingshot NIC",
    source=f"{CXI}/CXI/device/uc/version",
    component="nic",
    remedy="install the same firmware on all hosts",
    judge=uniform(_cxi_firmware, "firmware {}", absent=NO_SLINGSHOT_NIC),
)


_GIVEN_UP = ("connections_cancelled", "pkts_cancelled_o", "pkts_cancelled_u")
_TIMEOUTS = ("sct_timeouts", "spt_timeouts", "tct_timeouts")


def _cxi_retry_handler(check: Check, host: Host) -> Iterable[Result]:
    for device in host.cxi:
        output = host.command(f"cxi_rh/{device}")
        state = output.text.strip()
        given_up = _grown(host, device)
        if output.ran and state != "active":
            is_state = 2 <= len(state) <= 20 and state.isascii() and state.isalpha() and state.islower()
            yield (check.failure if is_state else check.error)(host.name, device, f"retry handler {shortened(state)}")
        elif given_up:
            yield check.warning(host.name, device, ", ".join(given_up))
        elif state == "active" or host.snapshot.names(f"/run/cxi/{device}"):
            yield check.ok(host.name, device)
        else:
            yield check.skip(host.name, device, output.error or "systemd does not report its state")


def _grown(host: Host, device: str) -> list[str]:
    """Describe cancelled packets and connections, and timeouts above a limit, since a few are normal."""
    first, last = host.snapshot.readings_in(f"/run/cxi/{device}")
    if host.before is None and first == last:
        return []
    result = []
    for name in (*_GIVEN_UP, *_TIMEOUTS):
        limit = Limit(1, 1, 1) if name in _GIVEN_UP else Limit(10, 10)
        if grown := excess(host, f"/run/cxi/{device}/{name}", limit):
            result.append(f"{name.replace('_', ' ')}: {grown}")
    return result


CXI_RETRY_HANDLER = Check(
    id="cxi.rh",
    what="the retry handler of every Slingshot NIC",
    source="systemctl is-active cxi_rh@CXI; /run/cxi/CXI",
    rule="active; no cancelled packet or connection within a week, and fewer than 10 timeouts in an hour",
    severity=Severity.FAIL,
    component="host",
    remedy="systemctl restart cxi_rh@CXI; cancelled packets indicate a peer or a path without an answer",
    judge=limit(_cxi_retry_handler, NO_SLINGSHOT_NIC),
)


def _cxi_service(check: Check, host: Host) -> Iterable[Result]:
    if not host.cxi:
        return
    output = host.command("cxi_service")
    if instead := instead_of(check, host.name, "", output):
        yield instead
        return
    services = enabled_services(output.text)
    if not services:
        yield check.error(host.name, "", "cxi_service lists no service")
    for device, enabled in services.items():
        if enabled:
            yield check.ok(host.name, device)
        else:
            yield check.failure(host.name, device, "no service is enabled")


CXI_SERVICE = Check(
    id="cxi.service",
    what="the services through which programs use Slingshot NICs",
    source="cxi_service list",
    rule="at least one is enabled on every NIC",
    remedy="cxi_service enable -s 1, or let the scheduler create one for each job",
    judge=limit(_cxi_service, NO_SLINGSHOT_NIC),
)


def _cxi_nid(check: Check, host: Host) -> Iterable[Result]:
    for device in host.cxi:
        nid = host.number(f"{CXI}/{device}/device/properties/nid")
        mac = host.read(f"{NET}/{_interface(host, device)}/address") or ""
        if nid is None or decode(mac) is None:
            yield check.skip(host.name, device, "it has no NID, or no algorithmic MAC address")
        elif nid == (expected := int(mac.replace(":", ""), 16) & 0xFFFFF):
            yield check.ok(host.name, device, value=f"{nid:#x}")
        else:
            message = f"NID {nid:#07x}, but {expected:#07x} according to its address {mac}"
            yield check.failure(host.name, device, message, f"{nid:#x}", f"{expected:#x}")


CXI_NID = Check(
    id="cxi.nid",
    what="the fabric address of every Slingshot NIC",
    source=f"{CXI}/CXI/device/properties/nid; {NET}/NIC/address",
    rule="the NID is the low 20 bits of the algorithmic MAC address",
    severity=Severity.FAIL,
    remedy="set the algorithmic MAC address again (slingshot-network-config), then restart the retry handler",
    judge=limit(_cxi_nid, NO_SLINGSHOT_NIC),
)


def _interface(host: Host, device: str) -> str:
    """Return the network interface of a NIC; by default the one with the same number."""
    named = host.snapshot.names(f"{CXI}/{device}/device/net")
    return named[0] if named else device.replace("cxi", "hsn")

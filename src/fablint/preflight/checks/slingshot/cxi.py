"""Checks of Slingshot NICs: link, speed, retry, pause, firmware, services. Cassini-1 and Cassini-2 differ in files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from fablint.model import ComponentKind
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck, UniformCheck, Value
from fablint.preflight.checks.growth import Limit, excess
from fablint.preflight.checks.outputs import instead_of
from fablint.preflight.host import CXI, NET, Host
from fablint.snapshot.host_snapshot import Tree, integer
from fablint.snapshot.memo import once_per_folder
from fablint.snapshot.parsers.ama import decode
from fablint.text.sanitise import shortened

NO_NIC = "no Slingshot NIC"
LINE_RATES = {  # bits per second on the wire, including the coding
    "CK_400G": 425e9,
    "BS_200G": 212.5e9,
    "CD_100G": 106.25e9,
    "BJ_100G": 103.125e9,
    "CD_50G": 53.125e9,
}
_FLAPS_1H, _FLAPS_10H = 5, 10
_NO_TIME = 1 << 40
_RING = 10  # restarts that a NIC stores


def nominal_gbit(host: Host, device: str) -> float | None:
    """Return the nominal speed of a NIC in Gbit/s: 200 for `BS_200G`; None if unknown."""
    speed = re.fullmatch(r"[A-Z]+_(\d{1,4})G", host.cxi_port(device, "speed") or "")
    return float(speed[1]) if speed else None


class _PortCheck(HostCheck):
    """Base of checks of one property of each port. A port without a link is only reported by the link check."""

    component: ClassVar[ComponentKind] = "nic"
    absent = NO_NIC
    severity = Severity.FAIL
    expects = True
    file: ClassVar[str]
    words: ClassVar[str]
    expected: ClassVar[str]

    def look(self, host: Host) -> Iterable[Result]:
        for device in host.cxi:
            text = host.cxi_port(device, self.file)
            if text is None:
                yield self.skip(host.name, device, f"the driver does not report its {self.file.replace('_', ' ')}")
            elif self.file != "link" and device not in host.cxi_up:
                yield self.skip(host.name, device, "the link is not up")
            elif self.holds(text):
                yield self.ok(host.name, device, value=text)
            else:
                yield self.failure(host.name, device, f"{self.words} {text}", text, self.expected)

    def holds(self, text: str) -> bool:
        return text == self.expected

    def site_values(self, host: Host) -> Mapping[str, Value]:
        shown = host.cxi if self.file == "link" else host.cxi_up
        return {device: host.cxi_port(device, self.file) if device in shown else None for device in host.cxi}

    def worded(self, target: str, value: Value) -> str:
        return f"{self.words} {value}"


class CxiLink(_PortCheck):
    id = "cxi.link"
    what = "the link of every Slingshot NIC"
    source = f"{CXI}/CXI/device/port/link"
    rule = "up"
    remedy = "check the cable and the switch port; slingshot-diag reports details"
    file, words, expected = "link", "link", "up"


class CxiSpeed(UniformCheck):
    id = "cxi.speed"
    what = "the speed of every Slingshot NIC"
    source = f"{CXI}/CXI/device/port/speed"
    rule = "the same as on most similar hosts"
    severity = Severity.FAIL
    component = "cable"
    remedy = "reseat the cable, then replace it; compare the port policy of the switch"
    words = "speed {}"
    far_end = True
    absent = "no Slingshot NIC with a link"

    def values(self, host: Host) -> Mapping[str, Any]:
        return {device: host.cxi_port(device, "speed") if device in host.cxi_up else None for device in host.cxi}


class CxiRetry(_PortCheck):
    id = "cxi.llr"
    what = "link layer retry of every Slingshot NIC"
    source = f"{CXI}/CXI/device/port/link_layer_retry"
    rule = "on; without it every bit error loses a packet"
    remedy = "set the private flag llr with ethtool, and the same on the switch port"
    file, words, expected = "link_layer_retry", "link layer retry", "on"


class CxiLoopback(_PortCheck):
    id = "cxi.loopback"
    what = "the loopback mode of every Slingshot NIC"
    source = f"{CXI}/CXI/device/port/loopback"
    rule = "off; in loopback a NIC receives only its own packets"
    remedy = "clear the private flags internal-loopback and external-loopback with ethtool"
    file, words, expected = "loopback", "loopback", "off"


class CxiPause(_PortCheck):
    id = "cxi.pause"
    what = "priority flow control of every Slingshot NIC"
    source = f"{CXI}/CXI/device/port/pause"
    rule = "pfc/802.1qbb"
    component = "config"
    remedy = "enable PFC on the port with the settings of the switch"
    file, words, expected = "pause", "pause", "pfc/802.1qbb"

    def holds(self, text: str) -> bool:
        """Return whether a setting of flow control is on: priority flow control, or a number other than 0."""
        return text.startswith("pfc") or bool(integer(text))  # or a bit map of the classes with PFC


class CxiFlaps(HostCheck):
    id = "cxi.flaps"
    what = "the link restarts of every Slingshot NIC"
    source = f"{CXI}/CXI/device/link_restarts/time_0 to time_9"
    rule = f"fewer than {_FLAPS_1H} in an hour; {_FLAPS_10H} in ten hours warn"
    severity = Severity.FAIL
    component = "cable"
    remedy = "clean and reseat the cable, then replace it; show-flaps on the fabric manager shows which end"
    absent = NO_NIC

    def look(self, host: Host) -> Iterable[Result]:
        for device in host.cxi:
            folder = f"{CXI}/{device}/device/link_restarts"
            known = _restart_times(host.snapshot.folder(folder))
            if not known:
                yield self.skip(host.name, device, "the driver does not report restarts")
                continue
            ages = [host.snapshot.time - moment for moment in known if 0 < moment <= host.snapshot.time]
            yield self._judged(host.name, device, ages)

    def _judged(self, host: str, device: str, ages: list[float]) -> Result:
        hour, ten = (sum(age <= hours * 3600 for age in ages) for hours in (1, 10))
        if hour >= _FLAPS_1H:
            return self.failure(host, device, f"link restarted {_restarts(hour)} in 1 h", hour, _FLAPS_1H - 1)
        if ten >= _FLAPS_10H:
            return self.warning(host, device, f"link restarted {_restarts(ten)} in 10 h", ten, _FLAPS_10H - 1)
        return self.ok(host, device, value=ten)


@once_per_folder
def _restart_times(folder: Tree) -> list[int]:
    """Return the times of link restarts in seconds since 1970."""
    times = (integer(text) for text in folder.values() if isinstance(text, str))
    return [moment for moment in times if moment is not None and moment < _NO_TIME]


def _restarts(count: int) -> str:
    return f"{'at least ' if count >= _RING else ''}{count} times"


class CxiFirmware(UniformCheck):
    id = "cxi.fw"
    what = "the firmware of every Slingshot NIC"
    source = f"{CXI}/CXI/device/uc/version"
    rule = "the same as on most similar hosts"
    severity = Severity.WARN
    component = "nic"
    remedy = "install the same firmware on all hosts"
    words = "firmware {}"
    absent = NO_NIC

    def values(self, host: Host) -> Mapping[str, Any]:
        versions = {device: host.read(f"{CXI}/{device}/device/uc/version") for device in host.cxi}
        return {device: shortened(version) if version else None for device, version in versions.items()}


class CxiRetryHandler(HostCheck):
    id = "cxi.rh"
    what = "the retry handler of every Slingshot NIC"
    source = "systemctl is-active cxi_rh@CXI; /run/cxi/CXI"
    rule = "active; no cancelled packet or connection within a week, and fewer than 10 timeouts in an hour"
    severity = Severity.FAIL
    component = "host"
    remedy = "systemctl restart cxi_rh@CXI; cancelled packets indicate a peer or a path without an answer"
    absent = NO_NIC

    _GIVEN_UP = ("connections_cancelled", "pkts_cancelled_o", "pkts_cancelled_u")
    _TIMEOUTS = ("sct_timeouts", "spt_timeouts", "tct_timeouts")

    def look(self, host: Host) -> Iterable[Result]:
        for device in host.cxi:
            output = host.command(f"cxi_rh/{device}")
            state = output.text.strip()
            given_up = self._grown(host, device)
            if output.ran and state != "active":
                known = re.fullmatch(r"[a-z]{2,20}", state)
                yield (self.failure if known else self.error)(host.name, device, f"retry handler {shortened(state)}")
            elif given_up:
                yield self.warning(host.name, device, ", ".join(given_up))
            elif state == "active" or host.snapshot.names(f"/run/cxi/{device}"):
                yield self.ok(host.name, device)
            else:
                yield self.skip(host.name, device, output.error or "systemd does not report its state")

    def _grown(self, host: Host, device: str) -> list[str]:
        """Describe cancelled packets and connections, and timeouts above a limit, since a few are normal."""
        first, last = host.snapshot.readings_in(f"/run/cxi/{device}")
        if host.before is None and first == last:
            return []
        found = []
        for name in (*self._GIVEN_UP, *self._TIMEOUTS):
            limit = Limit(1, 1, 1) if name in self._GIVEN_UP else Limit(10, 10)
            if grown := excess(host, f"/run/cxi/{device}/{name}", limit):
                found.append(f"{name.replace('_', ' ')}: {grown}")
        return found


class CxiService(HostCheck):
    id = "cxi.service"
    what = "the services through which programs use Slingshot NICs"
    source = "cxi_service list"
    rule = "at least one is enabled on every NIC"
    severity = Severity.WARN
    component = "config"
    remedy = "cxi_service enable -s 1, or let the scheduler create one for each job"
    absent = NO_NIC

    def look(self, host: Host) -> Iterable[Result]:
        if not host.cxi:
            return
        output = host.command("cxi_service")
        if instead := instead_of(self, host.name, "", output):
            yield instead
            return
        services = dict(_services(output.text))
        if not services:
            yield self.error(host.name, "", "cxi_service lists no service")
        for device, enabled in services.items():
            if enabled:
                yield self.ok(host.name, device)
            else:
                yield self.failure(host.name, device, "no service is enabled")


def _services(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each device with whether one of its services is enabled."""
    device, found = "", dict[str, bool]()
    for line in text.splitlines():
        if head := re.match(r"\s*(?:Device\s*:\s*)?(cxi\d{1,3})\b", line):
            device = head[1]
        elif state := re.match(r"\s*Enabled\s*:\s*(\w+)", line):
            found[device] = found.get(device, False) or state[1].lower() == "yes"
    yield from found.items()


class CxiNid(HostCheck):
    id = "cxi.nid"
    what = "the fabric address of every Slingshot NIC"
    source = f"{CXI}/CXI/device/properties/nid; {NET}/NIC/address"
    rule = "the NID is the low 20 bits of the algorithmic MAC address"
    severity = Severity.FAIL
    component = "config"
    remedy = "set the algorithmic MAC address again (slingshot-network-config), then restart the retry handler"
    absent = NO_NIC

    def look(self, host: Host) -> Iterable[Result]:
        for device in host.cxi:
            nid = host.number(f"{CXI}/{device}/device/properties/nid")
            mac = host.read(f"{NET}/{_interface(host, device)}/address") or ""
            if nid is None or decode(mac) is None:
                yield self.skip(host.name, device, "it has no NID, or no algorithmic MAC address")
            elif nid == (expected := int(mac.replace(":", ""), 16) & 0xFFFFF):
                yield self.ok(host.name, device, value=f"{nid:#x}")
            else:
                message = f"NID {nid:#07x}, but {expected:#07x} according to its address {mac}"
                yield self.failure(host.name, device, message, f"{nid:#x}", f"{expected:#x}")


def _interface(host: Host, device: str) -> str:
    """Return the network interface of a NIC; by default the one with the same number."""
    named = host.snapshot.names(f"{CXI}/{device}/device/net")
    return named[0] if named else device.replace("cxi", "hsn")

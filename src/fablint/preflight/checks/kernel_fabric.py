"""The kernel log: what it tells of NICs and networks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from fablint.fitness import Severity
from fablint.preflight.checks.kernel import BDF, LogCheck, PatternCheck
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.kernel_log import ERROR, Event, Grade, Line, Pattern

_FLAPS = 10  # links that went down within a day


class LogNic(PatternCheck):
    id = "log.nic"
    what = "errors that drivers of NICs reported"
    rule = "no failed health, no command without answer; heat, cables, power and hung queues warn for a day"
    severity = Severity.FAIL
    component = "nic"
    mend = "look at the NIC's module, cable, cooling and slot; reset or replace the NIC"
    patterns = (
        Pattern("health compromised", re.compile(rf"{BDF}: .*health compromised"), Grade.FAIL, "health compromised"),
        Pattern(
            "timeout. Will cause a leak",
            re.compile(rf"{BDF}: wait_func.*timeout"),
            Grade.FAIL,
            "command without answer",
        ),
        Pattern("Port module event[error]", re.compile(rf"{BDF}: .*High Temperature"), Grade.WARN, "module too hot"),
        Pattern("Port module event[error]", re.compile(rf"{BDF}: .*Cable error"), Grade.WARN, "cable error"),
        Pattern(
            "insufficient power on the PCIe slot",
            re.compile(rf"{BDF}: .*insufficient power"),
            Grade.WARN,
            "too little power in the slot",
        ),
        Pattern("NETDEV WATCHDOG", re.compile(r"NETDEV WATCHDOG: (?P<device>[\w.-]+)"), Grade.WARN, "queue hung"),
        Pattern("Link down", re.compile(r"(?P<device>[\w.-]+): Link down"), Grade.NOTE, "link down", _FLAPS),
        Pattern(
            "NIC Link is Down", re.compile(r"(?P<device>[\w.-]+):? NIC Link is Down"), Grade.NOTE, "link down", _FLAPS
        ),
    )

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        rails = {nic.name for nic in host.rails}
        for event in super().events(host, lines):
            if event.what != "link down" or event.device in rails:  # a management port may be unplugged
                yield event


class LogCxi(LogCheck):
    id = "log.cxi"
    what = "errors that Slingshot NICs reported, by their class"
    rule = "none critical or uncorrected; degraded ones and many restarts of a link warn for a day"
    severity = Severity.FAIL
    component = "nic"
    mend = "look at NIC, cable and switch port; reset the NIC or reboot the host"
    words = (ERROR, "CXI_EVENT_LINK_DOWN")

    _DEVICE = r"\b(?P<device>cxi\d{1,3})(?:\[[^\]]{0,20}\])?:? "
    _ERROR = re.compile(_DEVICE + r"C_EC_(?P<grade>[A-Z]+)\w*: +\w+ error: (?P<name>\w{1,60})")
    _RATE = re.compile(_DEVICE + r"PCIe error: ")
    _DOWN = re.compile(_DEVICE + r"CXI_EVENT_LINK_DOWN")
    _GRADES: ClassVar = {"CRIT": Grade.FAIL, "UNCOR": Grade.FAIL, "DEGRD": Grade.WARN}  # others are notes
    # the first comes with every link, the second with jobs that were aborted
    _HARMLESS = frozenset({"llr_eopb", "ptl_invld_vni"})
    _MEANS: ClassVar = {
        "tct_tbl_dealloc": "reboot the host",
        "port_dfa_mismatch": "the algorithmic MAC is wrong",
        "pfc_fifo_oflw": "NIC and switch differ in priorities",
    }

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        down = {found["device"] for line in lines if (found := self._DOWN.search(line.text))}
        for line in lines:
            if found := self._ERROR.search(line.text):
                name = found["name"]
                harmless = name in self._HARMLESS or (name == "pcs_tx_dp_err" and found["device"] in down)
                grade = Grade.NOTE if harmless else self._GRADES.get(found["grade"], Grade.NOTE)
                means = self._MEANS.get(name)
                yield Event(grade, f"{name} ({means})" if means else name, found["device"], line)
            elif found := self._RATE.search(line.text):
                yield Event(Grade.WARN, "more PCIe errors than the standard allows", found["device"], line)
            elif found := self._DOWN.search(line.text):
                yield Event(Grade.NOTE, "link down", found["device"], line, many=_FLAPS)

    def lacks(self, host: Host) -> str:
        return "" if host.cxi else "no Slingshot NIC"


class LogArp(PatternCheck):
    id = "log.arp"
    what = "overflows of the neighbour table"
    rule = "none within a day"
    severity = Severity.WARN
    component = "config"
    mend = "raise net.ipv4.neigh.default.gc_thresh1 to gc_thresh3"
    patterns = (
        Pattern(
            "table overflow",
            re.compile(r"(?:(?P<device>\w{1,30}): )?[Nn]eighbou?r table overflow"),
            Grade.WARN,
            "neighbour table full",
        ),
    )


class LogIb(PatternCheck):
    id = "log.ib"
    what = "multicast groups that IP over InfiniBand could not join"
    rule = "none within a day"
    severity = Severity.WARN
    component = "config"
    mend = "look at the subnet manager, the partition key and the rate of the port"
    patterns = (
        Pattern(
            "multicast join failed",
            re.compile(r"(?P<device>[\w.-]{1,30}): multicast join failed"),
            Grade.WARN,
            "multicast join failed",
        ),
    )

    def lacks(self, host: Host) -> str:
        return "" if host.snapshot.names(INFINIBAND) else "no InfiniBand device"

"""Checks of the kernel log for errors of NICs and networks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from fablint.model.preflight_results import Severity
from fablint.preflight.checks.log_checks import BDF, LogCheck, PatternCheck
from fablint.preflight.checks.network import driver_log
from fablint.preflight.host import INFINIBAND, Host
from fablint.snapshot.cards import addresses_of
from fablint.snapshot.parsers.kernel_log import ERROR, Event, Grade, Line, Pattern, Recovery, RecoveryPattern

_FLAPS = 10  # links that went down within a day
_FATAL = ("health compromised", "fatal error", "recovery failed", "driver in error state", "command without answer")
_ISSUE = "firmware reports a health issue"
_MODULE = ("module too hot", "cable error")
_POWER = "too little power in the slot"


class LogNic(PatternCheck):
    id = "log.nic"
    what = "errors that drivers of NICs reported"
    rule = (
        "no failed health, no command without an answer, no failed reset within a week without a later recovery "
        "(reported by the driver, or a link that is up again); heat, cables, power and stalled queues warn for a day; "
        "NICs outside the fabric only warn"
    )
    severity = Severity.FAIL
    component = "nic"
    remedy = "check the NIC's module, cable, cooling and slot; reset or replace the NIC"
    patterns = (
        Pattern("health compromised", re.compile(rf"{BDF}: .*health compromised"), Grade.FAIL, _FATAL[0]),
        Pattern("Fatal error ", re.compile(rf"mlx5_core {BDF}: .*Fatal error \d+ detected"), Grade.FAIL, _FATAL[1]),
        Pattern(
            "health recovery ", re.compile(rf"{BDF}: .*health recovery (?:failed|flow aborted)"), Grade.FAIL, _FATAL[2]
        ),
        Pattern("Driver is in error state", re.compile(rf"{BDF}: .*Driver is in error state"), Grade.FAIL, _FATAL[3]),
        Pattern("timeout. Will cause a leak", re.compile(rf"{BDF}: wait_func.*timeout"), Grade.FAIL, _FATAL[4]),
        # the driver reports severities of its firmware as log levels: 0 to 2 are worse than an error
        Pattern(
            "Health issue observed",
            re.compile(rf"{BDF}: .*Health issue observed, .*severity\([0-2]\)"),
            Grade.FAIL,
            _ISSUE,
        ),
        Pattern(
            "Health issue observed",
            re.compile(rf"{BDF}: .*Health issue observed, .*severity\(3\)"),
            Grade.WARN,
            _ISSUE,
        ),
        Pattern(
            "mlx5_load_one failed", re.compile(rf"{BDF}: .*mlx5_load_one failed"), Grade.WARN, "driver did not load"
        ),
        Pattern("High temperature on sensors", re.compile(rf"{BDF}: .*High temperature on"), Grade.WARN, "NIC too hot"),
        Pattern("Port module event[error]", re.compile(rf"{BDF}: .*High Temperature"), Grade.WARN, _MODULE[0]),
        Pattern("Port module event[error]", re.compile(rf"{BDF}: .*Cable error"), Grade.WARN, _MODULE[1]),
        Pattern(
            "insufficient power on the PCIe slot",
            re.compile(rf"{BDF}: .*insufficient power"),
            Grade.WARN,
            _POWER,
        ),
        Pattern("Link down", re.compile(r"(?P<device>[\w.-]+): Link down"), Grade.NOTE, "link down", _FLAPS),
        Pattern(
            "NIC Link is Down", re.compile(r"(?P<device>[\w.-]+):? NIC Link is Down"), Grade.NOTE, "link down", _FLAPS
        ),
        *driver_log.PATTERNS,
    )

    endings = (
        RecoveryPattern("health re", re.compile(rf"{BDF}: .*health re[cv]overy succe+ded"), (*_FATAL, _ISSUE)),
        RecoveryPattern("Port module event", re.compile(rf"{BDF}: .*module \d+, Cable plugged"), _MODULE),
        RecoveryPattern("sufficient power", re.compile(rf"{BDF}: .*advertised sufficient power"), (_POWER,)),
        *driver_log.ENDINGS,
    )

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        rails = {nic.name for nic in host.rails}
        cards = addresses_of(host.snapshot)
        others = {*cards.values()} - {card for name, card in cards.items() if name in rails}
        for event in super().events(host, lines):
            if event.grade is Grade.FAIL and event.device in others:
                yield event._replace(grade=Grade.WARN)
            elif event.what != "link down" or event.device in rails:  # a management port may be unplugged
                yield event


class LogCxi(LogCheck):
    id = "log.cxi"
    what = "errors that Slingshot NICs reported, by their class"
    rule = (
        "no critical or uncorrected error; degraded ones warn for a day, those of the link until it is up again; many "
        "restarts of a link warn"
    )
    severity = Severity.FAIL
    component = "nic"
    remedy = "check NIC, cable and switch port; reset the NIC or reboot the host"
    words = (ERROR, "CXI_EVENT_LINK_")

    _DEVICE = r"\b(?P<device>cxi\d{1,3})(?:\[[^\]]{0,20}\])?:? "
    _ERROR = re.compile(_DEVICE + r"C_EC_(?P<grade>[A-Z]+)\w*: +(?P<block>\w+) error: (?P<name>\w{1,60})")
    _RATE = re.compile(_DEVICE + r"PCIe error: ")
    _DOWN = re.compile(_DEVICE + r"CXI_EVENT_LINK_DOWN")
    _UP = re.compile(_DEVICE + r"CXI_EVENT_LINK_UP")
    _GRADES: ClassVar = {"CRIT": Grade.FAIL, "UNCOR": Grade.FAIL, "DEGRD": Grade.WARN}  # others are notes
    # the first comes with every link, the second with jobs that were aborted
    _HARMLESS = frozenset({"llr_eopb", "ptl_invld_vni"})
    _MEANS: ClassVar = {
        "tct_tbl_dealloc": "reboot the host",
        "port_dfa_mismatch": "the algorithmic MAC is wrong",
        "pfc_fifo_oflw": "NIC and switch differ in priorities",
    }

    def events(self, host: Host, lines: Sequence[Line]) -> Iterator[Event]:
        down = {match["device"] for line in lines if (match := self._DOWN.search(line.text))}
        for line in lines:
            if match := self._ERROR.search(line.text):
                name = match["name"]
                harmless = name in self._HARMLESS or (name == "pcs_tx_dp_err" and match["device"] in down)
                grade = Grade.NOTE if harmless else self._GRADES.get(match["grade"], Grade.NOTE)
                means = self._MEANS.get(name)
                yield Event(grade, f"{name} ({means})" if means else name, match["device"], line)
            elif match := self._RATE.search(line.text):
                yield Event(Grade.WARN, "more PCIe errors than the standard allows", match["device"], line)
            elif match := self._DOWN.search(line.text):
                yield Event(Grade.NOTE, "link down", match["device"], line, many=_FLAPS)

    def recoveries(self, host: Host, lines: Sequence[Line]) -> Iterator[Recovery]:
        """Yield a recovery from degraded errors of link blocks (HNI) for each link that came up again."""
        found = [error for line in lines if (error := self._ERROR.search(line.text))]
        degraded = tuple({one["name"] for one in found if one["grade"] == "DEGRD" and "HNI" in one["block"]})
        for line in lines if degraded else ():
            if up := self._UP.search(line.text):
                yield Recovery(up["device"], line.place, degraded)

    def lacks(self, host: Host) -> str:
        return "" if host.cxi else "no Slingshot NIC"


class LogArp(PatternCheck):
    id = "log.arp"
    what = "overflows of the neighbour table"
    rule = "none within a day"
    severity = Severity.WARN
    component = "config"
    remedy = "raise net.ipv4.neigh.default.gc_thresh1 to gc_thresh3"
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
    remedy = "check the subnet manager, the partition key and the rate of the port"
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

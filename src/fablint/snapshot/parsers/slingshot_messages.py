"""Messages of Slingshot's driver in the kernel log: errors by their class, links that went down and up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fablint.snapshot.parsers.kernel_log import ERROR, Event, Grade, Line, Pattern, Recovery, pattern_events, words_of

_MANY_FLAPS = 10  # links that went down within a day
_DEVICE = r"\b(?P<device>cxi\d{1,3})(?:\[[^\]]{0,20}\])?:? "
_ERROR = re.compile(_DEVICE + r"C_EC_(?P<grade>[A-Z]+)\w*: +(?P<block>\w+) error: (?P<name>\w{1,60})")
_RATE = re.compile(_DEVICE + r"PCIe error: ")
_DOWN = re.compile(_DEVICE + r"CXI_EVENT_LINK_DOWN")
_UP = re.compile(_DEVICE + r"CXI_EVENT_LINK_UP")
_HOT = "module too hot"
_CORRUPT = "firmware of the link is damaged"
_LANES = "link lost lanes"
_ALERTS = (
    Pattern("QSFP_EPO_TEMPERATURE", _DEVICE + "uC: QSFP_EPO_TEMPERATURE", Grade.FAIL, _HOT),
    Pattern("corruption alert", _DEVICE + r"\(sbl\): \d+: serdes fw corruption alert", Grade.FAIL, _CORRUPT),
    Pattern("failure alert", _DEVICE + r"\(sbl\): \d+: [rt]x degrade failure alert", Grade.WARN, _LANES),
)
WORDS = (ERROR, "CXI_EVENT_LINK_", *words_of(_ALERTS))
_GRADES = {"CRIT": Grade.FAIL, "UNCOR": Grade.FAIL, "DEGRD": Grade.WARN}  # others are notes
# the first comes with every link, the second with jobs that were aborted
_HARMLESS = frozenset({"llr_eopb", "ptl_invld_vni"})
_MEANS = {
    "tct_tbl_dealloc": "reboot the host",
    "port_dfa_mismatch": "the algorithmic MAC is wrong",
    "pfc_fifo_oflw": "NIC and switch differ in priorities",
}


def slingshot_events(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield errors of NICs, and links that went down."""
    down = {match["device"] for line in lines if (match := _DOWN.search(line.text))}
    for line in lines:
        if match := _ERROR.search(line.text):
            name = match["name"]
            harmless = name in _HARMLESS or (name == "pcs_tx_dp_err" and match["device"] in down)
            grade = Grade.NOTE if harmless else _GRADES.get(match["grade"], Grade.NOTE)
            means = _MEANS.get(name)
            yield Event(grade, f"{name} ({means})" if means else name, match["device"], line)
        elif match := _RATE.search(line.text):
            yield Event(Grade.WARN, "more PCIe errors than the standard allows", match["device"], line)
        elif match := _DOWN.search(line.text):
            yield Event(Grade.NOTE, "link down", match["device"], line, many=_MANY_FLAPS)
    yield from pattern_events(_ALERTS, lines)


def slingshot_recoveries(lines: Sequence[Line]) -> Iterator[Recovery]:
    """Yield a recovery from alerts and degraded errors of link blocks (HNI) for each link that came up again."""
    errors = [error for line in lines if (error := _ERROR.search(line.text))]
    degraded = {one["name"] for one in errors if one["grade"] == "DEGRD" and "HNI" in one["block"]}
    for line in lines:
        if up := _UP.search(line.text):
            yield Recovery(up["device"], line.place, (_HOT, _LANES, *degraded))

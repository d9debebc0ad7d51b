"""Checks of the kernel log for errors of NICs and networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import log_events, log_patterns
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.snapshot.cards import addresses_of
from fablint.snapshot.parsers import driver_messages
from fablint.snapshot.parsers.kernel_log import BDF, ERROR, Event, Grade, Pattern, RecoveryPattern
from fablint.snapshot.parsers.slingshot_messages import slingshot_events, slingshot_recoveries

_FLAPS = 10  # links that went down within a day
_FATAL = ("health compromised", "fatal error", "recovery failed", "driver in error state", "command without answer")
_ISSUE = "firmware reports a health issue"
_MODULE = ("module too hot", "cable error")
_POWER = "too little power in the slot"


def _on_rails(host: Host, events: Iterable[Event]) -> Iterator[Event]:
    """Return the events; those of NICs outside the fabric are warnings at most."""
    rails = {nic.name for nic in host.rails}
    cards = addresses_of(host.snapshot)
    others = {*cards.values()} - {card for name, card in cards.items() if name in rails}
    for event in events:
        if event.grade is Grade.FAIL and event.device in others:
            yield event._replace(grade=Grade.WARN)
        elif event.what != "link down" or event.device in rails:  # a management port may be unplugged
            yield event


_NIC_PATTERNS = (
    Pattern("health compromised", rf"{BDF}: .*health compromised", Grade.FAIL, _FATAL[0]),
    Pattern("Fatal error ", rf"mlx5_core {BDF}: .*Fatal error \d+ detected", Grade.FAIL, _FATAL[1]),
    Pattern("health recovery ", rf"{BDF}: .*health recovery (?:failed|flow aborted)", Grade.FAIL, _FATAL[2]),
    Pattern("Driver is in error state", rf"{BDF}: .*Driver is in error state", Grade.FAIL, _FATAL[3]),
    Pattern("timeout. Will cause a leak", rf"{BDF}: wait_func.*timeout", Grade.FAIL, _FATAL[4]),
    # the driver reports severities of its firmware as log levels: 0 to 2 are worse than an error
    Pattern("Health issue observed", rf"{BDF}: .*Health issue observed, .*severity\([0-2]\)", Grade.FAIL, _ISSUE),
    Pattern("Health issue observed", rf"{BDF}: .*Health issue observed, .*severity\(3\)", Grade.WARN, _ISSUE),
    Pattern("mlx5_load_one failed", rf"{BDF}: .*mlx5_load_one failed", Grade.WARN, "driver did not load"),
    Pattern("High temperature on sensors", rf"{BDF}: .*High temperature on", Grade.WARN, "NIC too hot"),
    Pattern("Port module event[error]", rf"{BDF}: .*High Temperature", Grade.WARN, _MODULE[0]),
    Pattern("Port module event[error]", rf"{BDF}: .*Cable error", Grade.WARN, _MODULE[1]),
    Pattern("insufficient power on the PCIe slot", rf"{BDF}: .*insufficient power", Grade.WARN, _POWER),
    Pattern("Link down", r"(?P<device>[\w.-]+): Link down", Grade.NOTE, "link down", _FLAPS),
    Pattern("NIC Link is Down", r"(?P<device>[\w.-]+):? NIC Link is Down", Grade.NOTE, "link down", _FLAPS),
    *driver_messages.PATTERNS,
)
_NIC_ENDINGS = (
    RecoveryPattern("health re", rf"{BDF}: .*health re[cv]overy succe+ded", (*_FATAL, _ISSUE)),
    RecoveryPattern("Port module event", rf"{BDF}: .*module \d+, Cable plugged", _MODULE),
    RecoveryPattern("sufficient power", rf"{BDF}: .*advertised sufficient power", (_POWER,)),
    *driver_messages.ENDINGS,
)

LOG_NIC = Check(
    id="log.nic",
    what="errors that drivers of NICs reported",
    source=KERNEL_LOG,
    rule=(
        "no failed health, no command without an answer, no failed reset within a week without a later recovery "
        "(reported by the driver, or a link that is up again); heat, cables, power and stalled queues warn for a day; "
        "NICs outside the fabric only warn"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check the NIC's module, cable, cooling and slot; reset or replace the NIC",
    judge=log_patterns(
        _NIC_PATTERNS,
        _NIC_ENDINGS,
        changed=_on_rails,
    ),
)


LOG_CXI = Check(
    id="log.cxi",
    what="errors that Slingshot NICs reported, by their class",
    source=KERNEL_LOG,
    rule=(
        "no critical or uncorrected error; degraded ones warn for a day, those of the link until it is up again; many "
        "restarts of a link warn"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check NIC, cable and switch port; reset the NIC or reboot the host",
    judge=log_events(
        (ERROR, "CXI_EVENT_LINK_"),
        slingshot_events,
        lambda _, lines: slingshot_recoveries(lines),
        lacks=lambda host: "" if host.cxi else "no Slingshot NIC",
    ),
)


_ARP_PATTERNS = (
    Pattern(
        "table overflow", r"(?:(?P<device>\w{1,30}): )?[Nn]eighbou?r table overflow", Grade.WARN, "neighbour table full"
    ),
)

LOG_ARP = Check(
    id="log.arp",
    what="overflows of the neighbour table",
    source=KERNEL_LOG,
    rule="none within a day",
    remedy="raise net.ipv4.neigh.default.gc_thresh1 to gc_thresh3",
    judge=log_patterns(_ARP_PATTERNS),
)


_IB_PATTERNS = (
    Pattern(
        "multicast join failed", r"(?P<device>[\w.-]{1,30}): multicast join failed", Grade.WARN, "multicast join failed"
    ),
)

LOG_IB = Check(
    id="log.ib",
    what="multicast groups that IP over InfiniBand could not join",
    source=KERNEL_LOG,
    rule="none within a day",
    remedy="check the subnet manager, the partition key and the rate of the port",
    judge=log_patterns(
        _IB_PATTERNS,
        lacks=lambda host: "" if host.snapshot.names(INFINIBAND) else "no InfiniBand device",
    ),
)

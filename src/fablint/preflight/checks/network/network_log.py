"""Checks of the kernel log for errors of NICs and networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import log_events, log_patterns
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.snapshot.cards import addresses_of
from fablint.snapshot.parsers import driver_messages, slingshot_messages
from fablint.snapshot.parsers.kernel_log import Event, Grade, Pattern


def _on_rails(host: Host, events: Iterable[Event]) -> Iterator[Event]:
    """Return the events; those of NICs outside the fabric are warnings at most."""
    rails = {nic.name for nic in host.rails}
    cards = addresses_of(host.snapshot)
    others = {*cards.values()} - {card for name, card in cards.items() if name in rails}
    for event in events:
        if event.grade is Grade.FAIL and event.device in others:
            yield event._replace(grade=Grade.WARN)
        elif event.what != driver_messages.LINK_DOWN or event.device in rails:  # a management port may be unplugged
            yield event


LOG_NIC = Check(
    id="log.nic",
    what="errors that drivers of NICs reported",
    source=KERNEL_LOG,
    rule=(
        "no failed health, no command without an answer, no failed reset within a week without a later recovery "
        "(reported by the driver, or a link that is up again); heat, cables, power, stalled queues, pause storms and "
        "resets by the driver warn for a day; NICs outside the fabric only warn"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check the NIC's module, cable, cooling and slot; reset or replace the NIC",
    judge=log_patterns(
        driver_messages.EVENTS,
        driver_messages.ENDINGS,
        changed=_on_rails,
    ),
)


LOG_CXI = Check(
    id="log.cxi",
    what="errors that Slingshot NICs reported, by their class",
    source=KERNEL_LOG,
    rule=(
        "no critical or uncorrected error; degraded ones warn for a day, those of the link until it is up again; many "
        "restarts of a link warn; no module too hot, no damaged firmware of the link; lost lanes warn until it is up "
        "again"
    ),
    severity=Severity.FAIL,
    component="nic",
    remedy="check NIC, cable and switch port; reset the NIC or reboot the host",
    judge=log_events(
        slingshot_messages.WORDS,
        slingshot_messages.slingshot_events,
        lambda _, lines: slingshot_messages.slingshot_recoveries(lines),
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

"""Checks of the kernel log for errors of hardware, memory and the kernel. See `network_log`, `gpu_log`, `storage_log`.

A failure counts for a week, a warning for a day, and neither after the log reports a recovery of the device. Corrected
errors are a note; many within a day are a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import PCI, Host
from fablint.preflight.judges import log_events, log_patterns
from fablint.preflight.judges.log_patterns import KERNEL_LOG
from fablint.snapshot.cards import GPU, addresses_of
from fablint.snapshot.parsers import slot_messages
from fablint.snapshot.parsers.hardware_messages import (
    firmware_events,
    machine_check_events,
    memory_events,
    pcie_events,
    pcie_recoveries,
)
from fablint.snapshot.parsers.kernel_log import ERROR, Event, Grade, Pattern, RecoveryPattern

_RCU_STALL = "RCU stall"
DRIVERS = "/sys/bus/pci/drivers/"


LOG_HARDWARE = Check(
    id="log.hw",
    what="hardware errors reported by the platform's firmware",
    source=KERNEL_LOG,
    rule="no recoverable or fatal error; corrected errors are a note",
    severity=Severity.FAIL,
    component="host",
    remedy="drain the host and replace the component; check the log of its BMC",
    judge=log_events((ERROR,), firmware_events),
)


LOG_AER = Check(
    id="log.aer",
    what="errors of PCI Express (Advanced Error Reporting)",
    source=KERNEL_LOG,
    rule=(
        "no fatal error without a recovery, fewer than 5 non-fatal errors within a week; "
        "corrected errors are a note, more than 100 per day a warning"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="reseat the card or its riser; check the device's PCIe width and speed",
    judge=log_events((ERROR, "evice recovery successful"), pcie_events, lambda _, lines: pcie_recoveries(lines)),
)


def _of_fabric_and_gpus(host: Host, events: Iterable[Event]) -> Iterator[Event]:
    """Return the events; those that name another device of the host, or a device that works now, are a note.

    A NIC whose driver could not start is a warning unless it is of the same part as a NIC of the fabric.
    """
    events = list(events)
    others = {*host.snapshot.names(PCI)} - host.cards.keys() if events else set()
    short = {address.partition(":")[2] for address in others}
    for event in events:
        if event.what in slot_messages.OF_A_DEVICE and event.device in (others | short):
            yield event._replace(grade=Grade.NOTE)
        elif event.what == slot_messages.NOT_STARTED:
            yield event._replace(grade=_grade_without_driver(host, event.device))
        else:
            yield event


def _grade_without_driver(host: Host, device: str) -> Grade:
    """Return the grade of a NIC or GPU whose driver could not start."""
    addresses = addresses_of(host.snapshot)
    of_gpus = (host.snapshot.link(path) for path in host.snapshot.links if path.startswith(DRIVERS))
    if device in {*addresses.values(), *of_gpus}:
        return Grade.NOTE
    card = host.cards.get(device)
    rails = [host.cards.get(addresses.get(nic.name, "")) for nic in host.rails]
    of_fabric = card is None or card.kind == GPU or card.number in [rail.number for rail in rails if rail]
    return Grade.FAIL if of_fabric else Grade.WARN


LOG_SLOT = Check(
    id="log.slot",
    what=(
        "PCI devices that were lost, contained or frozen (pciehp, DPC, EEH), whose driver could not start, or whose "
        "accesses an IOMMU refused"
    ),
    source=KERNEL_LOG,
    rule=(
        "no power fault, no device removed or not recovered after errors within a week; no lost link of a slot, no "
        "frozen device, no NIC or GPU without an answer or with a refused access within a day without a later "
        "recovery; the driver of every GPU and of every NIC like those of the fabric could start, or has started since"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="reseat the card, its riser and its power cable; for refused accesses check the driver and iommu=pt",
    judge=log_patterns(slot_messages.EVENTS, slot_messages.ENDINGS, changed=_of_fabric_and_gpus),
)


LOG_EDAC = Check(
    id="log.edac",
    what="memory errors (EDAC), and pages of the memory that the kernel gave up",
    source=KERNEL_LOG,
    rule=(
        "no uncorrected error; a page that was given up warns for a day, one in use by the kernel fails; corrected "
        "errors are a note, more than 100 per day a warning"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="replace the DIMM that the log names",
    judge=log_events(("EDAC MC", ": recovery action for "), memory_events),
)


LOG_MCE = Check(
    id="log.mce",
    what="machine check exceptions",
    source=KERNEL_LOG,
    rule="no uncorrected error; corrected errors are a note, more than 100 per day a warning",
    severity=Severity.FAIL,
    component="host",
    remedy="drain the host; replace processor or memory if the error recurs",
    judge=log_events((ERROR,), machine_check_events),
)


_KERNEL_PATTERNS = (
    # of every architecture: `Oops: 0000 [#1] SMP`, `general protection fault: 0000 [#1]`, `Oops: Kernel access
    # of bad area, sig: 11 [#1]`; lines about programs have no such number
    Pattern(
        "[#",
        r"\b(?:Oops|BUG|Internal error|fault|opcode|trap|error|bounds|segment|int3)\b.*\[#\d{1,6}\]",
        Grade.FAIL,
        "kernel oops",
    ),
    Pattern("BUG: Bad page ", r"BUG: Bad page (?:state|map)", Grade.WARN, "damaged memory management"),
    Pattern(
        "detected stall", r"INFO: \w+ (?:self-detected stall on CPU|detected stalls on CPUs)", Grade.WARN, _RCU_STALL
    ),
    Pattern("detected expedited stalls", r"INFO: \w+ detected expedited stalls on CPUs", Grade.WARN, _RCU_STALL),
    Pattern("soft lockup - CPU#", r"soft lockup - CPU#(?P<device>\d{1,6})", Grade.WARN, "soft lockup of a CPU"),
    Pattern("hard LOCKUP on cpu ", r"hard LOCKUP on cpu (?P<device>\d{1,6})", Grade.WARN, "hard lockup of a CPU"),
    Pattern("blocked for more than ", r"task .*blocked for more than \d+", Grade.WARN, "blocked task"),
    Pattern("oom-kill:constraint=CONSTRAINT_", r"oom-kill:constraint=CONSTRAINT_NONE", Grade.WARN, "out of memory"),
    Pattern(
        "oom-kill:constraint=CONSTRAINT_", r"oom-kill:constraint=CONSTRAINT_(?!NONE)", Grade.NOTE, "a job out of memory"
    ),
    Pattern("Out of memory: Kill ", r"Out of memory: Kill ", Grade.WARN, "out of memory"),  # until Linux 4.19
    Pattern("table full, dropping packet", r"nf_conntrack: table full", Grade.WARN, "connection table full"),
)
_KERNEL_ENDINGS = (RecoveryPattern("INFO: Stall ended", "INFO: Stall ended before", (_RCU_STALL,)),)

LOG_KERNEL = Check(
    id="log.kernel",
    what="kernel faults: oopses, stalls, lockups, lack of memory or connection entries",
    source=KERNEL_LOG,
    rule="no oops within a week; no stall, lockup, blocked task, lack of memory or full connection table within a day",
    severity=Severity.FAIL,
    component="host",
    remedy="reboot the host after an oops; otherwise check its processes, and reboot it if the fault persists",
    judge=log_patterns(
        _KERNEL_PATTERNS,
        _KERNEL_ENDINGS,
    ),
)

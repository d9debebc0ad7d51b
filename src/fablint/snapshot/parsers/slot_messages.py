"""Kernel log lines about slots and bridges: devices that were lost or contained, accesses that an IOMMU refused.

The texts are those of the sources of Linux 4.4 to 6.18 (drivers/pci/hotplug/pciehp_*.c, drivers/pci/pcie/{dpc,err}.c,
drivers/pci/pci.c, drivers/base/dd.c, arch/powerpc/kernel/eeh_driver.c, drivers/iommu/{intel/dmar.c,amd/iommu.c,
arm/arm-smmu-v3}).
"""

from __future__ import annotations

from fablint.snapshot.parsers.kernel_log import BDF, Grade, Pattern, RecoveryPattern

_GONE = "device lost in its slot"
_POWER = "power fault of the slot"
_TRAINING = "no link to the device in the slot"
_CONTAINED = "port shut down after an error (DPC)"
_FROZEN = "device frozen after an error (EEH)"
_BRIDGE = "host bridge failed (EEH)"
_REMOVED = "device removed after errors (EEH)"
_NOT_RECOVERED = "not recovered after a PCIe error"
_REFUSED = "access refused by the IOMMU"
_SILENT = "does not answer on PCI Express"
NOT_STARTED = "its driver could not start"
OF_A_DEVICE = (_REFUSED, _SILENT, NOT_STARTED)  # which the lines name
_IOMMU = "error of the IOMMU"

_SLOT = rf"(?:pcieport|pciehp) {BDF}(?::pcie\d+)?: (?:pciehp: )?"
_PE = r"(?P<device>PHB#[0-9a-f]+-PE#[0-9a-f]+)"
_PHB = r"PHB#[0-9a-f]+"
_BRIEF = r"(?P<device>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"  # the domain may be missing

EVENTS = (
    Pattern("Link Down", rf"{_SLOT}Slot\(\S+\): Link Down(?!/)", Grade.WARN, _GONE),
    Pattern("Card not present", rf"{_SLOT}Slot\(\S+\): Card not present", Grade.WARN, _GONE),
    Pattern("Power fault", rf"{_SLOT}(?:Slot\(\S+\): Power fault|Power fault on slot )", Grade.FAIL, _POWER),
    Pattern("Cannot train link", rf"{_SLOT}Slot\(\S+\): Cannot train link", Grade.FAIL, _TRAINING),
    Pattern("containment event", rf"pcieport {BDF}: (?:DPC: )?containment event, status:", Grade.WARN, _CONTAINED),
    Pattern("evice recovery failed", rf"{BDF}: (?:AER: )?[Dd]evice recovery failed", Grade.FAIL, _NOT_RECOVERED),
    Pattern(
        " inaccessible",
        rf"{BDF}: (?:Unable to|can't) change power state .*(?:device|\(config space) inaccessible",
        Grade.WARN,
        _SILENT,
    ),
    Pattern("; giving up", rf"{BDF}: not ready \d+ms after .{{1,40}}; giving up", Grade.WARN, _SILENT),
    # of every driver; until Linux 6.7 the line begins with the name of the driver
    Pattern("probe of ", rf"\bprobe of {BDF} failed with error -\d", Grade.FAIL, NOT_STARTED),
    Pattern("probe with driver ", rf"{BDF}: probe with driver \S+ failed with error -\d", Grade.FAIL, NOT_STARTED),
    Pattern("EEH: Frozen", rf"EEH: Frozen {_PE} detected", Grade.WARN, _FROZEN),
    Pattern("EEH: ", rf"EEH: (?:Recovering {_PHB}|{_PHB} failure detected), location", Grade.WARN, _BRIDGE),
    Pattern("has been permanently disabled", rf"EEH: {_PE} has failed \d+ times", Grade.FAIL, _REMOVED),
    Pattern("EEH: Unable to recover", rf"EEH: Unable to recover from failure from {_PE}", Grade.FAIL, _REMOVED),
    Pattern("IO_PAGE_FAULT", rf"{BDF}: (?:AMD-Vi: )?Event logged \[IO_PAGE_FAULT ", Grade.WARN, _REFUSED),
    Pattern("IO_PAGE_FAULT", rf"IO_PAGE_FAULT device={_BRIEF}", Grade.WARN, _REFUSED),
    Pattern("Request device [", rf"DMAR: .*Request device \[{_BRIEF}\]", Grade.WARN, _REFUSED),
    Pattern(
        "event: F_TRANSLATION",
        r"arm-smmu-v3 .*event: F_TRANSLATION client: (?P<device>\S{1,20}) sid:",
        Grade.WARN,
        _REFUSED,
    ),
    Pattern(" received:", r"(?P<device>arm-smmu-v3\.\d+\.auto): event 0x[0-9a-f]{2} received:", Grade.WARN, _REFUSED),
    Pattern("IOTLB_INV_TIMEOUT", rf"IOTLB_INV_TIMEOUT device={_BRIEF}", Grade.WARN, _IOMMU),
    Pattern("Invalidation Time-out Error: SID", r"DMAR: .*Invalidation Time-out Error: SID", Grade.WARN, _IOMMU),
    Pattern("Completion-Wait loop timed out", r"AMD-Vi: Completion-Wait loop timed out", Grade.WARN, _IOMMU),
    Pattern("CMD_SYNC timeout", r"(?P<device>arm-smmu-v3\.\d+\.auto): CMD_SYNC timeout", Grade.WARN, _IOMMU),
    Pattern("_TAB_HARDWARE_ERROR", rf"(?:DEV|PAGE)_TAB_HARDWARE_ERROR device={_BRIEF}", Grade.FAIL, _IOMMU),
)
ENDINGS = (
    RecoveryPattern("Link Up", rf"{_SLOT}Slot\(\S+\): Link Up", (_GONE, _POWER, _TRAINING, _CONTAINED)),
    RecoveryPattern(
        "ecovery successful", rf"pcieport {BDF}: (?:AER: )?[Dd]evice recovery successful", (_CONTAINED, _NOT_RECOVERED)
    ),
    RecoveryPattern("EEH: Recovery successful", r"EEH: Recovery successful", (_FROZEN, _BRIDGE)),
)

"""Check of the bandwidth of PCI Express that drivers of NICs report in the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from fablint.model.preflight_results import Severity
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import at_least_peers
from fablint.preflight.judges.log_patterns import KERNEL_LOG, LOG
from fablint.preflight.judges.outputs import NO_PCI_DEVICE
from fablint.preflight.judges.peers import Part
from fablint.snapshot.parsers.kernel_log import watch
from fablint.snapshot.parsers.pcie_bandwidth import WORD as BANDWIDTH, bandwidths


def _bandwidths(host: Host) -> Iterator[Part]:
    reported = bandwidths(host.kernel_log.lines_with((BANDWIDTH,)))
    for name, folder in host.fabric_devices.items():
        result = reported.get(host.snapshot.link(folder))
        if result is None:
            yield Part(name, None, why="its driver reported none in the kernel log")
        else:
            most = None if host.is_virtual else result.most
            yield Part(name, result.now, f"{host.read(f'{folder}/device')} {result.most}", most)


watch((BANDWIDTH,))
PCIE_BANDWIDTH = Check(
    id="pcie.bandwidth",
    what="the bandwidth of the slowest PCI Express link above every fabric device, as its driver reported it",
    source=f"{KERNEL_LOG}: {BANDWIDTH}",
    rule="not lower than on most similar hosts; alone at least what the device is capable of",
    severity=Severity.FAIL,
    component="nic",
    remedy="look for the bridge that the line in the kernel log names; reseat the card or its riser, check the BIOS",
    judge=at_least_peers(_bandwidths, "{:g} Gb/s of PCI Express", NO_PCI_DEVICE, reads=LOG),
)

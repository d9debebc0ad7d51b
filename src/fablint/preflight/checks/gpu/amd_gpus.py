"""Check of the errors that the driver of AMD GPUs counts."""

from __future__ import annotations

from collections.abc import Iterator

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import limit
from fablint.snapshot.agent.tuning import AMD_GPUS
from fablint.snapshot.parsers.amd_ras import BadPages, BlockErrors, bad_pages, block_errors
from fablint.text.sanitise import shortened


def _errors(check: Check, host: Host) -> Iterator[Result]:
    for address in host.snapshot.names(AMD_GPUS):
        folder = f"{AMD_GPUS}/{address}/ras"
        blocks = {
            shortened(name.removesuffix("_err_count")): errors
            for name in host.snapshot.names(folder)
            if (errors := block_errors(host.read(f"{folder}/{name}"))) is not None
        }
        if host.snapshot.names(folder):
            yield _judged(check, host.name, address, blocks, bad_pages(host.read(f"{folder}/gpu_vram_bad_pages")))


def _judged(check: Check, host: str, address: str, blocks: dict[str, BlockErrors], pages: BadPages) -> Result:
    target = f"GPU {shortened(address)}"
    uncorrectable = {name: errors.uncorrectable for name, errors in blocks.items() if errors.uncorrectable}
    if pages.failed:
        message = f"{plural(pages.failed, 'bad page')} of the memory could not be taken out of use"
        return check.failure(host, target, message, pages.failed, 0)
    if uncorrectable:
        counted = ", ".join(f"{name} {count}" for name, count in uncorrectable.items())
        total = sum(uncorrectable.values())
        return check.warning(host, target, f"uncorrectable errors since the driver was loaded: {counted}", total, 0)
    if pages.pending:
        return check.warning(
            host, target, f"{plural(pages.pending, 'bad page')} in use until a reset", pages.pending, 0
        )
    if not blocks:
        return check.skip(host, target, "its driver counts no errors, or its memory has no ECC")
    corrected = sum(errors.corrected for errors in blocks.values())
    words = [f"{plural(pages.reserved, 'bad page')} reserved"] if pages.reserved else []
    words += [f"{corrected:,} corrected errors"] if corrected else []
    return check.ok(host, target, ", ".join(words), 0)


GPU_RAS = Check(
    id="gpu.ras",
    what="memory errors and other hardware errors of every AMD GPU: uncorrectable errors, bad pages",
    source=f"{AMD_GPUS}/DEVICE/ras/*_err_count, gpu_vram_bad_pages",
    rule="no bad page that could not be taken out of use; uncorrectable errors and pages pending until a reset warn",
    severity=Severity.FAIL,
    component="host",
    remedy="reset the GPU if pages are pending (amd-smi reset -G); replace it if uncorrectable errors recur",
    judge=limit(_errors, "no AMD GPU that counts errors"),
)

"""Checks of AMD GPUs: errors that the driver counts, settings and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fablint.model.names import plural
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import UNREADABLE, Check
from fablint.preflight.host import Host
from fablint.preflight.judges import limit, uniform_settings
from fablint.preflight.judges.uniform import Settings, SettingsComparison
from fablint.snapshot.agent.tuning import AMD_GPUS
from fablint.snapshot.parsers.amd_ras import BadPages, BlockErrors, bad_pages, block_errors
from fablint.snapshot.parsers.amd_smi import AmdGpuErrors, amd_smi_errors, amd_smi_settings, rocm_smi_errors
from fablint.snapshot.parsers.documents import is_cut_off
from fablint.text.sanitise import shortened


def _driver_errors(host: Host) -> dict[str, AmdGpuErrors]:
    """Return the errors in the files of the driver, by PCI address."""
    errors_of_gpus = {}
    for address in host.snapshot.names(AMD_GPUS):
        folder = f"{AMD_GPUS}/{address}/ras"
        names = host.snapshot.names(folder)
        blocks = {
            shortened(name.removesuffix("_err_count")): errors
            for name in names
            if (errors := block_errors(host.read(f"{folder}/{name}"))) is not None
        }
        if names:
            errors_of_gpus[address] = AmdGpuErrors(blocks, bad_pages(host.read(f"{folder}/gpu_vram_bad_pages")))
    return errors_of_gpus


def _amd_smi(host: Host) -> Mapping[str, AmdGpuErrors]:
    gpus, static, metric, bad_pages = (
        host.command(f"amd-smi-{verb}").text for verb in ("list", "static", "metric", "bad-pages")
    )
    return amd_smi_errors(gpus or static, metric, bad_pages)


def _rocm_smi(host: Host) -> Mapping[str, AmdGpuErrors]:
    return rocm_smi_errors(host.command("rocm-smi").text)


_SOURCES = (_driver_errors, _amd_smi, _rocm_smi)  # the first with the errors of a GPU counts, as for its pages


def _unread(host: Host, *verbs: str) -> Iterator[str]:
    """Yield why an output of amd-smi is not used, for each that is cut off."""
    for verb in verbs:
        if is_cut_off(host.command(f"amd-smi-{verb}").text):
            yield f"amd-smi {verb}: {UNREADABLE}"


def _errors(check: Check, host: Host) -> Iterator[Result]:
    for why in _unread(host, "list", "static", "metric", "bad-pages"):
        yield check.error(host.name, "", why)
    readings = [source(host) for source in _SOURCES]
    for address in dict.fromkeys(address for reading in readings for address in reading):
        errors = [reading[address] for reading in readings if address in reading]
        blocks = next((error.blocks for error in errors if error.blocks), {})
        pages = next((error.pages for error in errors if any(error.pages)), errors[0].pages)
        yield _judged(check, host.name, address, blocks, pages)


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
    deferred = {name: errors.deferred for name, errors in blocks.items() if errors.deferred}
    if deferred:
        counted = ", ".join(f"{name} {count}" for name, count in deferred.items())
        message = f"damaged data that no program has read yet (deferred errors): {counted}"
        return check.warning(host, target, message, sum(deferred.values()), 0)
    if not blocks:
        return check.skip(host, target, "its driver counts no errors, or its memory has no ECC")
    corrected = sum(errors.corrected for errors in blocks.values())
    words = [f"{plural(pages.reserved, 'bad page')} reserved"] if pages.reserved else []
    words += [f"{corrected:,} corrected errors"] if corrected else []
    return check.ok(host, target, ", ".join(words), 0)


GPU_RAS = Check(
    id="gpu.ras",
    what="memory errors and other hardware errors of every AMD GPU: uncorrectable errors, bad pages",
    source=(
        f"{AMD_GPUS}/DEVICE/ras/*_err_count, gpu_vram_bad_pages; at level full amd-smi metric --ecc --ecc-blocks, "
        "amd-smi bad-pages, rocm-smi --showrasinfo --showretiredpages"
    ),
    rule=(
        "no bad page that could not be taken out of use; uncorrectable and deferred errors and pages pending until a "
        "reset warn"
    ),
    severity=Severity.FAIL,
    component="host",
    remedy="reset the GPU if pages are pending (amd-smi reset -G); replace it if uncorrectable errors recur",
    judge=limit(_errors, "no AMD GPU that counts errors"),
)


def _settings(host: Host) -> Mapping[str, Settings]:
    settings = amd_smi_settings(host.command("amd-smi-static").text, host.command("amd-smi-firmware").text)
    return {f"GPU {shortened(address)}": settings_of_gpu for address, settings_of_gpu in settings.items()}


AMD_MODES = Check(
    id="gpu.amd.modes",
    what="the driver, VBIOS, partitions and firmware of every AMD GPU",
    source="at level full amd-smi static, amd-smi firmware",
    remedy="use the same partitions on all hosts (amd-smi set -C, -M); update driver and firmware",
    judge=uniform_settings(
        SettingsComparison(
            _settings,
            lambda host: next(_unread(host, "static", "firmware"), "amd-smi, run at level full, reports no GPU"),
        )
    ),
)

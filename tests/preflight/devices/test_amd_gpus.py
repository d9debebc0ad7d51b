"""Errors of AMD GPUs. Files of the driver are as in Linux, Documentation/gpu/amdgpu/ras.rst and amdgpu_ras.c of 5.6 and
6.18; outputs as amd-smi (amdsmi_commands.py of ROCm 6.2 and 7) and rocm-smi (rocm_smi.py of ROCm 6) print them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from preflight_help import host, of

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.gpu.amd_gpus import GPU_RAS
from fablint.preflight.host import Host

RAS = "/sys/bus/pci/drivers/amdgpu/0000:68:00.0/ras"
BLOCKS = ("umc", "gfx", "sdma", "mmhub", "xgmi_wafl")
CLEAN = "ue: 0\nce: 0"


def gpu(pages: str = "", **blocks: str) -> Host:
    files = {f"{RAS}/{name}_err_count": CLEAN for name in BLOCKS}
    files |= {f"{RAS}/{name}_err_count": text for name, text in blocks.items()}
    return host("n1", {**files, f"{RAS}/gpu_vram_bad_pages": pages})


@pytest.mark.parametrize(
    ("pages", "blocks", "outcome", "message"),
    [
        ("", {}, Outcome.PASS, ""),
        ("", {"umc": "ue: 0\nce: 12\nde: 0", "gfx": "ue: 0\nce: 3"}, Outcome.PASS, "15 corrected errors"),
        ("", {"umc": "ue: 2\nce: 0"}, Outcome.WARN, "uncorrectable errors since the driver was loaded: umc 2"),
        ("", {"xgmi_wafl": "ue: 1\nce: 0\nde: 0", "gfx": "ue: 1\nce: 0"}, Outcome.WARN, "gfx 1, xgmi_wafl 1"),
        ("0x0000a1b2 : 0x00001000 : R \n0x0000a1b3 : 0x00001000 : R", {}, Outcome.PASS, "bad page"),
        ("0x0000a1b2 : 0x00001000 : P", {}, Outcome.WARN, "1 bad page in use until a reset"),
        ("0x0000a1b2 : 0x00001000 : F", {}, Outcome.FAIL, "1 bad page of the memory could not be taken out of use"),
    ],
)
def test_errors_of_blocks_and_bad_pages(pages: str, blocks: dict[str, str], outcome: Outcome, message: str) -> None:
    (result,) = of(GPU_RAS, gpu(pages, **blocks))
    assert (result.target, result.outcome) == ("GPU 0000:68:00.0", outcome)
    assert message in result.message


def test_hosts_without_such_gpus_and_gpus_in_a_reset_are_skipped() -> None:
    assert [one.outcome for one in of(GPU_RAS, host("n1"))] == [Outcome.SKIP]
    busy = gpu(**dict.fromkeys(BLOCKS, "Query currently inaccessible"))
    assert [one.outcome for one in of(GPU_RAS, busy)] == [Outcome.SKIP]


# ------------------------------------------------------------------------------------------------ amd-smi, rocm-smi

PAGE = {"page_address": "0xa1b2", "page_size": "0x1000", "status": "RESERVED"}
NO_PAGES = dict.fromkeys(("retired", "pending", "un_res"), "No bad pages found.")
TABLE = """
============================ ROCm System Management Interface ============================
======================================= PCI Bus ID =======================================
GPU[0]\t\t: PCI Bus: 0000:68:00.0
GPU[1]\t\t: PCI Bus: 0000:C9:00.0
======================================== RAS Info ========================================

GPU[0]: \tRAS INFO
         Block       Status    Correctable Error  Uncorrectable Error
           UMC       ENABLED                   {0}                    {1}
          SDMA       ENABLED                   0                    0
         ATHUB      DISABLED
__________________________________________________________________________________________

GPU[1]: \tRAS INFO
         Block       Status    Correctable Error  Uncorrectable Error
           UMC       ENABLED                   0                    0
__________________________________________________________________________________________
======================================= Pages Info =======================================
{2}
==========================================================================================
================================== End of ROCm SMI Log ===================================
"""
PAGES = """
GPU[0]: \tALL PAGES INFO
    Page address     Page size      Status
          0xa1b2        0x1000     {}
"""


def counts(corrected: object = 0, uncorrectable: object = 0, prefix: str = "") -> dict[str, object]:
    return {
        f"{prefix}correctable_count": corrected,
        f"{prefix}uncorrectable_count": uncorrectable,
        f"{prefix}deferred_count": 0,
    }


def amd_smi(
    metric: Mapping[str, Any], pages: Mapping[str, Any] | None = None, *, wrapped: bool = False, **files: str
) -> Host:
    entry = {"gpu": 0, "bdf": "0000:68:00.0", **metric}
    outputs = {
        "amd-smi-list": [{"gpu": 0, "bdf": "0000:68:00.0", "uuid": "x"}],
        "amd-smi-metric": {"gpu_data": [entry]} if wrapped else [entry],
        "amd-smi-bad-pages": [{"gpu": 0, **(pages or NO_PAGES)}],
    }
    return host("n1", files, commands={name: json.dumps(output) for name, output in outputs.items()})


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("metric", "pages", "outcome", "message"),
    [
        ({"ecc": counts(prefix="total_"), "ecc_blocks": {"UMC": counts()}}, {}, Outcome.PASS, ""),
        ({"ecc": counts(5, 0, "total_"), "ecc_blocks": "N/A"}, {}, Outcome.PASS, "5 corrected errors"),
        ({"ecc_blocks": {"UMC": counts(0, 2), "GFX": counts(1)}}, {}, Outcome.WARN, "umc 2"),
        ({"ecc": counts(0, 7, "total_")}, {}, Outcome.WARN, "total 7"),
        ({"ecc": counts("N/A", "N/A", "total_"), "ecc_blocks": "N/A"}, {}, Outcome.SKIP, "counts no errors"),
        ({"ecc": counts(prefix="total_")}, {"retired": PAGE}, Outcome.PASS, "1 bad page reserved"),
        ({"ecc": counts(prefix="total_")}, {"retired": [PAGE, PAGE]}, Outcome.PASS, "2 bad pages reserved"),
        ({"ecc": counts(prefix="total_")}, {"pending": [PAGE, PAGE]}, Outcome.WARN, "2 bad pages in use"),
        ({"ecc": counts(prefix="total_")}, {"un_res": PAGE}, Outcome.FAIL, "1 bad page of the memory"),
    ],
)
def test_amd_smi(
    metric: Mapping[str, Any], pages: Mapping[str, Any], outcome: Outcome, message: str, wrapped: bool
) -> None:
    (result,) = of(GPU_RAS, amd_smi(metric, {**NO_PAGES, **pages}, wrapped=wrapped))
    assert (result.target, result.outcome) == ("GPU 0000:68:00.0", outcome)
    assert message in result.message


@pytest.mark.parametrize(
    ("corrected", "uncorrectable", "pages", "outcome", "message"),
    [
        (0, 0, "", Outcome.PASS, ""),
        (12, 0, PAGES.format("reserved"), Outcome.PASS, "1 bad page reserved, 12 corrected errors"),
        (0, 3, "", Outcome.WARN, "umc 3"),
        (0, 0, PAGES.format("pending"), Outcome.WARN, "1 bad page in use until a reset"),
        (0, 0, PAGES.format("unreservable"), Outcome.FAIL, "could not be taken out of use"),
    ],
)
def test_rocm_smi(corrected: int, uncorrectable: int, pages: str, outcome: Outcome, message: str) -> None:
    first, second = of(GPU_RAS, host("n1", commands={"rocm-smi": TABLE.format(corrected, uncorrectable, pages)}))
    assert (first.target, first.outcome) == ("GPU 0000:68:00.0", outcome)
    assert message in first.message
    assert (second.target, second.outcome) == ("GPU 0000:c9:00.0", Outcome.PASS)


def test_files_of_the_driver_count_before_the_tools() -> None:
    files = {f"{RAS}/umc_err_count": "ue: 1\nce: 0"}
    (result,) = of(GPU_RAS, amd_smi({"ecc": counts(0, 9, "total_")}, **files))
    assert "umc 1" in result.message


@pytest.mark.parametrize("text", ["", "{", "[1, {}]", '{"gpu_data": 3}', '[{"gpu": "x"}]', "Traceback (most recent"])
def test_damaged_outputs_name_no_gpu(text: str) -> None:
    commands = dict.fromkeys(("amd-smi-list", "amd-smi-metric", "amd-smi-bad-pages", "rocm-smi"), text)
    assert [result.outcome for result in of(GPU_RAS, host("n1", commands=commands))] == [Outcome.SKIP]

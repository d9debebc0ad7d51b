"""Errors of AMD GPUs. Files of the driver are as in Linux, Documentation/gpu/amdgpu/ras.rst and amdgpu_ras.c of 5.6 and
6.18; outputs as amd-smi (amdsmi_commands.py of ROCm 6.2 and 7) and rocm-smi (rocm_smi.py of ROCm 6) print them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from preflight_help import host, of

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.gpu.amd_gpus import AMD_MODES, GPU_RAS
from fablint.preflight.host import Host

OUTPUTS = Path(__file__).parents[2] / "fixtures" / "preflight" / "amd_smi"
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
        ("", {"umc": "ue: 0\nce: 0\nde: 7"}, Outcome.WARN, "deferred errors): umc 7"),
        ("", {"umc": "ue: 3\nce: 0\nde: 7"}, Outcome.WARN, "uncorrectable errors since the driver was loaded: umc 3"),
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


@pytest.mark.parametrize("text", ["", "[1, {}]", '{"gpu_data": 3}', '[{"gpu": "x"}]', "Traceback (most recent"])
def test_damaged_outputs_name_no_gpu(text: str) -> None:
    commands = dict.fromkeys(("amd-smi-list", "amd-smi-metric", "amd-smi-bad-pages", "rocm-smi"), text)
    assert [result.outcome for result in of(GPU_RAS, host("n1", commands=commands))] == [Outcome.SKIP]


# ------------------------------------------------------------------------------------------------ text and CSV


def printed(form: str, *verbs: str, **changes: str) -> Host:
    """A host with the outputs of amd-smi in a form; of one of two GPUs there are errors and bad pages."""
    outputs = {f"amd-smi-{verb}": (OUTPUTS / f"{verb}.{form}").read_text() for verb in verbs}
    for verb, text in changes.items():
        outputs[f"amd-smi-{verb}"] = text
    return host("n1", commands=outputs)


@pytest.mark.parametrize("form", ["txt", "csv"])
@pytest.mark.parametrize(
    ("verbs", "outcome", "message"),
    [
        (("list", "metric"), Outcome.WARN, "uncorrectable errors since the driver was loaded: umc 2"),
        (("list", "bad-pages"), Outcome.FAIL, "3 bad pages of the memory could not be taken out of use"),
        (("list", "metric", "bad-pages"), Outcome.FAIL, "3 bad pages"),
    ],
)
def test_text_and_csv_of_amd_smi(form: str, verbs: tuple[str, ...], outcome: Outcome, message: str) -> None:
    healthy, broken = of(GPU_RAS, printed(form, *verbs))
    assert (healthy.target, broken.target) == ("GPU 0000:68:00.0", "GPU 0000:c9:00.0")
    assert healthy.outcome in (Outcome.PASS, Outcome.SKIP)
    assert broken.outcome is outcome and message in broken.message


@pytest.mark.parametrize("form", ["txt", "csv"])
def test_bad_pages_by_state(form: str) -> None:
    text = (OUTPUTS / f"bad-pages.{form}").read_text()
    pages = text.replace("UNRESERVABLE", "PENDING").replace("UN_RES", "OTHERS").replace("un_res", "others")
    _, pending = of(GPU_RAS, printed(form, "list", **{"bad-pages": pages}))
    assert (pending.outcome, pending.message) == (Outcome.WARN, "1 bad page in use until a reset")


def test_gpus_without_an_address_have_their_numbers() -> None:
    assert [one.target for one in of(GPU_RAS, printed("txt", "metric"))] == ["GPU 0", "GPU 1"]
    assert [one.target for one in of(GPU_RAS, printed("txt", "static", "metric"))][1] == "GPU 0000:c9:00.0"


def test_figures_of_hypervisors_are_texts() -> None:
    texts = {"ecc": counts("0", "3", "total_"), "ecc_blocks": "N/A"}
    (result,) = of(GPU_RAS, amd_smi(texts))
    assert "total 3" in result.message


def test_totals_stand_for_blocks_in_text() -> None:
    total = "        TOTAL_CORRECTABLE_COUNT: 0\n        TOTAL_UNCORRECTABLE_COUNT: 4\n"
    text = f"GPU: 0\n    ECC:\n{total}    ECC_BLOCKS: N/A\n"
    (result,) = of(GPU_RAS, printed("txt", metric=text))
    assert (result.outcome, "total 4" in result.message) == (Outcome.WARN, True)


def test_cpus_in_the_text_belong_to_no_gpu() -> None:
    text = (OUTPUTS / "metric.txt").read_text()
    cpu = "CPU: 0\n    ECC:\n        TOTAL_CORRECTABLE_COUNT: 0\n        TOTAL_UNCORRECTABLE_COUNT: 9\n"
    first, second = of(GPU_RAS, printed("txt", "list", metric=f"WARNING: no group\n{cpu}{text}{cpu}"))
    assert (first.outcome, "umc 2" in second.message) == (Outcome.PASS, True)


@pytest.mark.parametrize("form", ["txt", "csv"])
@pytest.mark.parametrize("verb", ["list", "metric", "bad-pages"])
def test_outputs_that_are_cut_off_invent_nothing(form: str, verb: str) -> None:
    text = (OUTPUTS / f"{verb}.{form}").read_text()
    whole = {one.target for one in of(GPU_RAS, printed(form, "list", "metric", "bad-pages"))} | {"", "GPU 0", "GPU 1"}
    for end in range(0, len(text), 7):
        results = of(GPU_RAS, printed(form, "list", "metric", "bad-pages", **{verb: text[:end]}))
        assert {one.target for one in results} <= whole
        assert results[0].outcome in (Outcome.PASS, Outcome.SKIP)


# ------------------------------------------------------------------------------------------------ settings

SETTINGS = {
    "amd-smi-static": (OUTPUTS / "static.txt").read_text(),
    "amd-smi-firmware": (OUTPUTS / "firmware.txt").read_text(),
}
JSON = {
    "amd-smi-static": json.dumps(
        {
            "gpu_data": [
                {
                    "gpu": 0,
                    "bus": {"bdf": "0000:68:00.0"},
                    "ifwi": {"version": "022.040"},
                    "partition": {"accelerator_partition": "SPX", "memory_partition": "NPS1"},
                    "driver": {"name": "amdgpu", "version": "6.14.14"},
                }
            ]
        }
    ),
    "amd-smi-firmware": json.dumps([{"gpu": 0, "fw_list": [{"fw_id": "SMU", "fw_version": "04.85.96.00"}]}]),
}


@pytest.mark.parametrize(
    ("outputs", "changed", "by", "message"),
    [
        (SETTINGS, "04.85.96.00", "04.85.97.00", "firmware SMU 04.85.97.00, 7 others firmware SMU 04.85.96.00"),
        (SETTINGS, "022.040.003.041.000001", "022.040.003.042", "VBIOS 022.040.003.042, 7 others VBIOS 022.040"),
        (JSON, "SPX", "CPX", "compute partition CPX, 7 others compute partition SPX"),
        (JSON, "NPS1", "NPS4", "memory partition NPS4, 7 others memory partition NPS1"),
        (JSON, "6.14.14", "6.12.12", "driver 6.12.12, 7 others driver 6.14.14"),
        (JSON, "022.040", "022.041", "VBIOS 022.041, 7 others VBIOS 022.040"),
        (JSON, "04.85.96.00", "04.85.97.00", "firmware SMU 04.85.97.00, 7 others"),
    ],
)
def test_the_odd_gpu_is_named(outputs: Mapping[str, str], changed: str, by: str, message: str) -> None:
    odd = {name: text.replace(changed, by) for name, text in outputs.items()}
    hosts = [host(f"n{index}", commands=odd if index == 5 else outputs) for index in range(8)]
    wrong = [one for one in of(AMD_MODES, *hosts) if one.outcome is not Outcome.PASS]
    assert {one.host for one in wrong} == {"n5"}
    assert all(one.outcome is Outcome.WARN and message in one.message for one in wrong)

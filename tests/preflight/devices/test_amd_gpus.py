"""Errors that amdgpu counts: texts as in Linux, Documentation/gpu/amdgpu/ras.rst and amdgpu_ras.c of 5.6 and 6.18."""

from __future__ import annotations

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

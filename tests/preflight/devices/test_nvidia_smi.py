"""What nvidia-smi prints, where it fails, is not a document of it, or comes from an older driver."""

from __future__ import annotations

import pytest
from preflight_help import FIXTURES, of
from tuned_hosts import gpu, intel, smi

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.gpu import gpu_state
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from fablint.snapshot.parsers.nvidia_smi import gpus_of
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)


def outcome_of(check: type[gpu_state.GPU_MEMORY], hosts: list[Host], name: str) -> list[tuple[Outcome, str]]:
    return [(one.outcome, one.message) for one in of(check, *hosts) if one.host == name]


def test_nvidia_smi_that_fails_is_no_pass_and_a_host_without_gpus_is_not_asked_for_any() -> None:
    mismatch = Output("Failed to initialize NVML: Driver/library version mismatch\n", status=18)
    ((outcome, message),) = outcome_of(gpu_state.GPU_MEMORY, [gpu(0, commands={"nvidia-smi-q": mismatch})], "n0")
    assert (outcome, message) == (
        Outcome.ERROR,
        PINNED["nvidia-smi: Failed to initialize"],
    )
    ((outcome, _),) = outcome_of(gpu_state.GPU_MEMORY, [intel(0, commands={"nvidia-smi-q": mismatch})], "n0")
    assert outcome is Outcome.SKIP


@pytest.mark.parametrize(
    "text", ["<nvidia_smi_log>", "<!DOCTYPE x [<!ENTITY a 'aa'>]><nvidia_smi_log/>", "<x/>", "", "\0"]
)
def test_documents_that_are_none_of_nvidia_smi(text: str) -> None:
    assert not gpus_of(text)


def test_names_of_older_drivers() -> None:
    old = (
        smi(1).replace("clocks_event_reason", "clocks_throttle_reason").replace("gpu_power_readings", "power_readings")
    )
    old = old.replace("current_power_limit", "power_limit")
    (found,) = gpus_of(old) or ()
    assert found.reasons == ["gpu_idle"]
    assert found.watts("gpu_power_readings/power_limit", "power_readings/power_limit") == 700.0


def test_the_document_of_an_h200() -> None:
    text = (FIXTURES / "preflight" / "misc" / "nvidia-smi-q-x-h200.xml").read_text()
    (found,) = gpus_of(text) or ()
    assert (found.name, found.product, found.reasons, found.uncorrectable) == ("gpu0", "NVIDIA H200", ["gpu_idle"], 0)
    assert found.watts("gpu_power_readings/current_power_limit") == 700.0
    assert found.text("remapped_rows/remapped_row_failure") == "No"
    host = gpu(0, commands={"nvidia-smi-q": Output(text, status=0)})
    for check in (gpu_state.GPU_MEMORY, gpu_state.GPU_THROTTLING):
        assert outcome_of(check, [host], "n0")[0][0] is Outcome.PASS

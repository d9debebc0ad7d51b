"""GPUs in use, with the tags of the output of an H200 (nvidia-smi 580): clocks, memory, recoveries, replays."""

from __future__ import annotations

import pytest
from preflight_help import host, of, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.gpu import gpu_state, gpu_use
from fablint.preflight.host import Host
from fablint.text import units
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

H200 = sample("misc/nvidia-smi-q-x-h200.xml")
PROCESS = "<processes><process_info><pid>7</pid><used_memory>900 MiB</used_memory></process_info></processes>"
EVERY = (
    *(gpu_use.GPU_CLOCKS, gpu_use.GPU_MEMORY_IN_USE, gpu_use.GPU_RECOVERY, gpu_use.GPU_REPLAYS),
    *(gpu_state.GPU_MEMORY, gpu_state.GPU_THROTTLING, gpu_state.GPU_MODES),
)


def changed(text: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def gpu(*changes: tuple[str, str], name: str = "n1", days: float = 10) -> Host:
    files = {"/proc/uptime": f"{days * 86400:.1f} 1.0"}
    return host(name, files, commands={"nvidia-smi-q": changed(H200, *changes)})


def said(check: Check, *changes: tuple[str, str]) -> list[tuple[Outcome, str]]:
    return [(outcome, message) for _, _, outcome, message in wrong(of(check, gpu(*changes)))]


BUSY = (
    ("<gpu_util>0 %</gpu_util>", "<gpu_util>98 %</gpu_util>"),
    ("reason_gpu_idle>Active", "reason_gpu_idle>Not Active"),
    ("<sm_clock>345 MHz</sm_clock>", "<sm_clock>{} MHz</sm_clock>"),
)
CAP = ("reason_sw_power_cap>Not Active", "reason_sw_power_cap>Active")


def busy(clock: int) -> tuple[tuple[str, str], ...]:
    return tuple((before, after.format(clock)) for before, after in BUSY)


def test_an_idle_gpu_and_a_busy_one_are_in_order() -> None:
    for changes in ((), busy(1980), (*busy(1300), CAP)):
        for check in EVERY:
            assert said(check, *changes) == [], check.id


def test_clocks_below_what_the_settings_permit_while_a_program_runs() -> None:
    assert said(gpu_use.GPU_CLOCKS, *busy(345)) == [(Outcome.WARN, "345 MHz in use, its settings permit 1980")]
    memory = (
        "<sm_clock>1979 MHz</sm_clock>\n\t\t\t<mem_clock>3201",
        "<sm_clock>1979 MHz</sm_clock>\n\t\t\t<mem_clock>1593",
    )
    assert said(gpu_use.GPU_CLOCKS, *busy(1979), memory) == [(Outcome.WARN, PINNED["memory at 1593 MHz in use"])]
    locked = [gpu(name=f"n{number}") for number in range(5)]
    locked[2] = gpu(
        ("<graphics_clock>1980 MHz</graphics_clock>", "<graphics_clock>1005 MHz</graphics_clock>"), name="n2"
    )
    assert [(name, message) for name, _, _, message in wrong(of(gpu_state.GPU_MODES, *locked))] == [
        ("n2", PINNED["application clock 1005 MHz"])
    ]


@pytest.mark.parametrize(
    ("counter", "share", "count"),
    [
        ("hw_therm_slowdown", 0.005, 0),
        ("hw_therm_slowdown", 0.02, 1),
        ("hw_power_brake", 0.5, 1),
        ("sw_power_cap", 0.5, 0),
    ],
)
def test_clocks_that_were_lowered_since_the_boot(counter: str, share: float, count: int) -> None:
    tag = f"clocks_event_reasons_counters_{counter}>"
    grown = said(gpu_state.GPU_THROTTLING, (f"{tag}0 us", f"{tag}{share * 864000e6:.0f} us"))
    assert [message for _, message in grown] == [
        PINNED["clocks lowered for share"].filled(share=units.share_text(share), counter=counter)
    ] * count


def test_a_power_cap_while_no_program_runs() -> None:
    no_idle = ("reason_gpu_idle>Active", "reason_gpu_idle>Not Active")
    assert said(gpu_state.GPU_THROTTLING, CAP, no_idle) == [(Outcome.WARN, PINNED["clocks lowered: sw_power_cap"])]


def test_memory_in_use_by_no_process() -> None:
    used = ("<used>0 MiB</used>\n\t\t\t<free>143156", "<used>51200 MiB</used>\n\t\t\t<free>91956")
    assert said(gpu_use.GPU_MEMORY_IN_USE, used) == [(Outcome.WARN, PINNED["51,200 MiB of its memory"])]
    grace = ("<addressing_mode>None", "<addressing_mode>ATS")  # GH200: the kernel uses it as memory of the host
    assert said(gpu_use.GPU_MEMORY_IN_USE, used, grace) == []
    assert said(gpu_use.GPU_MEMORY_IN_USE, used, ("<current_mig>Disabled", "<current_mig>Enabled")) == []
    of_process = host(
        "n1", commands={"nvidia-smi-q": changed(H200, used).replace("<processes>", f"{PROCESS}<processes>")}
    )
    assert wrong(of(gpu_use.GPU_MEMORY_IN_USE, of_process)) == []


@pytest.mark.parametrize("action", ["Reset", "Reboot", "Drain P2P", "Drain and Reset", "GPU Reset Required"])
def test_the_recovery_that_the_driver_requires(action: str) -> None:
    change = ("<gpu_recovery_action>None", f"<gpu_recovery_action>{action}")
    assert said(gpu_use.GPU_RECOVERY, change) == [(Outcome.FAIL, f"its driver requires: {action}")]


@pytest.mark.parametrize("words", ["GPU is lost", "GPU requires reset"])
@pytest.mark.parametrize("value", ["<replay_counter>2", "<performance_state>P0", "<gpu_temp>31 C"])
def test_a_gpu_without_values(value: str, words: str) -> None:
    assert said(gpu_use.GPU_RECOVERY, (tag(value), f"{value.partition('>')[0]}>{words}<")) == [
        (Outcome.FAIL, f"its driver reports: {words}")
    ]


def tag(value: str) -> str:
    """The value of this tag in the output."""
    begin = H200.index(value.partition(">")[0] + ">")
    return H200[begin : H200.index("<", begin + 1) + 1]


def test_unknown_errors_instead_of_several_values() -> None:
    changes = [(tag(value), f"{value}>Unknown Error<") for value in ("<gpu_temp", "<performance_state", "<fan_speed")]
    assert said(gpu_use.GPU_RECOVERY, *changes[:2]) == []
    assert [outcome for outcome, _ in said(gpu_use.GPU_RECOVERY, *changes)] == [Outcome.WARN]


@pytest.mark.parametrize(
    ("flag", "action"), [("reset_required", "Reset"), ("drain_and_reset_recommended", "Drain and Reset")]
)
def test_a_reset_that_older_drivers_require(flag: str, action: str) -> None:
    status = "<gpu_reset_status><{0}>{1}</{0}></gpu_reset_status>"
    action_now = "<gpu_recovery_action>None</gpu_recovery_action>"
    for kept in ("", action_now):
        required = (action_now, kept + status.format(flag, "Yes"))
        assert said(gpu_use.GPU_RECOVERY, required) == [(Outcome.FAIL, f"its driver requires: {action}")]
    for other in ("No", "N/A", "Requested functionality has been deprecated"):
        assert said(gpu_use.GPU_RECOVERY, (action_now, action_now + status.format(flag, other))) == []


def test_replays_far_above_those_of_similar_gpus() -> None:
    hosts = [gpu(name=f"n{number}") for number in range(5)]
    assert wrong(of(gpu_use.GPU_REPLAYS, *hosts)) == []
    hosts[3] = gpu(("<replay_counter>2<", "<replay_counter>5000<"), name="n3")
    assert [(name, message) for name, _, _, message in wrong(of(gpu_use.GPU_REPLAYS, *hosts))] == [
        ("n3", PINNED["5,000 replays of PCI Express"])
    ]
    assert said(gpu_use.GPU_REPLAYS, ("<replay_counter>2<", "<replay_counter>5000<")) == [], "no GPU to compare with"
    assert len(said(gpu_use.GPU_REPLAYS, ("<replay_rollover_counter>0<", "<replay_rollover_counter>1<"))) == 1


@pytest.mark.parametrize(
    ("tag", "outcome"),
    [
        ("sram_threshold_exceeded", Outcome.FAIL),
        ("unrepairable_memory", Outcome.FAIL),
        ("channel_repair_pending", Outcome.WARN),
        ("tpc_repair_pending", Outcome.WARN),
    ],
)
def test_memory_beyond_repair_and_pending_repairs(tag: str, outcome: Outcome) -> None:
    ((found, message),) = said(gpu_state.GPU_MEMORY, (f"<{tag}>No", f"<{tag}>Yes"))
    assert found is outcome and message


def test_the_health_of_an_nvlink_fabric() -> None:
    changes = (("<state>N/A</state>", "<state>Completed</state>"), ("<summary>N/A", "<summary>{}"))
    for summary, count in (("Healthy", 0), ("Unhealthy", 1), ("Limited Capacity", 1)):
        found = said(gpu_state.FABRIC_MANAGER, *((before, after.format(summary)) for before, after in changes))
        assert [message for _, message in found] == [f"the health of its fabric is {summary}"] * count


RELEASES = {  # what an older driver, or a lesser GPU, has in place of the tags of 580
    "R535": (("<gpu_recovery_action>None</gpu_recovery_action>", ""),),
    "R525": (
        ("<gpu_recovery_action>None</gpu_recovery_action>", ""),
        ("clocks_event_reason", "clocks_throttle_reason"),
    ),
    "R470": (
        ("<gpu_recovery_action>None</gpu_recovery_action>", ""),
        ("clocks_event_reasons_counters", "unused"),
        ("clocks_event_reason", "clocks_throttle_reason"),
        ("<remapped_row_failure>No</remapped_row_failure>", ""),
    ),
    "GeForce": (
        ("<remapped_row_failure>No</remapped_row_failure>", "<remapped_row_failure>N/A</remapped_row_failure>"),
        ("<replay_counter>2<", "<replay_counter>[N/A]<"),
        ("<gpu_recovery_action>None</gpu_recovery_action>", "<gpu_recovery_action>N/A</gpu_recovery_action>"),
    ),
}


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_of_the_driver_is_read(release: str) -> None:
    tags = RELEASES[release]
    for check in EVERY:
        assert said(check, *tags) == [], check.id
    assert said(gpu_use.GPU_CLOCKS, *busy(345), *tags) == [(Outcome.WARN, "345 MHz in use, its settings permit 1980")]
    slow = ("reason_hw_thermal_slowdown>Not Active", "reason_hw_thermal_slowdown>Active")
    assert [outcome for outcome, _ in said(gpu_state.GPU_THROTTLING, slow, *tags)] != []

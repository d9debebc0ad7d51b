"""What bends times, on fleets of Intel, AMD and GPU hosts: healthy ones are quiet, and the one odd host is named."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from preflight_help import of, rows_of
from tuned_hosts import (
    CARD,
    CLOCK,
    COALESCING,
    COUNTERS,
    CPU,
    EDAC,
    FEATURES,
    FLAGS,
    IB,
    LSPCI,
    NODE,
    RINGS,
    amd,
    boot,
    gpu,
    intel,
    meminfo,
    probe,
    smi,
    tallied,
)

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import Check
from fablint.preflight.checks.gpu import gpu_state
from fablint.preflight.checks.host import (
    boot as boot_checks,
    clock,
    frequency,
    interrupts,
    memory,
    pcie_requests,
    probe_speed,
    processors,
    software,
)
from fablint.preflight.checks.infiniband import port_settings
from fablint.preflight.checks.network import ethtool_settings
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.runner import judge
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

FILES = (
    boot_checks,
    clock,
    ethtool_settings,
    frequency,
    gpu_state,
    port_settings,
    interrupts,
    memory,
    pcie_requests,
    probe_speed,
    processors,
)
OWN = [*rows_of(*FILES), software.LOAD]
Maker = Callable[..., Host]


def bad(results: Sequence[Result]) -> list[tuple[str, str, Outcome]]:
    return [
        (result.host, result.check, result.outcome)
        for result in results
        if result.outcome not in (Outcome.PASS, Outcome.SKIP)
    ]


def passed(results: Sequence[Result]) -> set[str]:
    return {result.check for result in results if result.outcome is Outcome.PASS}


# ------------------------------------------------------------------------------------------------ healthy fleets


@pytest.mark.parametrize("makers", [[intel] * 8, [amd] * 8, [gpu] * 8, [intel] * 3, [amd], [intel] * 2])
def test_a_healthy_fleet_is_quiet(makers: list[Maker]) -> None:
    results = judge(Fleet([maker(index) for index, maker in enumerate(makers)]), OWN).results
    assert bad(results) == []


def test_on_a_healthy_fleet_every_check_has_seen_something() -> None:
    """Else it would be quiet because it is blind."""
    results = judge(Fleet([gpu(index) for index in range(8)]), OWN).results
    blind = {check.id for check in OWN} - passed(results)
    assert blind == {"ib.gid", "log.throttle", "log.clock"}  # no RoCE, no kernel log: see below
    assert {"host.microcode", "host.turbo", "host.cpu.cap"} <= passed(
        judge(Fleet([amd(n) for n in range(8)]), OWN).results
    )


@pytest.mark.parametrize("counts", [(11, 9), (12, 8), (15, 1), (2, 1), (60, 40)])
def test_two_cpu_models_in_one_chassis_have_no_finding(counts: tuple[int, int]) -> None:
    makers = [intel] * counts[0] + [amd] * counts[1]
    random.Random(1).shuffle(makers)
    assert bad(judge(Fleet([maker(index) for index, maker in enumerate(makers)]), OWN).results) == []


def test_three_kinds_and_a_login_node_have_no_finding() -> None:
    hosts = [intel(n) for n in range(6)] + [amd(n) for n in range(6, 12)] + [gpu(n) for n in range(12, 18)]
    login = intel(
        18, files={"/sys/devices/virtual/dmi/id/product_name": "Login", "/proc/loadavg": "90.0 90.0 90.0 5/9 7"}
    )
    assert bad(judge(Fleet([*hosts, login]), OWN).results) == []


def test_hosts_with_other_files_say_why_nothing_is_judged() -> None:
    results = judge(Fleet([Host(intel(0).snapshot.__class__(f"n{index}")) for index in range(3)]), OWN).results
    assert {result.outcome for result in results} == {Outcome.SKIP}
    assert all(result.message for result in results)


# ------------------------------------------------------------------------------------------------ one odd host

CPUINFO = f"model name\t: Intel(R) Xeon(R) Platinum 8480+\nmicrocode\t: {{}}\nflags\t\t: {FLAGS}"
THROTTLE = f"{CPU}/cpu*/thermal_throttle/core_throttle_count"
KIB = 512 << 20
LACKING = (KIB - 9_000_000) // 2 - KIB // 64  # of one NUMA node
ONE_DIMM = KIB - (KIB // 64) - 9_000_000


def smi_with(old: str, new: str) -> dict[str, str]:
    """A change of the third GPU."""
    parts = smi().split("\t<gpu ")
    assert old in parts[3]
    parts[3] = parts[3].replace(old, new)
    return {"nvidia-smi-q": "\t<gpu ".join(parts)}


W, F = Outcome.WARN, Outcome.FAIL
CASES: list[tuple[str, dict[str, Any], Outcome, str]] = [
    ("host.clocksource", {"files": {f"{CLOCK}/current_clocksource": "hpet"}}, W, "hpet, whose reading takes"),
    ("host.tsc", {"files": {"/proc/cpuinfo": CPUINFO.format("0x2b000603").replace(" nonstop_tsc", "")}}, W,
     "no nonstop_tsc"),
    ("host.turbo", {"files": {f"{CPU}/intel_pstate/no_turbo": "1"}}, W, "turbo off, 7 others on"),
    ("host.cpu.cap", {"files": {f"{CPU}/cpu*/cpufreq/scaling_max_freq": tallied(2000000, 224)}}, W,
     "CPUs capped at 53 % of their highest frequency, 7 others 100"),
    ("host.cpu.cap", {"files": {f"{CPU}/intel_pstate/max_perf_pct": "60"}}, W, "CPUs capped at 60 %"),
    ("host.cpu.cap", {"files": {f"{CPU}/cpu*/cpufreq/scaling_max_freq": "1 1900000\n223 3800000"}}, W,
     "CPUs capped at 50 %"),
    ("host.throttle", {"later": {THROTTLE: "220 0\n4 9"}, "files": {THROTTLE: "224 0"}}, W,
     "core throttled 36 times in 4.0 s"),
    ("host.throttle", {"files": {THROTTLE: "224 5000"}}, W, "throttled 112,"),
    ("host.microcode", {"files": {"/proc/cpuinfo": CPUINFO.format("0x2b000461")}}, W,
     "microcode 0x2b000461, 7 others 0x2b000603"),
    ("host.mitigations", {"files": {f"{CPU}/vulnerabilities/spectre_v2": "Vulnerable"}}, W,
     "spectre_v2 Vulnerable, 7 others spectre_v2 Mitigation: Enhanced / Automatic IBRS"),
    ("host.cmdline", {"files": {"/proc/cmdline": boot(5, "intel_iommu=on")}}, W,
     "intel_iommu=on, 7 others intel_iommu=off"),
    ("host.cmdline", {"files": {"/proc/cmdline": boot(5, "intel_iommu=off iommu.passthrough=on isolcpus=2-9")}},
     W, "isolcpus=2-9, 7 others no isolcpus"),
    ("host.irq", {"files": {f"{IB}/device/msi_irqs/*": "16 0"}}, W,
     "interrupts all on one CPU, 7 others on several CPUs"),
    ("host.irq", {"files": {f"{IB}/device/msi_irqs/*": "8 1\n8 2"}}, W, "interrupts all on another NUMA node"),
    ("host.edac", {"files": {f"{EDAC}/mc1/ue_count": "1", f"{EDAC}/mc1/dimm3/dimm_ue_count": "1",
                             f"{EDAC}/mc1/dimm3/dimm_label": "CPU1_DIMM_D1"}}, F,
     "1 uncorrected errors since the driver was loaded: CPU1_DIMM_D1 1"),
    ("host.edac", {"later": {f"{EDAC}/mc1/ce_count": "40"}}, W, "corrected errors: "),
    ("host.edac", {"files": {f"{EDAC}/mc1/ce_count": "4000"}}, W, "4,000 corrected errors since boot, 400 a"),
    ("host.memory", {"files": {"/proc/meminfo": meminfo(ONE_DIMM, 0.97)}}, W, "495.4 GiB, median of 8 hosts"),
    ("host.memory", {"files": {"/proc/meminfo": meminfo(KIB // 2 - 9_000_000, 0.97)}}, F, "247.4 GiB, median"),
    ("host.memory.free", {"files": {"/proc/meminfo": meminfo(KIB - 9_030_000, 0.6)}}, W,
     "60 % of the memory available, median of 8 hosts 9"),
    ("host.numa.memory", {"files": {f"{NODE}/node1/meminfo": f"Node 1 MemTotal:  {LACKING} kB"}},
     W, "49 % of the host's memory"),
    ("host.load", {"files": {"/proc/loadavg": "40.0 40.0 40.0 40/900 77"}}, W, "0.18 processes per CPU"),
    ("pcie.requests", {"commands": {"lspci": LSPCI.format(card=CARD, payload=512, request=512)}}, W,
     "MaxPayload 512, MaxReadReq 512, 7 others MaxPayload 512, MaxReadReq 4096"),
    ("ib.pkey", {"files": {f"{IB}/ports/1/pkeys/*": "1 0x7fff"}}, W, "P_Keys 0x7fff, 7 others 0x7fff 0x8001"),
    ("net.ipoib.mode", {"files": {"/sys/class/net/ib0/mode": "connected"}}, W, "connected, 7 others datagram"),
    ("net.offload", {"commands": {"ethtool-k/ib0": FEATURES.replace("receive-offload: on", "receive-offload: off")}},
     W, "generic-receive-offload off, 7 others generic-receive-offload on"),
    ("net.ring", {"commands": {"ethtool-g/ib0": RINGS.replace("1024", "256")}}, W,
     "RX 256, 7 others RX 1024"),
    ("net.coalesce", {"commands": {"ethtool-c/ib0": COALESCING.format(adaptive="on", rx=8, tx=250)}}, W,
     "tx-usecs 250, 7 others tx-usecs 8"),
    ("net.coalesce", {"commands": {"ethtool-c/ib0": COALESCING.format(adaptive="off", rx=8, tx=8)}}, W,
     "adaptive-rx off"),
    ("net.pause.frames", {"commands": {"ethtool-S/ib0": COUNTERS.format(rx=1, tx=1, storms=0),
                                       "ethtool-S-later/ib0": COUNTERS.format(rx=1, tx=90_001, storms=0)}}, W,
     "sent 90,000 pause frames in some seconds, median of 8"),
    ("net.pause.frames", {"commands": {"ethtool-S/ib0": COUNTERS.format(rx=1, tx=1, storms=0),
                                       "ethtool-S-later/ib0": COUNTERS.format(rx=1, tx=1, storms=2)}}, W,
     "2 pause storms"),
    ("host.memory.speed", {"commands": {"probe": probe(300e9, 95e9, cores=112)}}, W,
     "300 GB/s on 112 cores, spread 1 %; median of 8 hosts 3"),
    ("host.cpu.speed", {"commands": {"probe": probe(380e9, 70e9, cores=112)}}, W, "70 GB/s on 112 cores"),
    ("gpu.fabricmanager", {"commands": {"fabricmanager": Output("inactive\n", status=3)}}, F,
     "nvidia-fabricmanager is inactive"),
    ("gpu.fabricmanager", {"commands": smi_with("Completed", "In Progress")}, F, "In Progress"),
    ("gpu.fabricmanager", {"commands": smi_with("Success", "CUDA_ERROR_X")}, F, "join its fabric: CUDA"),
    ("gpu.peermem", {"files": {"/sys/module/nvidia_peermem/initstate": None}}, W,
     "no peer memory module, 7 others nvidia_peermem loaded"),
    ("gpu.remap", {"commands": smi_with("failure>No", "failure>Yes")}, F, "remapping of a memory row"),
    ("gpu.remap", {"commands": smi_with("pending>No", "pending>Yes")}, W, "is pending"),
    ("gpu.remap", {"commands": smi_with("<dram_uncorrectable>0", "<dram_uncorrectable>2")}, W,
     "2 uncorrectable memory errors"),
    ("gpu.throttle", {"commands": smi_with("brake_slowdown>Not Active", "brake_slowdown>Active")}, W,
     "clocks lowered: hw_power_brake_slowdown"),
    ("gpu.power", {"commands": smi_with("current_power_limit>700", "current_power_limit>350")}, W,
     "power limit 350.0 W, 7 others 700.0"),
    ("gpu.modes", {"commands": smi_with("current_ecc>Enabled", "current_ecc>Disabled")}, W,
     "ECC Disabled, 7 others ECC Enabled"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "change", "outcome", "message"), CASES, ids=[f"{n}-{c[0]}" for n, c in enumerate(CASES)]
)
def test_the_odd_host_is_named_and_no_other(check: str, change: dict[str, Any], outcome: Outcome, message: str) -> None:
    hosts = [gpu(index, **(change if index == 5 else {})) for index in range(8)]
    found = [
        result for result in judge(Fleet(hosts), OWN).results if result.outcome not in (Outcome.PASS, Outcome.SKIP)
    ]
    assert {(one.host, one.check, one.outcome) for one in found} == {("n5", check, outcome)}
    assert [one for one in found if message in one.message], [one.message for one in found]


def test_every_check_has_a_case() -> None:
    elsewhere = {"host.cpu.model", "ib.gid", "log.throttle", "log.clock", "pcie.ordering"}
    assert {check.id for check in OWN} - {case[0] for case in CASES} == elsewhere


def test_a_fault_is_found_among_two_cpu_models() -> None:
    hosts = [intel(n) for n in range(6)] + [amd(n) for n in range(6, 12)]
    slow = amd(12, files={f"{CPU}/cpufreq/boost": "1", "/proc/cmdline": boot(12, "iommu=pt")},
               commands={"probe": probe(200e9, 170e9, cores=128)})  # fmt: skip
    results = judge(Fleet([*hosts, slow]), OWN).results
    assert sorted(set(bad(results))) == [
        ("n12", "host.cmdline", Outcome.WARN),
        ("n12", "host.memory.speed", Outcome.WARN),
    ]


# ------------------------------------------------------------------------------------------------ guards


def outcome_of(check: Check, hosts: Sequence[Host], name: str) -> list[tuple[Outcome, str]]:
    return [(one.outcome, one.message) for one in of(check, *hosts) if one.host == name]


@pytest.mark.parametrize("sizes", [[512] * 11 + [256] * 9, [512] * 6 + [256] * 4, [512] * 4 + [1024] * 3 + [256] * 3])
def test_memory_of_several_sizes_is_no_fault(sizes: list[int]) -> None:
    hosts = [
        intel(index, files={"/proc/meminfo": meminfo((gib << 20) - 9_000_000, 0.97)}) for index, gib in enumerate(sizes)
    ]
    assert bad(of(memory.MEMORY, *hosts)) == []


def test_half_of_the_memory_is_a_warning_where_few_hosts_agree() -> None:
    hosts = [intel(0), intel(1), intel(2, files={"/proc/meminfo": meminfo(KIB // 2, 0.97)})]
    assert bad(of(memory.MEMORY, *hosts)) == [("n2", "host.memory", Outcome.WARN)]


def test_available_memory_is_not_compared_where_jobs_run_on_all_hosts() -> None:
    hosts = [intel(n, files={"/proc/meminfo": meminfo(KIB, 0.1 if n == 2 else 0.4)}) for n in range(5)]
    assert outcome_of(memory.AVAILABLE_MEMORY, hosts, "n2")[0][0] is Outcome.SKIP


@pytest.mark.parametrize(("load", "outcome"), [("22.0", Outcome.PASS), ("23.0", Outcome.WARN)])
def test_load_above_a_tenth_of_the_cpus_among_idle_hosts(load: str, outcome: Outcome) -> None:
    hosts = [intel(n, files={"/proc/loadavg": f"{load if n == 1 else '0.5'} 1.0 1.0 1/9 9"}) for n in range(5)]
    assert outcome_of(software.LOAD, hosts, "n1")[0][0] is outcome


def test_cores_of_a_cpu_that_reach_more_than_others_are_no_cap() -> None:
    both = {f"{CPU}/cpu*/cpufreq/{name}_max_freq": "216 3800000\n8 4100000" for name in ("scaling", "cpuinfo")}
    assert bad(of(frequency.FREQUENCY_CAP, *[intel(n, files=both) for n in range(5)])) == []
    empty = {f"{CPU}/cpu*/cpufreq/{name}_max_freq": "0 3800000" for name in ("scaling", "cpuinfo")}
    assert bad(of(frequency.FREQUENCY_CAP, intel(0, files=empty))) == []


def test_part_of_a_process_on_a_small_host_is_no_load() -> None:
    small = {f"{CPU}/online": "0-1"}
    hosts = [intel(n, files={**small, "/proc/loadavg": f"{0.5 if n == 1 else 0.01:.2f} 0 0 1/9 9"}) for n in range(5)]
    assert bad(of(software.LOAD, *hosts)) == []


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        (probe(100e9, 95e9, cores=112, others=20.0), Outcome.SKIP, "other programs used 20.0 of 112 cores"),
        (probe(100e9, 95e9, cores=8), Outcome.SKIP, "too few similar idle hosts"),  # a job step with a few cores
        (probe(320e9, 95e9, cores=112, spread=0.4), Outcome.PASS, ""),  # it was disturbed
        (probe(350e9, 95e9, cores=112), Outcome.PASS, ""),
        (Output(error="too little free memory for a measurement"), Outcome.SKIP, "too little free memory"),
        (Output(error="no answer in time"), Outcome.ERROR, "no answer in time"),
        ("{}", Outcome.ERROR, "cannot be parsed"),
        (None, Outcome.SKIP, "not run at this level"),
    ],
)
def test_a_host_is_slow_only_if_it_was_idle_and_steady(answer: Any, outcome: Outcome, message: str) -> None:
    hosts = [intel(n, commands={"probe": answer} if n == 3 else {}) for n in range(8)]
    ((found, reported),) = outcome_of(probe_speed.MEMORY_SPEED, hosts, "n3")
    assert found is outcome
    assert message in reported
    assert {one.outcome for one in of(probe_speed.MEMORY_SPEED, *hosts) if one.host != "n3"} == {Outcome.PASS}


def test_hosts_that_vary_much_are_not_slow() -> None:
    rates = [300e9, 380e9, 340e9, 420e9, 360e9, 460e9, 260e9, 400e9]
    hosts = [intel(n, commands={"probe": probe(rate, 95e9, cores=112)}) for n, rate in enumerate(rates)]
    assert bad(of(probe_speed.MEMORY_SPEED, *hosts)) == []


def test_indices_of_roce_addresses() -> None:
    port = f"{IB}/ports/1"
    files = {f"{port}/link_layer": "Ethernet", f"{port}/gids/0": "fe80:0000:0000:0000:0202:c9ff:fe00:0001"}
    files |= {f"{port}/gids/{n}": "0000:0000:0000:0000:0000:ffff:0a00:0001" for n in (2, 3)}
    files |= {f"{port}/gid_attrs/types/{n}": kind for n, kind in ((0, "IB/RoCE v1"), (2, "IB/RoCE v1"), (3, "RoCE v2"))}
    moved = {f"{port}/gids/3": None, f"{port}/gids/5": "0000:0000:0000:0000:0000:ffff:0a00:0001"}
    moved |= {f"{port}/gid_attrs/types/5": "RoCE v2"}
    hosts = [intel(n, files={**files, **(moved if n == 2 else {})}) for n in range(5)]
    results = of(port_settings.GID_TYPES, *hosts)
    assert bad(results) == [("n2", "ib.gid", Outcome.WARN)]
    assert [result.message for result in results if result.host == "n2"] == [PINNED["RoCE v2 over IPv4 at index"]]


LOG = "<4>[863000.000001] {}\n"


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (frequency.LOG_THROTTLE, "mce: CPU4: Core temperature above threshold, cpu clock throttled (total events = 38)"),  # noqa: E501
        (frequency.LOG_THROTTLE, "CPU1: Package temperature above threshold, cpu clock throttled (total events = 1)"),
        (clock.LOG_CLOCK, "clocksource: timekeeping watchdog on CPU262: Marking clocksource 'tsc' as unstable because the skew is too large:"),  # noqa: E501
        (clock.LOG_CLOCK, "tsc: Marking TSC unstable due to check_tsc_sync_source failed"),
    ],
)  # fmt: skip
def test_lines_of_the_kernel_log(check: Check, line: str) -> None:
    def said(text: str, **more: Any) -> list[tuple[str, str, Outcome]]:
        return bad(of(check, intel(0, kernel_log=Output(LOG.format(text), status=0), **more)))

    assert said(line) == [("n0", check.id, Outcome.WARN)]
    assert said("mce: CPU4: Core temperature/speed normal") == []
    assert said("clocksource: Switched to clocksource tsc") == []
    if check is clock.LOG_CLOCK:
        assert said(line, files={"/proc/cpuinfo": CPUINFO.format("0x1") + " hypervisor"}) == []


def test_what_only_root_sees_is_skipped_for_others() -> None:
    text = (
        LSPCI.format(card=CARD, payload=512, request=512).partition("\tCapabilities")[0]
        + "\tCapabilities: <access denied>\n"
    )
    hosts = [intel(n, commands={"lspci": text}) for n in range(3)]
    assert {(one.outcome, one.message) for one in of(pcie_requests.PCIE_REQUESTS, *hosts)} == {
        (Outcome.SKIP, "lspci shows it to root only")
    }


@pytest.mark.parametrize(
    ("check", "name", "answer", "outcome", "message"),
    [
        (ethtool_settings.OFFLOADS, "ethtool-k/ib0", "not installed", Outcome.SKIP, "ethtool: not installed"),
        (ethtool_settings.RINGS, "ethtool-g/ib0", "no answer in time", Outcome.ERROR, "ethtool: no answer in time"),
        (ethtool_settings.PAUSE_FRAMES, "ethtool-S/ib0", "not installed", Outcome.SKIP, "ethtool: not installed"),
        (ethtool_settings.PAUSE_FRAMES, "ethtool-S-later/ib0", "no answer in time", Outcome.ERROR, "no answer in time"),
        (pcie_requests.PCIE_REQUESTS, "lspci", "not installed", Outcome.SKIP, "lspci: not installed"),
        (gpu_state.GPU_POWER, "nvidia-smi-q", "no answer in time", Outcome.ERROR, "nvidia-smi: no answer in time"),
        (gpu_state.GPU_MODES, "nvidia-smi-q", "not installed", Outcome.SKIP, "nvidia-smi: not installed"),
        (gpu_state.GPU_MEMORY, "nvidia-smi-q", "no answer in time", Outcome.ERROR, "no answer in time"),
    ],
)
def test_why_there_is_nothing_to_judge(check: Any, name: str, answer: str, outcome: Outcome, message: str) -> None:
    hosts = [gpu(n, commands={name: Output(error=answer)} if n == 1 else {}) for n in range(4)]
    ((found, reported),) = outcome_of(check, hosts, "n1")
    assert (found, message in reported) == (outcome, True)
    assert {one.outcome for one in of(check, *hosts) if one.host != "n1"} == {Outcome.PASS}


def test_settings_that_each_host_has_for_itself_are_not_compared() -> None:
    hosts = [
        intel(n, files={"/proc/cmdline": f"nid={n} ip=10.0.0.{n} root=UUID=0{n}34abcd-12ef quiet"}) for n in range(6)
    ]
    results = of(boot_checks.COMMAND_LINE, *hosts)
    assert {(result.target, result.outcome) for result in results} == {("Intel Xeon Platinum 8480+", Outcome.PASS)}


def test_two_hosts_that_differ_are_not_compared_as_similar() -> None:
    hosts = [intel(0), intel(1, files={"/proc/cmdline": boot(1, "intel_iommu=off")})]
    results = [one for one in of(boot_checks.COMMAND_LINE, *hosts) if "passthrough" in one.target]
    assert {result.outcome for result in results} == {Outcome.SKIP}
    assert {result.message.partition(";")[0] for result in results} == {"iommu.passthrough=on", "no iommu.passthrough"}

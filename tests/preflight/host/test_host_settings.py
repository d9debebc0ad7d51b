"""How a host is set."""

from __future__ import annotations

import pytest
from preflight_help import host, of, outcomes, sysroot, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.host.settings import (
    ACCESS_CONTROL,
    CLOCK_SYNC,
    GOVERNOR,
    HUGEPAGES,
    HUGEPAGES_ON_DEMAND,
    IDLE_STATES,
    IOMMU,
    MEMLOCK,
    NUMA_BALANCING,
    SHARED_MEMORY,
)
from fablint.snapshot.host_snapshot import Output

GIB = 1 << 30
MLX5 = {"/sys/class/infiniband/mlx5_0/node_desc": "n1 mlx5_0"}
CHRONY = "C0A80001,192.168.0.1,3,1767594000.1,{offset},0.000001,0.00002,-1.2,0.0,0.1,0.0004,0.0008,64.5,{leap}\n"
ROOT_PORT = """0000:c0:01.4 PCI bridge: Example Root Port (prog-if 00 [Normal decode])
	Bus: primary=c0, secondary=c1, subordinate=c2, sec-latency=0
	Capabilities: [2a0 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
		ACSCtl:	SrcValid{0} TransBlk- ReqRedir{0} CmpltRedir{0} UpstreamFwd{0} EgressCtrl- DirectTrans-
"""
GPU = "0000:c2:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n\tControl: I/O- Mem+\n"


def memlock(limit: str, **files: str) -> dict[str, str]:
    text = f"Limit              Soft Limit   Hard Limit   Units\nMax locked memory  {limit}    unlimited    bytes"
    return {"/proc/self/limits": text, **files}


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        ("unlimited", Outcome.PASS),
        ("274877906944", Outcome.PASS),
        ("1073741824", Outcome.PASS),
        ("268435456", Outcome.WARN),
        ("67108864", Outcome.FAIL),
        ("8388608", Outcome.FAIL),
        ("many", Outcome.ERROR),
    ],
)
def test_locked_memory_of_a_host_with_rdma(limit: str, outcome: Outcome) -> None:
    assert outcomes(of(MEMLOCK, host("n1", memlock(limit, **MLX5)))) == [outcome]


def test_locked_memory_in_samples_of_trees() -> None:
    bad = of(MEMLOCK, host("n1", sysroot("mlx5-2rail-bad")))
    assert wrong(bad) == [("n1", "", Outcome.FAIL, "limit of locked memory 0.0625 MiB")]
    assert outcomes(of(MEMLOCK, host("n1", sysroot("mlx5-2rail-good")))) == [Outcome.PASS]


def test_locked_memory_matters_to_rdma_and_not_to_root() -> None:
    assert outcomes(of(MEMLOCK, host("laptop", memlock("8388608")))) == [Outcome.SKIP]
    assert outcomes(of(MEMLOCK, host("n1", memlock("8388608", **MLX5), root=True))) == [Outcome.SKIP]


@pytest.mark.parametrize(
    ("size", "free", "outcome"),
    [
        (64 << 20, 64 << 20, Outcome.WARN),
        (GIB, GIB, Outcome.PASS),
        (100 * GIB, 5 * GIB, Outcome.WARN),
        (100 * GIB, 11 * GIB, Outcome.PASS),
        (0, 0, Outcome.SKIP),
    ],
)
def test_shared_memory(size: int, free: int, outcome: Outcome) -> None:
    assert outcomes(of(SHARED_MEMORY, host("n1", shared_memory={"size": size, "free": free}))) == [outcome]


def test_a_tenth_of_a_small_memory_is_enough_shared_memory() -> None:
    small = host("n1", {"/proc/meminfo": "MemTotal:  2097152 kB"}, shared_memory={"size": GIB // 4, "free": GIB // 4})
    assert outcomes(of(SHARED_MEMORY, small)) == [Outcome.PASS]


@pytest.mark.parametrize(
    ("check", "path", "usual", "odd", "message"),
    [
        (
            HUGEPAGES,
            "/proc/meminfo",
            "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n",
            "HugePages_Total:     512\nHugePages_Free:        0\nHugepagesize:       2048 kB\n",
            "huge pages 512 of 2048 kB, 3 others 0 of 2048 kB",
        ),
        (
            HUGEPAGES_ON_DEMAND,
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never",
            "[always] madvise never",
            "transparent huge pages: always, 3 others madvise",
        ),
        (NUMA_BALANCING, "/proc/sys/kernel/numa_balancing", "0", "1", "numa_balancing 1, 3 others 0"),
    ],
)
def test_a_deviating_setting_is_reported(check: Check, path: str, usual: str, odd: str, message: str) -> None:
    hosts = [host(f"n{index}", {path: odd if index == 2 else usual}) for index in range(4)]
    assert wrong(of(check, *hosts)) == [("n2", "", Outcome.WARN, message)]


def test_governors_are_counted() -> None:
    def governors(*chosen: str) -> dict[str, str]:
        at = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
        return {at.format(index): one for index, one in enumerate(chosen)} | {"/sys/devices/system/cpu/online": "0-3"}

    assert outcomes(of(GOVERNOR, host("n1", governors(*["performance"] * 4)))) == [Outcome.PASS]
    results = of(GOVERNOR, host("n1", governors("performance", "powersave", "powersave")))
    assert wrong(results) == [("n1", "", Outcome.WARN, "powersave on 2 of 3 CPUs")]


def test_deep_states_are_named_unless_disabled() -> None:
    def states(disable: str) -> dict[str, str]:
        at = "/sys/devices/system/cpu/cpu0/cpuidle"
        return {
            f"{at}/state0/name": "POLL",
            f"{at}/state0/latency": "0",
            f"{at}/state0/disable": "0",
            f"{at}/state3/name": "C6",
            f"{at}/state3/latency": "133",
            f"{at}/state3/disable": disable,
        }

    ((_, _, outcome, message),) = wrong(of(IDLE_STATES, host("n1", states("0"))))
    assert (outcome, message) == (Outcome.WARN, "deep states enabled: C6 (133 us)")
    assert outcomes(of(IDLE_STATES, host("n1", states("1")))) == [Outcome.PASS]


@pytest.mark.parametrize(
    ("group", "kind", "outcome"),
    [
        ("12", "identity", Outcome.PASS),
        ("12", "DMA-FQ", Outcome.WARN),
        ("12", None, Outcome.SKIP),
        (None, "DMA", Outcome.PASS),  # others' groups do not matter
    ],
)
def test_translation_by_the_iommu(group: str | None, kind: str | None, outcome: Outcome) -> None:
    links = {"/sys/class/infiniband/mlx5_0/device": "../../../0000:c1:00.0"}
    if group:
        links["/sys/class/infiniband/mlx5_0/device/iommu_group"] = f"../../../kernel/iommu_groups/{group}"
    types = {"/sys/kernel/iommu_groups/12/type": kind} if kind else {}
    assert outcomes(of(IOMMU, host("n1", {**MLX5, **types}, links=links))) == [outcome]


@pytest.mark.parametrize(
    ("chrony", "systemd", "outcome"),
    [
        (CHRONY.format(offset="-0.000012", leap="Normal"), "NTPSynchronized=no", Outcome.PASS),
        (CHRONY.format(offset="-0.0021", leap="Normal"), "", Outcome.WARN),
        (CHRONY.format(offset="0.000012", leap="Not synchronised"), "", Outcome.WARN),
        (CHRONY.format(offset="nan", leap="Normal"), "", Outcome.WARN),
        ("C0A80001,192.168.0.1", "", Outcome.ERROR),
        (None, "NTPSynchronized=yes\nNTP=yes\n", Outcome.PASS),
        (None, "NTP=yes\nNTPSynchronized=no\n", Outcome.WARN),
        (None, "Unknown property\n", Outcome.ERROR),
        (None, None, Outcome.SKIP),
    ],
)
def test_the_clock(chrony: str | None, systemd: str | None, outcome: Outcome) -> None:
    said = {"chronyc": chrony, "timedatectl": systemd}
    missing = Output(error="not installed")
    commands = {name: missing if text is None else Output(text, status=0) for name, text in said.items()}
    assert outcomes(of(CLOCK_SYNC, host("n1", commands=commands))) == [outcome]


def test_how_far_off_the_clock_is() -> None:
    off = host("n1", commands={"chronyc": CHRONY.format(offset="-0.0021", leap="Normal")})
    assert wrong(of(CLOCK_SYNC, off))[0][3] == "clock off by 2.1 ms"


@pytest.mark.parametrize(
    ("lspci", "root", "outcome"),
    [
        (ROOT_PORT.format("+") + "\n" + GPU, True, Outcome.WARN),
        (ROOT_PORT.format("-") + "\n" + GPU, True, Outcome.PASS),
        (ROOT_PORT.format("+") + "\n" + GPU.replace("c2:00.0", "d2:00.0"), True, Outcome.PASS),
        (ROOT_PORT.format("+") + "\n" + GPU, False, Outcome.SKIP),
        (ROOT_PORT.format("+"), True, Outcome.SKIP),
    ],
)
def test_access_control_of_bridges_above_gpus(lspci: str, root: bool, outcome: Outcome) -> None:
    results = of(ACCESS_CONTROL, host("n1", commands={"lspci": lspci}, root=root))
    assert outcomes(results) == [outcome]
    if outcome is Outcome.WARN:
        assert results[0].message == "ACS on: bridge 0000:c0:01.4"


@pytest.mark.parametrize("check", [MEMLOCK, SHARED_MEMORY, GOVERNOR, IDLE_STATES, IOMMU, CLOCK_SYNC, ACCESS_CONTROL])
def test_what_cannot_be_seen_is_skipped_with_its_reason(check: Check) -> None:
    (result,) = of(check, host("n1"))
    assert result.outcome is Outcome.SKIP
    assert result.message

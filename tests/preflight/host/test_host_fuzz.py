"""No check of the host itself raises, whatever is in a snapshot, and garbage is not a failure of a GPU or NIC."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from preflight_help import rows_of, sample
from tuned_hosts import COALESCING, COUNTERS, FEATURES, RINGS, probe, smi

from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.gpu import amd_gpus, gpu_log, gpu_state, gpu_use, gpus
from fablint.preflight.checks.host import (
    boot,
    clock,
    cpu_time,
    frequency,
    hardware_log,
    interrupts,
    memory,
    pcie_requests,
    probe_speed,
    processors,
    settings as host_settings,
    slot_bandwidth,
    software,
    storage_log,
)
from fablint.preflight.checks.infiniband import port_settings
from fablint.preflight.checks.network import ethtool_settings, network_log
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.runner import judge
from fablint.snapshot.collecting import snapshot_of
from fablint.snapshot.parsers.kernel_log import KernelLog, hardware_errors

pytestmark = pytest.mark.long  # many damaged files

TUNING = (boot, clock, frequency, port_settings, interrupts, memory, pcie_requests, probe_speed, processors)
LOGS = (hardware_log, network_log, gpu_log, storage_log)
FILES = (
    *LOGS,
    host_settings,
    software,
    gpus,
    gpu_state,
    gpu_use,
    amd_gpus,
    cpu_time,
    slot_bandwidth,
    ethtool_settings,
    *TUNING,
)
OWN = rows_of(*FILES)
LINES = (sample("misc/dmesg-hardware.txt") + sample("slingshot/dmesg-cxi.txt")).splitlines()
LINES += [
    "<3>[  100.000001] mlx5_core 0000:d2:00.0: poll_health:825:(pid 0): Fatal error 3 detected",
    "<6>[  101.000001] mlx5_core 0000:d2:00.0: mlx5_health_try_recover:341:(pid 512): health recovery succeeded",
    "[  101.5] kernel: NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0xffff:2477)",
    "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    "2026-01-05T07:15:00+0100 n1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07",
    "2026-99-99T99:99:99+9999 n1 kernel: Oops: 0000 [#1] SMP NOPTI",
    "[Mon Jan  5 07:15:00 2026] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
    "<3>[  102.000001] rcu: INFO: Stall ended before state dump start",
    "<3>[  103.000001] I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
    "<4>[  104.000001] nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
    "<6>[  105.000001] nvme nvme0: 63/0/0 default/read/poll queues",
    "<2>[  106.000001] EXT4-fs (sda1): Remounting filesystem read-only",
    "<6>[  107.000001] EXT4-fs (sda1): re-mounted. Opts: (null)",
    "<3>[  108.000001] XFS (dm-0): Please unmount the filesystem and rectify the problem(s)",
    "<3>[  109.000001] LustreError: 167-0: s-OST000a-osc-ff: This client was evicted by s-OST000a; in progress",
    "<4>[  110.000001] Lustre: s-OST000a-osc-ff: Connection restored to 10.1.4.7@o2ib (at 10.1.4.7@o2ib)",
    "<6>[  111.000001] pcieport 0000:c0:01.4: AER: device recovery successful",
]
PATHS = (
    "proc/self/limits",
    "proc/self/mountinfo",
    "sys/class/block/dm-0/dev",
    "proc/meminfo",
    "proc/loadavg",
    "proc/uptime",
    "proc/sys/kernel/numa_balancing",
    "proc/driver/nvidia/gpus/0000:01:00.0/information",
    "sys/bus/pci/devices/0000:01:00.0/class",
    "sys/class/infiniband/mlx5_0/ports/1/state",
    "sys/class/cxi/cxi0/device/port/link",
    "sys/class/net/hsn0/address",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/latency",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/disable",
    "sys/devices/system/cpu/smt/active",
    "sys/devices/system/node/online",
    "sys/devices/virtual/dmi/id/product_name",
    "sys/kernel/iommu_groups/1/type",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/module/nvidia/version",
    "etc/os-release",
    "proc/cmdline",
    "proc/cpuinfo",
    "sys/class/infiniband/mlx5_0/device/local_cpulist",
    "sys/class/infiniband/mlx5_0/device/msi_irqs/*",
    "sys/class/infiniband/mlx5_0/ports/1/gids/3",
    "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3",
    "sys/class/infiniband/mlx5_0/ports/1/link_layer",
    "sys/class/infiniband/mlx5_0/ports/1/pkeys/*",
    "sys/class/net/hsn0/mode",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq",
    "sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq",
    "sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/system/cpu/vulnerabilities/mds",
    "sys/devices/system/edac/mc/mc0/ce_count",
    "sys/devices/system/edac/mc/mc0/ue_count",
    "sys/devices/system/edac/mc/mc0/dimm0/dimm_label",
    "sys/devices/system/node/node0/meminfo",
    "sys/devices/system/node/node1/meminfo",
    "sys/module/nvidia_peermem/initstate",
)
COMMANDS = {
    "chronyc": "C0A80001,1.2.3.4,3,1.1,-0.000012,1,2,3,4,5,6,7,8,Normal",
    "timedatectl": "NTP=yes\nNTPSynchronized=no\n",
    "mpiexec": "HYDRA build details:\n    Version:   4.1\n",
    "ethtool-i/hsn0": sample("host/ethtool-i-veth.txt"),
    "nvidia-smi-nvlink": sample("misc/nvidia-smi-nvlink-s.txt"),
    "nvidia-smi-nvlink-errors": "GPU 0: H100\n\t Link 0: Replay Errors: 9999999999999999\n" * 2,
    "ethtool-k/hsn0": FEATURES,
    "ethtool-g/hsn0": RINGS,
    "ethtool-c/hsn0": COALESCING.format(adaptive="on", rx=8, tx=8),
    "ethtool-S/hsn0": COUNTERS.format(rx=1, tx=1, storms=0),
    "ethtool-S-later/hsn0": COUNTERS.format(rx=2, tx=2, storms=0),
    "fabricmanager": "active",
    "nvidia-smi-q": smi(2),
    "probe": probe(1e9, 1e9, cores=4),
    "lspci": "00:01.0 PCI bridge: x\n\tBus: primary=00, secondary=01, subordinate=ff, sec-latency=0\n\tACSCtl: a+\n\n"
    "01:00.0 3D controller: y\n",
}
ODD = (
    "22 1 253:0 / / rw - xfs /dev/mapper/root rw",
    "253:0",
    "2 1",
    "1 0xffff\n3 x",
    "Node 1 MemTotal: 9 kB",
    "flags : tsc",
    "microcode : 0x1",
    "1 9" * 99,
    "a=b c",
    "",
    "0",
    "-1",
    "0-3",
    "unlimited",
    "1" * 5000,
    "9-0",
    "0x",
    "nan",
    "MemTotal:  99 kB\n",
    "Max locked memory  ",
)

text = st.one_of(
    st.sampled_from(ODD), st.text(max_size=40), st.from_regex(r"Max locked memory +\w+ .*", fullmatch=True)
)
anything: st.SearchStrategy[Any] = st.recursive(
    st.one_of(text, st.integers(), st.floats(), st.none(), st.booleans(), st.lists(text, max_size=2)),
    lambda inner: st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)


def torn(texts: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Lines of these, out of order, cut off at either end or in the middle, and with strange letters in them."""
    line = st.sampled_from(texts)
    piece = st.builds(lambda text, begin, end: text[begin:end], line, st.integers(0, 40), st.integers(0, 200))
    damaged = st.builds(
        lambda text, begin, length, letters: text[:begin] + letters + text[begin + length :],
        line,
        st.integers(0, 120),
        st.integers(0, 9),
        st.text(max_size=3),
    )
    return st.lists(st.one_of(line, piece, damaged, st.text(max_size=20)), max_size=30).map("\n".join)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Snapshots in which some things are right, and others are of any kind."""
    tree: dict[str, Any] = {}
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True)):
        *folders, name = path.split("/")
        at = tree
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = draw(anything)
    if draw(st.booleans()):
        tree[draw(st.sampled_from(("sys", "proc", "etc")))] = draw(anything)
    said = {
        name: {"status": draw(st.sampled_from((0, 1, None))), "output": draw(torn(tuple(output.splitlines())))}
        for name, output in COMMANDS.items()
    }
    return {
        "host": draw(st.sampled_from(("n1", "n2", "n3", ""))),
        "root": draw(st.booleans()),
        "files": draw(st.one_of(st.just(tree), anything)),
        "commands": draw(st.one_of(st.just(said), anything)),
        "kernel_log": draw(st.one_of(st.builds(dict, output=torn(tuple(LINES))), anything)),
        "shared_memory": draw(st.one_of(st.just({"size": 1, "free": -1}), anything)),
        "counters": draw(st.one_of(st.just(tree), anything)),
        "later": draw(st.one_of(st.just(tree), anything)),
        "links": draw(anything),
    }


@settings(max_examples=60)
@given(st.lists(documents(), max_size=4))
def test_no_check_raises(taken: list[dict[str, Any]]) -> None:
    hosts = [Host(snapshot_of(document)) for document in taken]
    results = judge(Fleet(hosts), OWN).results
    assert {result.host for result in results} == {host.name for host in hosts}
    assert all(result.message for result in results if result.outcome is not Outcome.PASS)


@settings(max_examples=150)
@given(torn(tuple(LINES)))
def test_no_record_parser_raises(log: str) -> None:
    found = KernelLog(log)
    lines = found.lines_with(("[Hardware Error]", "e", "cxi"))
    assert len(lines) <= log.count("\n") + 1
    assert found.last_moment() >= 0
    assert sum(len(record.lines) for record in hardware_errors(lines)) <= len(lines)


@settings(max_examples=150)
@given(st.text(max_size=300))
def test_text_that_is_no_kernel_log_has_no_finding(log: str) -> None:
    host = Host(snapshot_of({"host": "n1", "kernel_log": {"output": log}}))
    results = judge(Fleet([host]), [check for check in OWN if check.id.startswith("log.")]).results
    assert {result.outcome for result in results} <= {Outcome.PASS, Outcome.SKIP}


def test_all_checks_of_the_host_are_tried() -> None:
    assert len(OWN) == 82

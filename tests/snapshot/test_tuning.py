"""What the collector reads of clock, frequencies, interrupts, memory and partitions.

The trees are built from documentation: Documentation/ABI of the kernel (cpufreq, thermal_throttle, EDAC, infiniband,
msi_irqs), and boot parameters that HPE documents for Cray System Management.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fablint.snapshot.agent import collector
from fablint.snapshot.agent.machine import Late, Machine
from fablint.snapshot.agent.tuning import (
    fill_tuning,
    fill_tuning_counters,
    first_cpu,
    kept_of,
    text_without_secrets,
    tuning_commands,
)

CPU = "/sys/devices/system/cpu"
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
TOKEN = "5e2b-4c1d-secret"
BOOT = (
    "console=ttyS0,115200 crashkernel=360M iommu.passthrough=on cxi_core.sct_pid_mask=0xf "
    f"spire_join_token={TOKEN} root=craycps-s3:s3://boot-images/6c64/rootfs xname=x3000c0s1b0n0"
)


def machine(root: Path, files: Mapping[str, str], limit_s: float = 20.0) -> Machine:
    for path, text in files.items():
        at = root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text + "\n")
    return Machine(str(root), limit_s)


def at(tree: Mapping[str, Any], path: str) -> Any:
    found: Any = tree
    for name in path.strip("/").split("/"):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def read(root: Path, files: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    fill_tuning(machine(root, files), tree)
    return tree


def test_secrets_of_the_boot_command_leave_no_trace_in_a_snapshot(tmp_path: Path) -> None:
    log = f"<6>[    0.000000] Kernel command line: {BOOT}\n<7>[    4.1]     spire_join_token={TOKEN}\n"
    machine(tmp_path, {"/proc/cmdline": BOOT, "/var/log/dmesg": log, "/etc/hostname": "n1"})
    snapshot = collector.snapshot("quick", 0.0, 20.0, str(tmp_path))
    assert at(snapshot["files"], "/proc/cmdline") == BOOT.replace(TOKEN, "REMOVED")
    assert "crashkernel=360M" in snapshot["kernel_log"]["output"]
    assert TOKEN not in json.dumps(snapshot)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("metal.server=https://u:hunter2@pit/x quiet", "metal.server=https://REMOVED@pit/x quiet"),
        ("netroot=iscsi:me:hunter2@10.0.0.1::3260", "netroot=iscsi:REMOVED@10.0.0.1::3260"),
        ('rd.iscsi.password="hunter2 and more" ro', "rd.iscsi.password=REMOVED ro"),
        ("rd.luks.key=/k:UUID=1 vconsole.keymap=us", "rd.luks.key=REMOVED vconsole.keymap=us"),
        ("API_TOKEN=hunter2", "API_TOKEN=REMOVED"),
        ("root=UUID=1-2 isolcpus=2-63 mitigations=off", "root=UUID=1-2 isolcpus=2-63 mitigations=off"),
    ],
)
def test_what_is_a_secret(text: str, kept: str) -> None:
    assert text_without_secrets(text) == kept
    assert text_without_secrets(kept) == kept
    assert text_without_secrets(["Permission denied"]) == ["Permission denied"]


def test_files_of_cpus_are_tallied(tmp_path: Path) -> None:
    files = {f"{CPU}/cpu{n}/cpufreq/scaling_max_freq": "3800000" if n else "1500000" for n in range(12)}
    files |= {f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": str(n // 11) for n in range(12)}
    assert at(read(tmp_path, files), f"{CPU}/cpu*/cpufreq/scaling_max_freq") == "1 1500000\n11 3800000"
    counters: dict[str, Any] = {}
    fill_tuning_counters(Machine(str(tmp_path), 20.0), counters)
    assert at(counters, f"{CPU}/cpu*/thermal_throttle/core_throttle_count") == "11 0\n1 1"
    assert at(counters, f"{CPU}/cpu*/thermal_throttle/package_throttle_count") is None


def test_where_interrupts_of_a_nic_are_served(tmp_path: Path) -> None:
    device = "/sys/class/net/ens1f0np0/device"
    files = {f"{device}/msi_irqs/{n}": "msix" for n in (40, 41, 42)} | {f"{device}/local_cpulist": "32-63"}
    files |= {"/proc/irq/40/effective_affinity_list": "32", "/proc/irq/40/smp_affinity_list": "32-63"}
    files |= {"/proc/irq/41/effective_affinity_list": "32", "/proc/irq/42/smp_affinity_list": "0-63"}
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/mlx5_0/device").symlink_to(tmp_path / device.lstrip("/"))
    tree = read(tmp_path, files)
    assert at(tree, f"{device}/msi_irqs/*") == "1 0-63\n2 32"
    assert at(tree, "/sys/class/infiniband/mlx5_0/device/msi_irqs/*") == "1 0-63\n2 32"
    assert at(tree, f"{device}/local_cpulist") == "32-63"


def test_addresses_and_partitions_of_a_port(tmp_path: Path) -> None:
    files = {f"{PORT}/gids/{n}": "0000:0000:0000:0000:0000:0000:0000:0000" for n in range(200)}
    files |= {f"{PORT}/gids/3": "0000:0000:0000:0000:0000:ffff:0a00:0001", f"{PORT}/gid_attrs/types/3": "RoCE v2"}
    files |= {f"{PORT}/pkeys/{n}": "0x0000" for n in range(128)} | {f"{PORT}/pkeys/0": "0xffff"}
    tree = read(tmp_path, files)
    assert at(tree, f"{PORT}/gids") == {"3": "0000:0000:0000:0000:0000:ffff:0a00:0001"}
    assert at(tree, f"{PORT}/gid_attrs/types") == {"3": "RoCE v2"}
    assert at(tree, f"{PORT}/pkeys") == {"*": "1 0xffff"}


@pytest.mark.parametrize(("errors", "named"), [("0", False), ("7", True)])
def test_dimms_are_named_where_errors_were_counted(errors: str, named: bool, tmp_path: Path) -> None:
    controller = "/sys/devices/system/edac/mc/mc0"
    files = {f"{controller}/ce_count": errors, f"{controller}/ue_count": "0"}
    files |= {f"{controller}/dimm3/dimm_ce_count": errors, f"{controller}/dimm3/dimm_label": "CPU0_DIMM_D1"}
    tree = read(tmp_path, files)
    assert (at(tree, f"{controller}/dimm3/dimm_label") == "CPU0_DIMM_D1") is named
    counters: dict[str, Any] = {}
    fill_tuning_counters(Machine(str(tmp_path), 20.0), counters)
    assert at(counters, f"{controller}/ce_count") == errors


def test_the_first_cpu_without_most_of_its_flags() -> None:
    text = "model name\t: AMD EPYC 7763\nflags\t\t: fpu tsc avx2 constant_tsc\nbugs\t\t: spectre_v1\n\nprocessor\t: 1"
    lines = ["model name\t: AMD EPYC 7763", "flags\t\t: tsc constant_tsc", "bugs\t\t: "]
    assert first_cpu(text).split("\n") == lines
    assert first_cpu(["Permission denied"]) == ["Permission denied"]


def test_the_size_of_a_numa_node_is_kept_and_its_details_are_not(tmp_path: Path) -> None:
    path = "/sys/devices/system/node/node1/meminfo"
    text = "Node 1 MemTotal:       263998616 kB\n" + "Node 1 Dirty:  0 kB\n" * 100
    kept = at(read(tmp_path, {path: text}), path)
    assert kept.startswith("Node 1 MemTotal:       263998616 kB\n")
    assert len(kept) <= 300


def test_which_programs_are_asked(tmp_path: Path) -> None:
    plain = machine(tmp_path, {})
    assert list(tuning_commands("quick", plain, ["hsn0"])) == [("ethtool/hsn0", ["ethtool", "hsn0"])]
    assert list(tuning_commands("fabric", plain, ["hsn0"])) == []
    names = [name for name, _ in tuning_commands("full", plain, ["hsn0"])]
    asked = ["ethtool-k", "ethtool-g", "ethtool-c", "ethtool-S", "ethtool-S-later"]
    assert names == ["ethtool/hsn0", *(f"{name}/hsn0" for name in asked), "nvidia-smi-q"]
    (tmp_path / "proc/driver/nvidia-nvswitch/devices/0000:05:00.0").mkdir(parents=True)
    assert [name for name, _ in tuning_commands("quick", plain, [])] == ["fabricmanager"]
    (tmp_path / "sys/class/infiniband/mlx5_0/device/net/ens3").mkdir(parents=True)
    (tmp_path / "sys/class/net/ens3").mkdir(parents=True)
    (tmp_path / "sys/class/net/ens3/type").write_text("1\n")
    over_rdma = dict(tuning_commands("full", plain, ["ens3"]))
    assert over_rdma["dcb-pfc/ens3"] == ["dcb", "-j", "pfc", "show", "dev", "ens3"]
    assert over_rdma["mlnx_qos/ens3"] == ["mlnx_qos", "-i", "ens3"]
    assert {"dcb-ets/ens3", "dcb-app/ens3", "dcb-apptrust/ens3"} < over_rdma.keys()
    assert "mlnx_qos/ens3" not in dict(tuning_commands("quick", plain, ["ens3"]))


ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
hsn0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
eth1\t00000000\t0100090A\t0003\t0\t0\t200\t00000000\t0\t0\t0
eth0\t00000000\t0100080A\t0003\t0\t0\t100\t00000000\t0\t0\t0
"""


@pytest.mark.skipif(sys.byteorder == "big", reason="the numbers of the table have the order of the machine")
def test_the_gateway_of_the_default_route_is_asked(tmp_path: Path) -> None:
    plain = machine(tmp_path, {"/proc/net/route": ROUTES})
    assert "ping-gateway/10.8.0.1" in dict(tuning_commands("quick", plain, []))
    assert dict(tuning_commands("fabric", plain, [])) == {}


@pytest.mark.parametrize("text", ["", "x", ROUTES.splitlines()[0], "eth0 00000000 zz 3 0 0 0 00000000 0 0 0\n" * 3])
def test_tables_without_a_gateway(tmp_path: Path, text: str) -> None:
    plain = machine(tmp_path, {"/proc/net/route": text})
    assert dict(tuning_commands("quick", plain, [])) == {}


def test_amd_gpus_are_asked_for_their_errors(tmp_path: Path) -> None:
    plain = machine(tmp_path, {"/sys/bus/pci/drivers/amdgpu/0000:68:00.0/vendor": "0x1002"})
    names = {"amd-smi-list", "amd-smi-metric", "amd-smi-bad-pages", "rocm-smi"}
    assert names <= dict(tuning_commands("full", plain, [])).keys()
    assert not names & dict(tuning_commands("quick", plain, [])).keys()


def test_of_a_thousand_counters_of_a_nic_those_of_flow_control_are_kept() -> None:
    text = "     rx0_packets: 9\n     rx_prio3_pause: 7\n     tx_pause_storm_error_events: 0\n"
    kept = kept_of("ethtool-S/hsn0", {"output": text, "status": 0})
    assert kept == {"output": text.replace("     rx0_packets: 9\n", "").rstrip("\n"), "status": 0}
    assert kept_of("ethtool-k/hsn0", {"output": text, "status": 0})["output"] == text
    assert kept_of("ethtool-S/hsn0", {"error": "not installed"}) == {"error": "not installed"}


def test_without_time_it_says_what_it_was_reading(tmp_path: Path) -> None:
    late = machine(tmp_path, {f"{CPU}/cpu0/cpufreq/scaling_max_freq": "1"}, 0.0)
    with pytest.raises(Late):
        fill_tuning(late, {})
    assert late.doing == f"reading {CPU}/cpu0/cpufreq/scaling_max_freq"

"""Hosts as documentation describes them: Intel, AMD, and Intel with GPUs. Values are invented; formats are those of

* the kernel: Documentation/ABI/testing/sysfs-devices-system-cpu, sysfs-class-infiniband, sysfs-devices-edac,
  Documentation/admin-guide/pm/{intel_pstate,cpufreq}.rst, admin-guide/hw-vuln, driver-api/thermal
  (thermal_throttle of Intel only),
* the boot options that HPE documents for Cray System Management,
* ethtool(8), lspci(8), Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst,
* NVIDIA's nvsmi_device_v12.dtd.

Files of CPUs and interrupts are as the collector tallies them. Hosts differ from one another as healthy ones do.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from preflight_help import host

from fablint.preflight.host import Host

CPU = "/sys/devices/system/cpu"
EDAC = "/sys/devices/system/edac/mc"
NODE = "/sys/devices/system/node"
IB = "/sys/class/infiniband/mlx5_0"
CLOCK = "/sys/devices/system/clocksource/clocksource0"
CARD = "0000:c1:00.0"
FLAGS = "tsc rdtscp constant_tsc nonstop_tsc"
KIB = 1 << 10

FEATURES = "Features for ib0:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: on\n\ttx-checksum-sctp: off [fixed]\ntcp-segmentation-offload: on\ngeneric-receive-offload: on\nlarge-receive-offload: off\nrx-gro-hw: off [fixed]\n"  # noqa: E501
RINGS = "Ring parameters for ib0:\nPre-set maximums:\nRX:\t\t8192\nRX Mini:\tn/a\nTX:\t\t8192\nCurrent hardware settings:\nRX:\t\t1024\nRX Mini:\tn/a\nTX:\t\t1024\n"  # noqa: E501
COALESCING = "Coalesce parameters for ib0:\nAdaptive RX: {adaptive}  TX: off\nstats-block-usecs:\tn/a\n\nrx-usecs:\t{rx}\nrx-frames:\t128\ntx-usecs:\t{tx}\ntx-frames:\t128\n"  # noqa: E501
COUNTERS = "NIC statistics:\n     rx_pause_ctrl_phy: {rx}\n     tx_pause_ctrl_phy: {tx}\n     tx_global_pause_duration: {tx}77\n     tx_pause_storm_warning_events: {storms}\n"  # noqa: E501
LSPCI = """{card} Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-
\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-
\t\t\tMaxPayload {payload} bytes, MaxReadReq {request} bytes
"""
SMI = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<driver_version>550.54.15</driver_version>
{gpus}</nvidia_smi_log>
"""
GPU = """\t<gpu id="{address}">
\t\t<product_name>NVIDIA H100 80GB HBM3</product_name>
\t\t<persistence_mode>Enabled</persistence_mode>
\t\t<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
\t\t<vbios_version>96.00.74.00.01</vbios_version>
\t\t<clocks_event_reasons>
\t\t\t<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
\t\t\t<clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>
\t\t\t<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
\t\t\t<clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
\t\t\t<clocks_event_reason_hw_power_brake_slowdown>Not Active</clocks_event_reason_hw_power_brake_slowdown>
\t\t\t<clocks_event_reason_sw_thermal_slowdown>Not Active</clocks_event_reason_sw_thermal_slowdown>
\t\t</clocks_event_reasons>
\t\t<compute_mode>Default</compute_mode>
\t\t<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
\t\t<ecc_errors><volatile><sram_correctable>0</sram_correctable>
\t\t\t<sram_uncorrectable_parity>0</sram_uncorrectable_parity><dram_uncorrectable>0</dram_uncorrectable></volatile>
\t\t</ecc_errors>
\t\t<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
\t\t\t<remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
\t\t<gpu_power_readings><power_state>P0</power_state><instant_power_draw>70.10 W</instant_power_draw>
\t\t\t<current_power_limit>700.00 W</current_power_limit><default_power_limit>700.00 W</default_power_limit>
\t\t</gpu_power_readings>
\t\t<fabric><state>Completed</state><status>Success</status></fabric>
\t</gpu>
"""


def smi(count: int = 8) -> str:
    return SMI.format(gpus="".join(GPU.format(address=f"00000000:{number:02X}:00.0") for number in range(count)))


def probe(copy: float, hashed: float, *, cores: int, others: float = 0.1, spread: float = 0.01) -> str:
    halves = {name: {"rate": rate, "spread": spread, "slowest": 0, "share": 0.97}
              for name, rate in (("copy", copy), ("hash", hashed))}  # fmt: skip
    return json.dumps({"cores": cores, "with": "memcpy, Python 3.6.15", "others": others, "seconds": 1.1, **halves})


def meminfo(total_kib: int, available: float) -> str:
    return f"MemTotal:       {total_kib} kB\nMemFree:  1 kB\nMemAvailable:   {int(total_kib * available)} kB\n"


def common(index: int, chance: random.Random, gib: int, nodes: int, cpus: int) -> dict[str, str]:
    """Files that hosts of all kinds have."""
    kib = gib * KIB * KIB - 9_000_000 - chance.randrange(60_000)
    files = {"/sys/devices/virtual/dmi/id/product_name": "Super Server", "/proc/uptime": "864000.0 1.0"}
    files |= {f"{CLOCK}/current_clocksource": "tsc", f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm"}
    files |= {
        "/proc/loadavg": f"{chance.random() * 0.02 * cpus:.2f} 0.5 0.5 1/900 77",
        f"{CPU}/online": f"0-{cpus - 1}",
    }
    files["/proc/meminfo"] = meminfo(kib, chance.uniform(0.95, 0.98))
    for node in range(nodes):
        own = kib // nodes - (120_000 if node == 0 else 0) - chance.randrange(3_000)
        files[f"{NODE}/node{node}/meminfo"] = f"Node {node} MemTotal:       {own} kB\nNode {node} MemFree:  9 kB"
        files |= {
            f"{EDAC}/mc{node}/{kind}_count": str(0 if kind == "ue" else chance.randrange(3)) for kind in ("ce", "ue")
        }
    files[f"{NODE}/online"] = f"0-{nodes - 1}"
    files |= {f"{CPU}/vulnerabilities/meltdown": "Not affected", f"{CPU}/vulnerabilities/mds": "Not affected"}
    return files | adapter(index, cpus)


def adapter(index: int, cpus: int) -> dict[str, str]:
    """A ConnectX-7 with IP over InfiniBand."""
    port = f"{IB}/ports/1"
    files = {f"{IB}/node_type": "1: CA", f"{port}/link_layer": "InfiniBand", f"{port}/state": "4: ACTIVE"}
    files |= {f"{port}/pkeys/*": "1 0x7fff\n1 0x8001", f"{port}/phys_state": "5: LinkUp"}
    files |= {f"{IB}/device/msi_irqs/*": "\n".join(f"1 {cpu}" for cpu in range(cpus // 2, cpus // 2 + 16))}
    files |= {f"{IB}/device/local_cpulist": f"{cpus // 2}-{cpus - 1}", f"{IB}/device/vendor": "0x15b3"}
    net = {"address": f"00:00:10:49:{index:02x}", "type": "32", "mode": "datagram", "mtu": "4092", "operstate": "up"}
    return files | {f"/sys/class/net/ib0/{name}": text for name, text in net.items()}


def boot(index: int, options: str) -> str:
    own = f"ip=10.1.{index // 256}.{index % 256}::10.1.255.254:255.255.0.0 xname=x3000c0s{index}b0n0 nid={index + 1}"
    return f"console=tty0 console=ttyS0,115200 crashkernel=360M {own} spire_join_token=REMOVED {options}"


def outputs(chance: random.Random, copy: float, hashed: float, cores: int) -> dict[str, str]:
    first = chance.randrange(10_000)
    return {
        "ethtool-k/ib0": FEATURES,
        "ethtool-g/ib0": RINGS,
        "ethtool-c/ib0": COALESCING.format(adaptive="on", rx=chance.choice((8, 16, 32)), tx=8),
        "ethtool-S/ib0": COUNTERS.format(rx=first, tx=first, storms=0),
        "ethtool-S-later/ib0": COUNTERS.format(rx=first + 40, tx=first + chance.randrange(30), storms=0),
        "lspci": LSPCI.format(card=CARD, payload=512, request=4096),
        "probe": probe(copy * chance.uniform(0.98, 1.02), hashed * chance.uniform(0.99, 1.01), cores=cores),
    }


def tallied(value: object, count: int) -> str:
    return f"{count} {value}"


def intel(index: int, **more: Any) -> Host:
    """Two Xeon Platinum 8480+, 224 threads, 512 GiB."""
    chance = random.Random(index)
    files = common(index, chance, 512, 2, 224)
    cpuinfo = f"model name\t: Intel(R) Xeon(R) Platinum 8480+\nmicrocode\t: 0x2b000603\nflags\t\t: {FLAGS}"
    files |= {"/proc/cpuinfo": cpuinfo, f"{CPU}/intel_pstate/no_turbo": "0", f"{CPU}/intel_pstate/max_perf_pct": "100"}
    files |= {f"{CPU}/cpu*/cpufreq/{name}_max_freq": tallied(3800000, 224) for name in ("scaling", "cpuinfo")}
    cores = chance.randrange(90)  # on some of them, after a burn-in
    files[f"{CPU}/cpu*/thermal_throttle/core_throttle_count"] = f"{224 - cores} 0\n{cores} 3" if cores else "224 0"
    files[f"{CPU}/cpu*/thermal_throttle/package_throttle_count"] = f"112 {chance.randrange(40)}\n112 40"
    files[f"{CPU}/vulnerabilities/spectre_v2"] = "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional"
    files["/proc/cmdline"] = boot(index, "intel_iommu=off iommu.passthrough=on")
    return made(index, chance, files, outputs(chance, 380e9, 95e9, 112), **more)


def amd(index: int, **more: Any) -> Host:
    """Two EPYC 7763 with four NUMA nodes each, 256 threads, 512 GiB."""
    chance = random.Random(index)
    files = common(index, chance, 512, 8, 256)
    cpuinfo = f"model name\t: AMD EPYC 7763 64-Core Processor\nmicrocode\t: 0xa0011d5\nflags\t\t: {FLAGS}"
    files |= {"/proc/cpuinfo": cpuinfo, f"{CPU}/cpufreq/boost": "1"}
    files |= {f"{CPU}/cpu*/cpufreq/{name}_max_freq": tallied(2450000, 256) for name in ("scaling", "cpuinfo")}
    files[f"{CPU}/vulnerabilities/spectre_v2"] = "Mitigation: Retpolines; IBPB: conditional; STIBP: always-on"
    files["/proc/cmdline"] = boot(index, "iommu=pt numa_balancing=disable")
    return made(index, chance, files, outputs(chance, 300e9, 170e9, 128), **more)


def gpu(index: int, **more: Any) -> Host:
    """The Intel host with eight H100 behind NVLink switches."""
    files = {f"/proc/driver/nvidia/gpus/0000:{n:02x}:00.0/information": "Model: H100" for n in range(8)}
    files |= {"/sys/module/nvidia_peermem/initstate": "live", "/sys/module/nvidia/version": "550.54.15"}
    folders = {"/proc/driver/nvidia-nvswitch/devices": ["0000:05:00.0", "0000:06:00.0"]}
    commands = {"fabricmanager": "active\n", "nvidia-smi-q": smi()}
    return intel(index, **{**more, "files": {**files, **more.get("files", {})},
                           "commands": {**commands, **more.get("commands", {})}, "folders": folders})  # fmt: skip


def made(index: int, chance: random.Random, own: Mapping[str, str], said: Mapping[str, Any], **more: Any) -> Host:
    """A host with files and outputs of its kind, but for those that `more` changes; None takes one away."""
    files = {path: text for path, text in {**own, **more.pop("files", {})}.items() if text is not None}
    commands = {name: text for name, text in {**said, **more.pop("commands", {})}.items() if text is not None}
    links = {f"{IB}/device": f"../../../{CARD}"}
    return host(f"n{index}", files, commands=commands, links=links, root=True, **more)

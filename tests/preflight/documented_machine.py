# ruff: noqa: E501, PLR0913, SIM905
"""A host as a tree of files, and what the collector itself reads of it: see documented_hosts.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fablint.snapshot.agent.collector import snapshot

PCI = "/sys/bus/pci/devices"
CPU = "/sys/devices/system/cpu"
DMI = "/sys/devices/virtual/dmi/id"
COUNTERS = (
    "symbol_error link_error_recovery link_downed port_rcv_errors port_rcv_remote_physical_errors "
    "port_rcv_switch_relay_errors port_xmit_discards port_xmit_constraint_errors port_rcv_constraint_errors "
    "local_link_integrity_errors excessive_buffer_overrun_errors VL15_dropped port_xmit_wait"
).split()
FEATURES = "rx-checksumming: on\ntx-checksumming: on\nscatter-gather: on\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\n\ttx-tcp-mangleid-segmentation: off\ngeneric-segmentation-offload: on\ngeneric-receive-offload: on\nlarge-receive-offload: off [fixed]\nrx-vlan-offload: on\nhw-tc-offload: off\n"
RINGS = "Pre-set maximums:\nRX:\t\t8192\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t8192\nCurrent hardware settings:\nRX:\t\t1024\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t1024\nRX Buf Len:\tn/a\n"
COALESCING = "Adaptive RX: on  TX: on\nstats-block-usecs:\tn/a\nsample-interval:\tn/a\n\nrx-usecs:\t8\nrx-frames:\t128\nrx-usecs-irq:\tn/a\n\ntx-usecs:\t8\ntx-frames:\t128\n"
PAUSE = "Autonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n"


@dataclass
class Machine:
    """One host: files and links by absolute path, and outputs of programs by the collector's names."""

    name: str
    index: int
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    addresses: list[dict[str, Any]] = field(default_factory=list)
    routes: list[dict[str, Any]] = field(default_factory=list)
    neighbours: list[dict[str, Any]] = field(default_factory=list)
    lspci: list[str] = field(default_factory=list)

    # ------------------------------------------------------------------------------------------- the whole host

    def put(self, folder: str, **files: object) -> None:
        self.files.update({f"{folder}/{name}": str(text) for name, text in files.items()})

    def base(
        self, vendor: str, product: str, cpu: str, cpus: int, nodes: int, gib: int, *, driver: str = "intel"
    ) -> None:
        """CPUs, memory, boot: `driver` is `intel` or `amd`."""
        self.put(
            DMI, sys_vendor=vendor, product_name=product, bios_version="2.1.7", product_serial=f"S{self.index:07d}"
        )
        self.put("/etc", hostname=self.name)
        self.files["/etc/machine-id"] = f"{self.index:032x}"
        self.files["/etc/os-release"] = 'NAME="Rocky Linux"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\n'
        self.files["/etc/resolv.conf"] = "nameserver 10.255.0.1\n"
        kernel = "5.14.0-427.13.1.el9_4.x86_64"
        self.put("/proc/sys/kernel", osrelease=kernel, numa_balancing=0, hostname=self.name)
        self.files["/proc/sys/kernel/random/boot_id"] = f"{self.index:08x}-1111-4222-8333-444455556666"
        self.files["/proc/cmdline"] = (
            f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-{kernel} root=UUID={self.index:08x}-0000-4000-8000-000000000001 ro crashkernel=1G-4G:192M iommu=pt"
        )
        self.files["/proc/uptime"] = f"{1_900_000 + self.index * 311}.11 4000000.00"
        self.files["/proc/loadavg"] = "0.08 0.03 0.01 1/2311 88211"
        vendor_id = "GenuineIntel" if driver == "intel" else "AuthenticAMD"
        self.files["/proc/cpuinfo"] = (
            f"processor\t: 0\nvendor_id\t: {vendor_id}\nmodel name\t: {cpu}\nmicrocode\t: 0x2b0005c0\nflags\t\t: fpu tsc rdtscp constant_tsc nonstop_tsc avx2\nbugs\t\t: spectre_v1\n\nprocessor\t: 1\n"
        )
        kib = gib * (1 << 20) - 8_200_000 - self.index * 37
        self.files["/proc/meminfo"] = (
            f"MemTotal:       {kib} kB\nMemFree:        {kib - 9_000_000} kB\nMemAvailable:   {kib - 12_000_000 - self.index * 1900} kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n"
        )
        self.files["/proc/self/limits"] = (
            "Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         unlimited            unlimited            bytes     \n"
        )
        self.put(CPU, online=f"0-{cpus - 1}")
        self.files[f"{CPU}/smt/active"] = "1"
        self.put("/sys/devices/system/node", online=f"0-{nodes - 1}", has_cpu=f"0-{nodes - 1}")
        for node in range(nodes):
            own = kib // nodes - (60_000 if node == 0 else 0)
            self.files[f"/sys/devices/system/node/node{node}/meminfo"] = (
                f"Node {node} MemTotal:       {own} kB\nNode {node} MemFree:        {own - 9} kB\n"
            )
            self.put(f"/sys/devices/system/edac/mc/mc{node}", ce_count=0, ue_count=0)
        top = 3_800_000 if driver == "intel" else 3_707_812
        for one in range(0, cpus, cpus // 8):  # files of eight are enough
            self.put(
                f"{CPU}/cpu{one}/cpufreq", scaling_governor="performance", scaling_max_freq=top, cpuinfo_max_freq=top
            )
            self.put(
                f"{CPU}/cpu{one}/topology", thread_siblings_list=f"{one % (cpus // 2)},{one % (cpus // 2) + cpus // 2}"
            )
            if driver == "intel":
                self.put(
                    f"{CPU}/cpu{one}/thermal_throttle", core_throttle_count=0, package_throttle_count=self.index % 3
                )
        states = (("POLL", 0), ("C1", 1), ("C1E", 4)) if driver == "intel" else (("POLL", 0), ("C1", 1), ("C2", 18))
        for number, (state, latency) in enumerate(states):
            self.put(f"{CPU}/cpu0/cpuidle/state{number}", name=state, latency=latency, disable=0)
        if driver == "intel":
            self.put(f"{CPU}/intel_pstate", status="active", no_turbo=0, max_perf_pct=100)
        else:
            self.put(f"{CPU}/cpufreq", boost=1)
        self.put(
            f"{CPU}/vulnerabilities",
            meltdown="Not affected",
            spectre_v2="Mitigation: Enhanced IBRS",
            l1tf="Not affected",
        )
        self.put(
            "/sys/devices/system/clocksource/clocksource0",
            current_clocksource="tsc",
            available_clocksource="tsc hpet acpi_pm ",
        )
        self.files["/sys/kernel/mm/transparent_hugepage/enabled"] = "[always] madvise never"
        self.put("/proc/sys/net/ipv4/neigh/default", gc_thresh1=8192, gc_thresh2=16384, gc_thresh3=32768)
        for name in ("all", "default"):
            self.put(f"/proc/sys/net/ipv4/conf/{name}", rp_filter=2, arp_ignore=1, arp_announce=2, arp_filter=0)
        self.files["/proc/net/stat/arp_cache"] = (
            "entries  allocs  destroys hash_grows  lookups  hits  res_failed  rcv_probes_mcast rcv_probes_ucast  periodic_gc_runs forced_gc_runs unresolved_discards table_fulls\n00000011 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n"
        )
        self.files["/proc/net/netstat"] = "TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 0 0\n"
        self.files["/var/log/dmesg"] = (
            "<6>[    0.000000] Linux version 5.14.0\n<6>[   11.000000] systemd[1]: Startup finished\n"
        )
        self.commands["chronyc"] = (
            "C0A80001,10.255.0.1,3,1700000000.1,0.000011,-0.000002,0.000021,-3.4,0.001,0.02,0.0004,0.0002,64.5,Normal\n"
        )
        self.commands["mpiexec"] = "mpiexec (OpenRTE) 4.1.5rc2\n"

    # ------------------------------------------------------------------------------------------- cards

    def card(
        self, address: str, kind: str, vendor: str, device: str, width: int, speed: str, node: int, title: str
    ) -> str:
        """A PCI function; its folder."""
        at = f"{PCI}/{address}"
        self.put(at, **{"class": kind}, vendor=vendor, device=device, numa_node=node, current_link_width=width)
        self.put(at, max_link_width=width, current_link_speed=f"{speed} GT/s PCIe", max_link_speed=f"{speed} GT/s PCIe")
        self.put(at, aer_dev_correctable="RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0", aer_dev_nonfatal="TLP 0\nTOTAL_ERR_NONFATAL 0",
                 aer_dev_fatal="DLP 0\nTOTAL_ERR_FATAL 0", local_cpulist="0-55,112-167" if node == 0 else "56-111,168-223")  # fmt: skip
        self.lspci.append(
            f"{address} {title}\n\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\t\tDevCtl:\tCorrErr+ NonFatalErr+\n\t\t\tMaxPayload 512 bytes, MaxReadReq 4096 bytes\n"
        )
        return at

    def interrupts(self, address: str, first: int, cpus: Iterable[int]) -> None:
        for number, cpu in enumerate(cpus, first):
            self.files[f"{PCI}/{address}/msi_irqs/{number}"] = "msix"
            self.files[f"/proc/irq/{number}/effective_affinity_list"] = str(cpu)

    def interface(
        self, name: str, address: str, mac: str, *, mbit: int = 0, mtu: int = 1500, ip: str = "", up: bool = True,
        hardware: int = 1, driver: str = "mlx5_core", firmware: str = "28.41.1000 (MT_0000000838)", pci: bool = True,
        port: str = "", **more: Any,
    ) -> None:  # fmt: skip
        at = f"/sys/class/net/{name}"
        number = 2 + len(self.addresses)
        self.put(at, address=mac, mtu=mtu, operstate="up" if up else "down", type=hardware, ifindex=number)
        self.put(at, flags="0x1003", carrier=int(up), carrier_changes=2, carrier_down_count=1, carrier_up_count=1)
        if mbit:
            self.put(at, speed=mbit if up else -1, duplex="full" if up else "unknown")
        if port:
            self.put(at, phys_port_name=port)
        counted = {"rx_bytes": 10**9, "tx_bytes": 10**9, "rx_packets": 10**6, "tx_packets": 10**6}
        for one in ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_crc_errors", "rx_frame_errors",
                    "rx_missed_errors", "rx_over_errors", "rx_fifo_errors"):  # fmt: skip
            counted[one] = 0
        self.put(f"{at}/statistics", **counted)
        self.put(f"/proc/sys/net/ipv4/conf/{name}", rp_filter=2, arp_ignore=1, arp_announce=2, arp_filter=0)
        if pci:
            self.links[f"{at}/device"] = f"../../../bus/pci/devices/{address}"
            self.files[f"{PCI}/{address}/net/{name}/ifindex"] = str(number)
        info = [{"family": "inet", "local": ip.partition("/")[0], "prefixlen": int(ip.partition("/")[2]),
                 "scope": "global", "label": name}] if ip else []  # fmt: skip
        self.addresses.append(
            {"ifindex": number, "ifname": name, "flags": ["UP"], "mtu": mtu, "address": mac, "addr_info": info, **more}
        )
        if ip:
            local, prefix = ip.split("/")
            parts = local.split(".")
            net = ".".join([*parts[:2], "0", "0"] if prefix == "16" else [*parts[:3], "0"])
            self.routes.append(
                {
                    "dst": f"{net}/{prefix}",
                    "dev": name,
                    "protocol": "kernel",
                    "scope": "link",
                    "prefsrc": local,
                    "flags": [],
                }
            )
            self.routes.append(
                {
                    "type": "local",
                    "dst": local,
                    "dev": name,
                    "table": "local",
                    "protocol": "kernel",
                    "scope": "host",
                    "prefsrc": local,
                    "flags": [],
                }
            )
        self.commands[f"ethtool-i/{name}"] = (
            f"driver: {driver}\nversion: 5.14.0\nfirmware-version: {firmware}\nbus-info: {address}\n"
        )
        for option, text in (("k", f"Features for {name}:\n{FEATURES}"), ("g", f"Ring parameters for {name}:\n{RINGS}"),
                             ("c", f"Coalesce parameters for {name}:\n{COALESCING}"), ("a", f"Pause parameters for {name}:\n{PAUSE}")):  # fmt: skip
            self.commands[f"ethtool-{option}/{name}"] = text
        counts = "".join(f"     {side}_prio{one}_pause: 0\n" for side in ("rx", "tx") for one in range(8))
        for when in ("S", "S-later"):
            self.commands[f"ethtool-{when}/{name}"] = (
                f"NIC statistics:\n     rx_packets: 1000\n{counts}     rx_pause_ctrl_phy: 0\n"
            )
        if hardware == 1 and mbit >= 25_000:
            fec = f"FEC parameters for {name}:\nSupported/Configured FEC encodings: Auto Off RS BASER\nActive FEC encoding: RS\nStatistics:\n  corrected_blocks: 11\n  uncorrectable_blocks: 0\n"
            self.commands[f"ethtool-fec/{name}"] = self.commands[f"ethtool-fec-later/{name}"] = fec

    def rdma(
        self, name: str, address: str, rate: str, board: str, firmware: str, *, layer: str = "InfiniBand", state: str = "4: ACTIVE",
        physical: str = "5: LinkUp", hca: str = "MT4129", gids: Sequence[tuple[str, str, str]] = (),
    ) -> None:  # fmt: skip
        """An RDMA device with one port. `gids` are address, type and interface."""
        at = f"/sys/class/infiniband/{name}"
        self.put(at, fw_ver=firmware, board_id=board, hca_type=hca, node_desc=f"{self.name} {name}", node_type="1: CA")
        self.files[f"{at}/node_guid"] = f"b83f:d203:00{self.index:02x}:{len(self.links):04x}"
        self.links[f"{at}/device"] = f"../../../bus/pci/devices/{address}"
        port = f"{at}/ports/1"
        self.put(port, state=state, phys_state=physical, rate=rate, link_layer=layer, sm_sl=0, cap_mask="0xa751e848")
        infiniband = layer == "InfiniBand"
        self.put(port, lid=f"{16 + self.index:#x}" if infiniband else "0x0", sm_lid="0x1" if infiniband else "0x0")
        for counter in COUNTERS:
            self.files[f"{port}/counters/{counter}"] = "0"
        for counter in ("port_xmit_data", "port_rcv_data"):
            self.files[f"{port}/counters/{counter}"] = "123456789"
        for counter in ("packet_seq_err", "out_of_sequence", "local_ack_timeout_err", "np_cnp_sent", "rp_cnp_handled",
                        "np_ecn_marked_roce_packets", "rnr_nak_retry_err", "roce_adp_retrans"):  # fmt: skip
            self.files[f"{port}/hw_counters/{counter}"] = "0"
        if infiniband:
            self.files |= {
                f"{port}/pkeys/0": "0xffff",
                **{f"{port}/pkeys/{number}": "0x0000" for number in range(1, 8)},
            }
            self.files[f"{port}/gids/0"] = f"fe80:0000:0000:0000:b83f:d203:00{self.index:02x}:0001"
        for index, (gid, kind, net) in enumerate(gids):
            self.put(f"{port}/gids", **{str(index): gid})
            self.put(f"{port}/gid_attrs/types", **{str(index): kind})
            self.put(f"{port}/gid_attrs/ndevs", **{str(index): net})

    def route(self, gateway: str, device: str, metric: int = 100) -> None:
        self.routes.insert(
            0,
            {"dst": "default", "gateway": gateway, "dev": device, "protocol": "static", "metric": metric, "flags": []},
        )

    def heard(self, found: Mapping[str, tuple[str, str]]) -> None:
        """LLDP: switch and port by interface."""
        entries = [
            {"name": nic, "via": "LLDP", "rid": "1", "age": "20 days, 00:00:01",
             "chassis": [{"id": [{"type": "mac", "value": f"00:aa:bb:cc:00:{sum(map(ord, switch)) % 256:02x}"}],
                          "name": [{"value": switch}]}],
             "port": [{"id": [{"type": "ifname", "value": port}], "descr": [{"value": port}]}]}
            for nic, (switch, port) in found.items()
        ]  # fmt: skip
        self.commands["lldpcli"] = json.dumps({"lldp": [{"interface": entries}]})

    # ------------------------------------------------------------------------------------------- its snapshot

    def write(self, root: Path) -> Path:
        texts = {**self.files, **{f"/commands/{name}": text for name, text in self.commands.items()}}
        rules = [{"priority": 0, "src": "all", "table": "local"}, {"priority": 32766, "src": "all", "table": "main"}]
        said = {"addr": self.addresses, "route": self.routes, "rule": rules, "neigh": self.neighbours}
        for name, document in said.items():
            texts.setdefault(f"/commands/ip-{name}", json.dumps(document))
        if self.lspci:
            texts.setdefault("/commands/lspci", "\n".join(self.lspci))
        for path, text in texts.items():
            at = root / path.lstrip("/")
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text + ("" if text.endswith("\n") else "\n"))
        for path, target in self.links.items():
            at = root / path.lstrip("/")
            at.parent.mkdir(parents=True, exist_ok=True)
            at.symlink_to(target)
        return root

    def collected(self, folder: Path, level: str = "full") -> dict[str, Any]:
        """What the collector reads of the tree, as if it ran there as root."""
        found = snapshot(level, 0.02, 60.0, str(self.write(folder / self.name)))
        return {**found, "time": 1_767_594_000.0, "root": True}

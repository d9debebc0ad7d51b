# ruff: noqa: E501
"""Whole trees of files of hosts, as manuals describe them, and what the collector itself reads of them.

Sources of names and formats: the kernel's Documentation/ABI (sysfs-class-net, sysfs-class-net-statistics,
stable/sysfs-class-infiniband, sysfs-bus-pci, sysfs-devices-system-cpu, sysfs-devices-edac), systemd.net-naming-scheme(7),
rdma-core's udev rules (`rocep65s0`), iproute2, ethtool(8), chronyc(1); NVIDIA's DGX H100 user guide (NICs and their PCI
addresses), AMD's MI300X and Broadcom's Thor pages, Intel's Omni-Path guides, pci.ids for the numbers. Values are
invented; no such hardware was there. Nothing is shared with the builders of other tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from documented_machine import Machine

NDR = ("400 Gb/sec (4X NDR)", "MT_0000000838", "0x1021", "28.41.1000")
HDR = ("200 Gb/sec (4X HDR)", "MT_0000000223", "0x101b", "20.41.1000")
HDR100 = ("100 Gb/sec (2X HDR)", "MT_0000000222", "0x101b", "20.41.1000")
Change = Callable[[Machine], None]


def mac(index: int, number: int) -> str:
    return f"b8:3f:d2:{number:02x}:{index // 256:02x}:{index % 256:02x}"


def gid_of(ip: str) -> str:
    one, two, three, four = (int(part) for part in ip.partition("/")[0].split("."))
    return f"0000:0000:0000:0000:0000:ffff:{one:02x}{two:02x}:{three:02x}{four:02x}"


def roce_gids(ip: str, nic: str, index: int) -> list[tuple[str, str, str]]:
    """As mlx5 and bnxt_re fill the table: link-local and IPv4, each as v1 and v2."""
    local = f"fe80:0000:0000:0000:ba3f:d2ff:fe00:{index:04x}"
    return [
        (local, "IB/RoCE v1", nic),
        (local, "RoCE v2", nic),
        (gid_of(ip), "IB/RoCE v1", nic),
        (gid_of(ip), "RoCE v2", nic),
    ]


def management(host: Machine, name: str = "eno1", mbit: int = 1000) -> None:
    """An onboard NIC with the default route."""
    host.card(
        "0000:04:00.0", "0x020000", "0x8086", "0x1521", 4, "5.0", 0, "Ethernet controller: Intel Corporation I350"
    )
    host.interface(name, "0000:04:00.0", mac(host.index, 200), mbit=mbit, ip=f"10.255.{host.index // 250}.{host.index % 250 + 2}/16",
                   driver="igb", firmware="1.63, 0x80000fb0")  # fmt: skip
    host.route("10.255.255.254", name)


def dgx(name: str, index: int) -> Machine:
    """NVIDIA DGX H100: eight GPUs, four NVSwitches, eight NDR cards for computing, two dual-port cards for storage."""
    host = Machine(name, index)
    host.base("NVIDIA", "DGXH100", "Intel(R) Xeon(R) Platinum 8480CL", 224, 2, 2048)
    management(host, "eno3")
    places = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
    for number, bus in enumerate(places):
        at = f"0000:{bus}:00.0"
        host.card(
            at,
            "0x030200",
            "0x10de",
            "0x2330",
            16,
            "32.0",
            number // 4,
            "3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB]",
        )
        host.files[f"/proc/driver/nvidia/gpus/{at}/information"] = "Model: NVIDIA H100 80GB HBM3"
    for number in range(4):
        at = f"0000:{7 + number:02x}:00.0"
        host.card(at, "0x068000", "0x10de", "0x22a3", 2, "16.0", 0, "Bridge: NVIDIA Corporation GH100 [H100 NVSwitch]")
        host.files[f"/proc/driver/nvidia-nvswitch/devices/{at}"] = ""
    host.commands["fabricmanager"] = "active\n"
    host.files["/sys/module/nvidia/version"] = "550.90.07"
    host.files["/sys/module/nvidia_peermem/initstate"] = "live"
    host.files["/sys/module/mlx5_core/version"] = "24.04-0.6.6"
    for rail, (number, bus) in enumerate(
        zip((0, 3, 4, 5, 6, 9, 10, 11), ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc"), strict=True)
    ):
        at = f"0000:{bus}:00.0"
        host.card(
            at,
            "0x020700",
            "0x15b3",
            "0x1021",
            16,
            "32.0",
            rail // 4,
            "Infiniband controller: Mellanox Technologies MT2910",
        )
        host.rdma(f"mlx5_{number}", at, NDR[0], "MT_0000000838", NDR[3])
        host.interface(f"ibp{int(bus, 16)}s0", at, f"00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:{index:02x}:{rail:02x}:01",
                       mtu=4092, hardware=32, ip=f"10.{rail + 1}.0.{index}/16")  # fmt: skip
        host.files[f"/sys/class/net/ibp{int(bus, 16)}s0/mode"] = "datagram"
        host.interrupts(at, 300 + 40 * rail, range(56 * (rail // 4), 56 * (rail // 4) + 32))
    for slot, number in enumerate((1, 7)):  # the first ports are InfiniBand, the second Ethernet
        for port in range(2):
            at = f"0000:{('29', 'aa')[slot]}:00.{port}"
            host.card(
                at,
                ("0x020700", "0x020000")[port],
                "0x15b3",
                "0x1021",
                16,
                "32.0",
                slot,
                "controller: Mellanox Technologies MT2910",
            )
            nic = (f"ibp{(41, 170)[slot]}s0f0", f"enp{(41, 170)[slot]}s0f1np1")[port]
            if port == 0:
                host.rdma(f"mlx5_{number}", at, "200 Gb/sec (4X HDR)", "NVD0000000023", NDR[3])
                host.interface(nic, at, f"00:00:11:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:01:{index:02x}:{slot:02x}:01",
                               mtu=4092, hardware=32, ip=f"10.{20 + slot}.0.{index}/16")  # fmt: skip
                host.files[f"/sys/class/net/{nic}/mode"] = "datagram"
            else:
                host.rdma(f"mlx5_{number + 1}", at, "40 Gb/sec (4X QDR)", "NVD0000000023", NDR[3], layer="Ethernet",
                          state="1: DOWN", physical="3: Disabled")  # fmt: skip
                host.interface(nic, at, mac(index, 90 + slot), mbit=100_000, up=False, port="p1")
    host.commands["nvidia-smi-q"] = smi(places)
    return host


def smi(places: Sequence[str], extra: str = "") -> str:
    gpus = "".join(
        f"""\t<gpu id="00000000:{bus.upper()}:00.0">
\t\t<product_name>NVIDIA H100 80GB HBM3</product_name>
\t\t<persistence_mode>Enabled</persistence_mode>
\t\t<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
\t\t<vbios_version>96.00.89.00.01</vbios_version>
\t\t<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
\t\t<clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown></clocks_event_reasons>
\t\t<compute_mode>Default</compute_mode>
\t\t<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
\t\t<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
\t\t<remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
\t\t<gpu_power_readings><power_draw>71.22 W</power_draw><current_power_limit>700.00 W</current_power_limit></gpu_power_readings>
\t\t<fabric><state>Completed</state><status>Success</status></fabric>
\t</gpu>
"""
        for bus in places
    )
    return f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n\t<driver_version>550.90.07</driver_version>\n{gpus}{extra}</nvidia_smi_log>\n'


def mi300(name: str, index: int) -> Machine:
    """EPYC host with eight MI300X and eight Broadcom Thor NICs: `enp65s0np0`, and udev's `rocep65s0`."""
    host = Machine(name, index)
    host.base("Supermicro", "AS -8125GS-TNMR2", "AMD EPYC 9654 96-Core Processor", 384, 2, 2304, driver="amd")
    management(host, "eno8303")
    heard = {}
    for number in range(8):
        gpu = f"0000:{5 + 0x20 * number:02x}:00.0"
        host.card(
            gpu, "0x120000", "0x1002", "0x74a1", 16, "32.0", number // 4, "Processing accelerators: AMD/ATI Device 74a1"
        )
        bus = 1 + 0x20 * number
        at, nic = f"0000:{bus:02x}:00.0", f"enp{bus}s0np0"
        host.card(at, "0x020000", "0x14e4", "0x1760", 16, "32.0", number // 4, "Ethernet controller: Broadcom BCM57608")
        ip = f"10.{number + 1}.0.{index}/16"
        host.interface(
            nic,
            at,
            mac(index, number),
            mbit=400_000,
            mtu=9000,
            ip=ip,
            driver="bnxt_en",
            firmware="231.2.63.0/pkg 231.2.63.0",
            port="p0",
        )
        host.rdma(f"rocep{bus}s0", at, "400 Gb/sec (4X NDR)", "", "231.2.63.0", layer="Ethernet", hca="BCM57608",
                  gids=roce_gids(ip, nic, index))  # fmt: skip
        host.interrupts(at, 400 + 80 * number, range(96 * (number // 4), 96 * (number // 4) + 32))
        heard[nic] = (f"leaf{number + 1}", f"Ethernet{index}")
    host.heard(heard)
    host.files["/sys/module/amdgpu/version"] = "6.8.5"
    return host


def _bond(host: Machine, index: int, names: Sequence[str], mbit: int) -> None:
    """`bond0` of the interfaces `names`, with the address of the host."""
    ip = f"10.1.0.{index}/16"
    host.interface("bond0", "", mac(index, 0), mbit=mbit, mtu=9000, ip=ip, pci=False, driver="bonding", firmware="2")
    host.put("/sys/class/net/bond0/bonding", slaves=" ".join(names), mode="802.3ad 4", mii_status="up")


def roce(name: str, index: int, style: str = "plain") -> Machine:
    """Xeon host with a dual-port ConnectX-6 Dx: `ens3f0np0` and `ens3f1np1`, or `bond0` of both beside `mlx5_bond_0`.

    `style` is `plain`, `bond`, `eth` (names `eth2`, `eth3`), `one` (the second port has no cable).
    """
    host = Machine(name, index)
    host.base("Dell Inc.", "PowerEdge R750", "Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz", 144, 2, 512)
    management(host, "eth0" if style == "eth" else "eno8303")
    names = ("eth2", "eth3") if style == "eth" else ("ens3f0np0", "ens3f1np1")
    heard = {}
    for port, nic in enumerate(names):
        at = f"0000:b1:00.{port}"
        host.card(
            at, "0x020000", "0x15b3", "0x101d", 16, "16.0", 1, "Ethernet controller: Mellanox Technologies MT2892"
        )
        up = not (style == "one" and port == 1)
        own = "" if style == "bond" or not up else f"10.{port + 1}.0.{index}/16"
        more = {"master": "bond0"} if style == "bond" else {}
        host.interface(nic, at, mac(index, 0 if style == "bond" else port), mbit=100_000, mtu=9000 if up else 1500, ip=own, up=up,
                       firmware="22.39.2048 (MT_0000000359)", port=f"p{port}", **more)  # fmt: skip
        host.interrupts(at, 500 + 80 * port, range(1, 64, 2))
        if style != "bond":
            host.rdma(f"mlx5_{port}", at, "100 Gb/sec (4X EDR)", "MT_0000000359", "22.39.2048", layer="Ethernet", hca="MT4125",
                      state="4: ACTIVE" if up else "1: DOWN", physical="5: LinkUp" if up else "3: Disabled",
                      gids=roce_gids(own, nic, index) if own else ())  # fmt: skip
        if up:
            heard[nic] = (f"tor{index // 4 + 1}", f"Ethernet{index * 2 + port}")
    if style == "bond":
        _bond(host, index, names, mbit=200_000)
        host.rdma("mlx5_bond_0", "0000:b1:00.0", "100 Gb/sec (4X EDR)", "MT_0000000359", "22.39.2048", layer="Ethernet", hca="MT4125",
                  gids=roce_gids(f"10.1.0.{index}", "bond0", index))  # fmt: skip
    host.heard(heard)
    return host


def infiniband(name: str, index: int, make: Sequence[str] = NDR) -> Machine:
    """EPYC host with one InfiniBand card."""
    host = Machine(name, index)
    host.base("Lenovo", "ThinkSystem SD665 V3", "AMD EPYC 9754 128-Core Processor", 256, 2, 768, driver="amd")
    management(host, "eno1np0", 25_000)
    host.card(
        "0000:c1:00.0",
        "0x020700",
        "0x15b3",
        make[2],
        16,
        "32.0" if make is NDR else "16.0",
        1,
        "Infiniband controller: Mellanox",
    )
    host.rdma("mlx5_0", "0000:c1:00.0", make[0], make[1], make[3])
    host.interface("ib0", "0000:c1:00.0", f"00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:{index // 256:02x}:{index % 256:02x}:01",
                   mtu=4092, hardware=32, ip=f"10.1.{index // 250}.{index % 250 + 1}/16")  # fmt: skip
    host.files["/sys/class/net/ib0/mode"] = "datagram"
    host.interrupts("0000:c1:00.0", 300, range(64, 96))
    return host


def omnipath(name: str, index: int) -> Machine:
    """Xeon host with one Omni-Path adapter of 100 Gbit/s."""
    host = Machine(name, index)
    host.base("Intel Corporation", "S2600WTT", "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", 56, 2, 128)
    management(host)
    host.card(
        "0000:05:00.0",
        "0x020800",
        "0x8086",
        "0x24f0",
        16,
        "8.0",
        0,
        "Fabric controller: Intel Corporation Omni-Path HFI 100",
    )
    host.rdma(
        "hfi1_0",
        "0000:05:00.0",
        "100 Gb/sec (4X EDR)",
        "Intel Omni-Path Host Fabric Interface Adapter 100 Series",
        "1.27.0",
        hca="",
    )
    host.interface("ib0", "0000:05:00.0", f"80:81:00:02:fe:80:00:00:00:00:00:00:00:11:75:01:01:{index:02x}:00:01", mtu=65520, hardware=32,
                   ip=f"10.1.0.{index}/16", driver="hfi1", firmware="1.27.0")  # fmt: skip
    host.files["/sys/class/net/ib0/mode"] = "connected"
    host.interrupts("0000:05:00.0", 300, range(0, 16))
    host.commands["opainfo"] = (
        f"hfi1_0:1                           PortGID:0xfe80000000000000:001175010101{index:02x}01\n   PortState:     Active\n   LinkSpeed      Act: 25Gb         En: 25Gb        \n   LinkWidth      Act: 4            En: 4           \n   LinkWidthDnGrd ActTx: 4  Rx: 4   En: 3,4         \n   LCRC           Act: 14-bit       En: 14-bit,16-bit,48-bit       Mgmt: True \n   LID: 0x00000002-0x00000002       SM LID: 0x00000001 SL: 0 \n         QSFP Copper,       3m  FCI Electronics   P/N 10131941-3030LF  Rev 5 \n   Xmit Data:               1040 MB Pkts:               253144\n   Recv Data:               1043 MB Pkts:               251112\n   Link Quality: 5 (Excellent)\n"
    )
    return host


def ethernet(name: str, index: int, style: str = "eth2") -> Machine:
    """AMD host without RDMA: `eth0` with the default route and a faster `eth2`, or `bond0` of two with the default route."""
    host = Machine(name, index)
    host.base("HPE", "ProLiant DL385 Gen10 Plus", "AMD EPYC 7543 32-Core Processor", 128, 2, 256, driver="amd")
    if style == "eth2":
        management(host, "eth0")
        names = ["eth2"]
    else:
        names = ["eno49np0", "eno50np1"]
    for port, nic in enumerate(names):
        at = f"0000:c1:00.{port}"
        host.card(
            at,
            "0x020000",
            "0x14e4",
            "0x16d7",
            8,
            "8.0",
            1,
            "Ethernet controller: Broadcom BCM57414 NetXtreme-E 10Gb/25Gb",
        )
        more = {"master": "bond0"} if style == "bond" else {}
        host.interface(nic, at, mac(index, 0), mbit=25_000, mtu=9000, ip="" if more else f"10.1.0.{index}/16", driver="bnxt_en",
                       firmware="229.1.123.0", **more)  # fmt: skip
        host.interrupts(at, 300 + 40 * port, range(32, 64))
    if style == "bond":
        _bond(host, index, names, mbit=50_000)
        host.route("10.1.255.254", "bond0")
    host.heard({nic: (f"tor{index // 8 + 1}", f"1/1/{index}") for nic in names})
    return host


KINDS: Mapping[str, Callable[[str, int], Machine]] = {
    "dgx": dgx,
    "mi300": mi300,
    "roce": roce,
    "roce-bond": lambda name, index: roce(name, index, "bond"),
    "roce-eth": lambda name, index: roce(name, index, "eth"),
    "roce-one": lambda name, index: roce(name, index, "one"),
    "ndr": infiniband,
    "hdr": lambda name, index: infiniband(name, index, HDR),
    "hdr100": lambda name, index: infiniband(name, index, HDR100),
    "omnipath": omnipath,
    "ethernet": ethernet,
    "ethernet-bond": lambda name, index: ethernet(name, index, "bond"),
}


def collected(
    folder: Path, kinds: Mapping[str, int], change: Mapping[str, Change] | None = None, level: str = "full"
) -> list[dict[str, Any]]:
    """Snapshots of so many hosts of each kind, `ndr1`, `ndr2`, ...; `change` alters hosts by their name, `*` all."""
    found, index = [], 0
    for kind, count in kinds.items():
        for number in range(1, count + 1):
            index += 1
            host = KINDS[kind](f"{kind}-{number:02d}", index)
            for name in ("*", host.name):
                if change and name in change:
                    change[name](host)
            found.append(host.collected(folder, level))
    return found

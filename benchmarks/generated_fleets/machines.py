"""Machines that fleets are made of: their NICs, GPUs, CPUs and versions. Invented, modelled on public data sheets."""

from __future__ import annotations

from dataclasses import dataclass, replace

_NDR = 400_000  # Mbit/s
_OF_BOARD = 8  # GPUs


@dataclass(frozen=True)
class Rail:
    """A NIC of the fabric: its network interface, and its RDMA or Slingshot device if it has one."""

    interface: str
    device: str  # `mlx5_0`, `cxi0`; empty: Ethernet without RDMA
    pci: str  # address


@dataclass(frozen=True)
class Machine:
    """A machine, as often as a fleet has hosts."""

    name: str
    vendor: str
    product: str
    bios: str
    cpu: str
    cpus: int  # hardware threads
    nodes: int  # NUMA
    memory_gib: int
    dimms: int
    gpus: int
    gpu_class: str
    link: str  # `infiniband`, `slingshot`, `roce`, `ethernet`
    rails: tuple[Rail, ...]
    speed_mbit: int
    mtu: int
    driver: str
    driver_version: str
    firmware: str
    pci_ids: tuple[str, str]  # of a NIC: vendor, device
    lanes: int = 16
    lane_speed: str = "32.0 GT/s PCIe"
    psid: str = ""
    card: str = "MT4129"  # hca_type of an RDMA device
    microcode: str = "0x2b000603"
    kernel: str = "5.14.0-427.31.1.el9_4.x86_64"

    @property
    def is_intel(self) -> bool:
        return "Intel" in self.cpu

    @property
    def has_nvidia(self) -> bool:
        return self.gpu_class == "0x030200"

    @property
    def has_nvswitch(self) -> bool:
        """Boards of eight GPUs have NVLink switches between them."""
        return self.has_nvidia and self.gpus == _OF_BOARD

    @property
    def is_rdma(self) -> bool:
        return self.link in ("infiniband", "roce")

    @property
    def rate(self) -> str:
        """The rate of an InfiniBand or RoCE port as the kernel prints it."""
        return f"{self.speed_mbit // 1000} Gb/sec (4X {'NDR' if self.speed_mbit == _NDR else 'HDR'})"

    @property
    def has_lldp(self) -> bool:
        """Do switches announce themselves on the rails?"""
        return self.link != "infiniband"


def _rails(interfaces: str, devices: str, count: int, buses: tuple[int, ...]) -> tuple[Rail, ...]:
    named = [(interfaces.format(index), devices.format(index) if devices else "") for index in range(count)]
    pairs = zip(named, buses, strict=True)
    return tuple(Rail(interface, device, f"0000:{bus:02x}:00.0") for (interface, device), bus in pairs)


INFINIBAND = Machine(
    name="infiniband",
    vendor="NVIDIA",
    product="DGXH100",
    bios="1.01.03",
    cpu="Intel(R) Xeon(R) Platinum 8480C",
    cpus=224,
    nodes=2,
    memory_gib=2048,
    dimms=32,
    gpus=8,
    gpu_class="0x030200",
    link="infiniband",
    rails=_rails("ib{}", "mlx5_{}", 4, (0x18, 0x40, 0x9A, 0xC0)),
    speed_mbit=400_000,
    mtu=4092,
    driver="mlx5_core",
    driver_version="23.10-1.1.9",
    firmware="28.39.1002",
    pci_ids=("0x15b3", "0x1021"),
    psid="MT_0000000838",
)

SLINGSHOT = Machine(
    name="slingshot",
    vendor="HPE",
    product="HPE Cray EX235a",
    bios="1.7.2",
    cpu="AMD EPYC 7A53 64-Core Processor",
    cpus=128,
    nodes=4,
    memory_gib=512,
    dimms=8,
    gpus=8,
    gpu_class="0x038000",
    link="slingshot",
    rails=_rails("hsn{}", "cxi{}", 4, (0xC2, 0xC6, 0xCA, 0xCE)),
    speed_mbit=200_000,
    mtu=9000,
    driver="cxi_ss1",
    driver_version="2.1.0",
    firmware="1.5.53",
    pci_ids=("0x17db", "0x0501"),
    lane_speed="16.0 GT/s PCIe",
    microcode="0xa001173",
)

ROCE = Machine(
    name="roce",
    vendor="Supermicro",
    product="SYS-821GE-TNHR",
    bios="2.1",
    cpu="Intel(R) Xeon(R) Platinum 8468",
    cpus=192,
    nodes=2,
    memory_gib=1024,
    dimms=32,
    gpus=8,
    gpu_class="0x030200",
    link="roce",
    rails=tuple(
        Rail(f"ens{slot}f0np0", f"mlx5_{index}", f"0000:{bus:02x}:00.0")
        for index, (slot, bus) in enumerate(((1, 0x1A), (3, 0x4C), (6, 0x9B), (8, 0xDA)))
    ),
    speed_mbit=400_000,
    mtu=9000,
    driver="mlx5_core",
    driver_version="24.04-0.7.0",
    firmware="28.41.1000 (MT_0000000834)",
    pci_ids=("0x15b3", "0x1021"),
    psid="MT_0000000834",
)

ETHERNET = Machine(
    name="ethernet",
    vendor="Dell Inc.",
    product="PowerEdge R6525",
    bios="2.14.1",
    cpu="AMD EPYC 7543 32-Core Processor",
    cpus=64,
    nodes=2,
    memory_gib=256,
    dimms=16,
    gpus=0,
    gpu_class="",
    link="ethernet",
    rails=tuple(Rail(f"enp65s0f{port}np{port}", "", f"0000:41:00.{port}") for port in range(2)),
    speed_mbit=25_000,
    mtu=9000,
    driver="bnxt_en",
    driver_version="1.10.2-223.0.162.0",
    firmware="223.1.105.0/pkg 22.31.13.70",
    pci_ids=("0x14e4", "0x16d7"),
    lanes=8,
    lane_speed="8.0 GT/s PCIe",
    microcode="0xa0011d5",
)

# Super Server: the name that many boards of Supermicro have, whatever is in them.
SUPER_GPU = replace(
    INFINIBAND,
    name="super-gpu",
    vendor="Supermicro",
    product="Super Server",
    bios="2.1a",
    cpu="Intel(R) Xeon(R) Platinum 8480+",
    memory_gib=1024,
)
SUPER_CPU = replace(SUPER_GPU, name="super-cpu", gpus=0, gpu_class="", rails=SUPER_GPU.rails[:1], memory_gib=512)
SUPER_HDR = replace(
    SUPER_GPU,
    name="super-hdr",
    speed_mbit=200_000,
    firmware="20.39.3004",
    pci_ids=("0x15b3", "0x101b"),
    psid="MT_0000000223",
    card="MT4123",
    lane_speed="16.0 GT/s PCIe",
)
CPU_HOST = replace(
    INFINIBAND,
    name="cpu",
    vendor="Lenovo",
    product="ThinkSystem SD650 V3",
    bios="ESE120K-2.20",
    cpu="Intel(R) Xeon(R) Platinum 8470",
    cpus=208,
    memory_gib=512,
    dimms=16,
    gpus=0,
    gpu_class="",
    rails=INFINIBAND.rails[:1],
)
LARGE_HOST = replace(CPU_HOST, name="large-memory", memory_gib=4096, dimms=32, product="ThinkSystem SR860 V3")
LOGIN = replace(
    CPU_HOST, name="login", product="ThinkSystem SR645", cpu="AMD EPYC 9354 32-Core Processor", cpus=64, bios="KAE120G"
)

MACHINES = {machine.name: machine for machine in (INFINIBAND, SLINGSHOT, ROCE, ETHERNET)}

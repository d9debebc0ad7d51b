"""A host in checks: its snapshot, and cached facts from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from fablint.snapshot import NicFact, Output, Snapshot, nics_of, rails
from fablint.snapshot.cards import Boards, Built, Card, accelerators_on, addresses_of, cards_of, completed, cpu_model
from fablint.snapshot.counter_deltas import Delta, delta, deltas, is_same, total
from fablint.snapshot.host_snapshot import CXI as CXI, INFINIBAND as INFINIBAND, NET as NET, Tree
from fablint.snapshot.neighbours import CableEnd, neighbours_of, switch_ports
from fablint.snapshot.parsers.inet import Address, Inet
from fablint.snapshot.parsers.kernel_log import KernelLog
from fablint.snapshot.parsers.lldp import Neighbour
from fablint.snapshot.parsers.nvidia_smi import QUERY, Gpu, gpus_of
from fablint.snapshot.parsers.proc_files import CpuInfo, MemoryInfo, count_listed, cpu_info, memory_info, uptime_s
from fablint.snapshot.rdma_ports import RdmaPort, rdma_ports
from fablint.text.sanitise import shortened

PCI = "/sys/bus/pci/devices"
CPUS = "/sys/devices/system/cpu"
GPUS = "/proc/driver/nvidia/gpus"
NVSWITCHES = "/proc/driver/nvidia-nvswitch/devices"
_FAST_MBIT = 10_000  # slower network interfaces do not need all lanes
_VIRTUAL = ("qemu", "kvm", "vmware", "xen", "virtualbox", "virtual machine", "ec2", "google", "openstack", "bochs")
_CASSINI_2 = {  # files of a port, which Cassini-1 has by the names of the properties
    "link": "0/link/state",
    "speed": "0/link/speed",
    "link_layer_retry": "0/llr/state",
    "loopback": "0/link/config/loopback",
    "pause": "0/link/config/pause_map",
}
Part = Callable[[str | None], str | None]  # extracts a value from the text of a file


def _whole(text: str | None) -> str | None:
    return text


@dataclass
class Host:
    """A host with its snapshot and stored readings of its counters since the same boot.

    `before` is the last stored reading; `older` returns those of about an hour and a day ago.
    """

    snapshot: Snapshot
    before: Mapping[str, object] | None = None  # `time`: seconds since 1970, `counters`: a tree
    older: Callable[[], Sequence[Mapping[str, object]]] = tuple  # read on demand, which is rare
    kind: str = field(default="", init=False, compare=False)  # its class, see `Fleet`: only similar hosts are compared
    boards: Boards = field(
        default_factory=dict, init=False, repr=False, compare=False
    )  # most frequent board ids of the fleet

    @cached_property
    def name(self) -> str:
        return self.snapshot.host

    @cached_property
    def nics(self) -> Sequence[NicFact]:
        """Network interfaces and adapters of the snapshot."""
        return nics_of(self.snapshot, self.inet)

    @cached_property
    def rails(self) -> Sequence[NicFact]:
        """NICs of the fabric: network interfaces, and ports of fabric devices."""
        return rails(self.nics)

    @cached_property
    def interfaces(self) -> Sequence[NicFact]:
        """Rails that are network interfaces."""
        return [nic for nic in self.rails if self.read(f"{NET}/{nic.name}/address") is not None]

    @cached_property
    def neighbours(self) -> Sequence[Neighbour]:
        """LLDP neighbours."""
        return neighbours_of(self.snapshot)

    @cached_property
    def switch_ports(self) -> Mapping[str, Sequence[CableEnd]]:
        """Neighbours of each network interface of the fabric."""
        return switch_ports(self.neighbours, (nic.name for nic in self.interfaces))

    @cached_property
    def inet(self) -> Inet:
        """Addresses, routes, rules and the neighbour table."""
        return Inet(self.snapshot)

    @cached_property
    def addresses_of_interfaces(self) -> Mapping[str, Sequence[Address]]:
        """Addresses of each network interface of the fabric with an address."""
        names = {nic.name for nic in self.interfaces}
        result: dict[str, list[Address]] = {}
        for address in self.inet.addresses.items:
            if address.nic in names:
                result.setdefault(address.nic, []).append(address)
        return result

    @cached_property
    def kernel_log(self) -> KernelLog:
        """Kernel log since the host was started."""
        booted = None if self.uptime_s is None else self.snapshot.time - self.uptime_s
        return KernelLog(self.snapshot.kernel_log.text, booted)

    @cached_property
    def uptime_s(self) -> float | None:
        """Seconds since the boot."""
        return uptime_s(self.read("/proc/uptime"))

    @cached_property
    def memory(self) -> MemoryInfo:
        """Figures of /proc/meminfo."""
        return memory_info(self.read("/proc/meminfo"))

    @cached_property
    def cpu(self) -> CpuInfo:
        """Fields of /proc/cpuinfo."""
        return cpu_info(self.read("/proc/cpuinfo"))

    @cached_property
    def cpus_online(self) -> int | None:
        """Number of CPUs online; None if unknown."""
        return count_listed(self.read(f"{CPUS}/online"))

    @cached_property
    def rdma_devices(self) -> Mapping[str, str]:
        """Folders of RDMA devices by name."""
        result = {device: f"{INFINIBAND}/{device}" for device in self.snapshot.names(INFINIBAND)}
        return {**result, **{device: f"{CXI}/{device}" for device in self.cxi}}

    @cached_property
    def ports(self) -> Sequence[RdmaPort]:
        """Ports of RDMA devices."""
        return rdma_ports(self.snapshot)

    @cached_property
    def cxi(self) -> Sequence[str]:
        """Slingshot devices."""
        return self.snapshot.names(CXI)

    @cached_property
    def cxi_up(self) -> Collection[str]:
        """Slingshot devices with a link."""
        return [device for device in self.cxi if self.cxi_port(device, "link") == "up"]

    def cxi_port(self, device: str, name: str) -> str | None:
        """Return a property of the port of a Slingshot device; None if the driver does not report it."""
        folder = f"{CXI}/{device}/device/port"
        text = self.read(f"{folder}/{name}") or self.read(f"{folder}/{_CASSINI_2[name]}")
        return shortened(text) if text else None

    @cached_property
    def fabric_devices(self) -> Mapping[str, str]:
        """Folders of the fabric's PCI devices by name; a device with several names has the first."""
        named = [(device, f"{CXI}/{device}/device") for device in self.cxi]
        named += [(device, f"{INFINIBAND}/{device}/device") for device in self.snapshot.names(INFINIBAND)]
        of_devices = {nic for _, folder in named for nic in self.snapshot.names(f"{folder}/net")}
        fast = [nic.name for nic in self.interfaces if (nic.speed or 0) >= _FAST_MBIT and nic.name not in of_devices]
        named += [(nic, f"{NET}/{nic}/device") for nic in fast if self.read(f"{NET}/{nic}/device/vendor")]
        result: dict[str, str] = {}
        for name, folder in named:
            result.setdefault(self.snapshot.link(folder) or folder, name)
        return {name: folder for name, folder in named if name in result.values()}

    @cached_property
    def accelerators(self) -> Mapping[str, str]:
        """PCI class of each GPU and accelerator, by address."""
        return accelerators_on(self.snapshot.folder(PCI))

    @cached_property
    def nvidia_gpus(self) -> Sequence[Gpu]:
        """GPUs in the output of nvidia-smi; none if it did not run or cannot be parsed."""
        said = self.command(QUERY)
        return (gpus_of(said.text) if said.status == 0 else None) or ()

    @cached_property
    def machine(self) -> str:
        """Vendor and product in the firmware."""
        vendor = self.read("/sys/devices/virtual/dmi/id/sys_vendor") or ""
        return f"{vendor} {self.read('/sys/devices/virtual/dmi/id/product_name') or ''}".strip()

    @property
    def is_virtual(self) -> bool:
        """True for a virtual machine, whose devices do not show their real links."""
        return _is_virtual(self.machine)

    @cached_property
    def cards(self) -> Mapping[str, Card]:
        """NICs and GPUs by PCI address."""
        return cards_of(self.snapshot)

    @cached_property
    def built(self) -> Built:
        """Machine, CPU and cards, which determine the class of the host."""
        return Built((self.machine, cpu_model(self.snapshot)), tuple(sorted(self.cards.values())))

    @cached_property
    def _numbers(self) -> Mapping[str, str]:
        """Part numbers, by the names of interfaces and devices, and by PCI addresses."""
        numbers = {at: completed(card, self.boards).number for at, card in self.cards.items()}
        return {**numbers, **{name: numbers[at] for name, at in addresses_of(self.snapshot).items() if at in numbers}}

    def like(self, target: str) -> tuple[str, str]:
        """Return class and part number of a component; components with both equal are compared.

        `target` is `hsn0`, `mlx5_0/1`, `mlx5_0-1`, `GPU 0000:3b:00.0`; a component without a part number
        is compared by its class and name only.
        """
        name, device = _names_in(target)
        number = self._numbers.get(name) or self._numbers.get(device)
        return self.kind, number or ""

    def read(self, path: str) -> str | None:
        """Return the text of a file of the snapshot; None if it is absent or could not be read."""
        return self.snapshot.read(path)

    def number(self, path: str) -> int | None:
        """Return the whole number in a file of the snapshot; None if it is absent, unreadable or not a number."""
        return self.snapshot.number(path)

    def command(self, name: str) -> Output:
        """Return the output of a program of the snapshot; without an entry, an output with an error."""
        return self.snapshot.command(name)

    def grown(self, path: str, part: Part = _whole) -> Delta | None:
        """Return the growth of a counter since the stored reading, else within the window of the snapshot.

        `part` extracts the counter from a file with several. None if it cannot be read, or was reset in between.
        """
        since = self._grown_since(self.before, path, part) if self.before is not None else None
        return since or self.grown_now(path, part)

    def growths(self, path: str, least: int = 0) -> Sequence[Delta]:
        """Return the growth of a counter since each stored reading.

        Readings before the last are not read if the counter is below `least`, since it cannot have grown as much.
        """
        if self.before is None:
            return []
        value = total(path, self.snapshot.read_later(path))
        readings = [self.before, *(self._older if value is not None and value >= least else ())]
        return [grown for one in readings if (grown := self._grown_since(one, path, _whole)) is not None]

    @cached_property
    def _older(self) -> Sequence[Mapping[str, object]]:
        return self.older()

    def _grown_since(self, reading: Mapping[str, object], path: str, part: Part) -> Delta | None:
        tree, moment, last = reading.get("counters"), reading.get("time"), part(self.snapshot.read_later(path))
        if last is None or not isinstance(tree, dict) or not isinstance(moment, int | float):
            return None
        passed = self.snapshot.time + self.snapshot.window_s - moment
        kept = part(Snapshot(self.name, counters=tree).read_first(path))
        return delta(path, kept, last, passed) if passed > 0 else None

    def has_moved(self, path: str) -> bool:
        """Tell whether a counter has another value at its second reading."""
        first, last = self.snapshot.readings(path)
        return not is_same(first, last)

    def grown_now(self, path: str, part: Part = _whole) -> Delta | None:
        """Return the growth of a counter within the window of the snapshot."""
        first, last = self.snapshot.readings(path)
        if part is _whole:
            return delta(path, first, last, self.snapshot.window_s)
        begun = part(first)
        return delta(path, begun, begun if last == first else part(last), self.snapshot.window_s)

    def all_grown(self, folder: str, names: Iterable[str]) -> dict[str, Delta]:
        """Return the growth of the counters in a folder, as `grown` does; faster for many counters."""
        if self.before is None:
            return self.all_grown_now(folder, names)
        result = ((name, self.grown(f"{folder}/{name}")) for name in names)
        return {name: grown for name, grown in result if grown is not None}

    def all_grown_now(self, folder: str, names: Iterable[str]) -> dict[str, Delta]:
        """Return the growth of the counters in a folder that were read twice, within the window of the snapshot."""
        return deltas(folder, tuple(names), *self.snapshot.readings_in(folder), self.snapshot.window_s)


@lru_cache(maxsize=1024)
def _is_virtual(machine: str) -> bool:
    return any(word in machine.lower() for word in _VIRTUAL)


@lru_cache(maxsize=1 << 14)  # the hosts of a fleet have the same targets
def _names_in(target: str) -> tuple[str, str]:
    """Return the name of a component in a target, and the name before its last dash."""
    name = target.rpartition(" ")[2].partition("/")[0]
    return name, name.rpartition("-")[0]


def counters_of(snapshot: Snapshot) -> Tree:
    """Return the last reading of all counters, to be stored."""
    return snapshot.later or snapshot.counters

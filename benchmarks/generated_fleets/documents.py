"""Snapshots of the hosts of a fleet, as lines of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from generated_fleets.files import TRAFFIC, counters_of, files_of
from generated_fleets.full import full_outputs_of
from generated_fleets.machines import Machine
from generated_fleets.outputs import outputs_of

NOW = 1767594000.0
WINDOWS_S = {"quick": 0.5, "full": 5.0}
PORTS = 32  # of a leaf switch to hosts
LINES = 850  # of a kernel log
_MOST_RAILS = 4
_OWN = re.compile(r"@\{(\w+)\}")
_FIELD_DIGITS = 16  # different fractions of seconds in a kernel log
_LOG = (
    "pci 0000:{a:02x}:00.0: BAR 0 [mem 0x{b:08x}000-0x{b:08x}fff 64bit pref]: assigned",
    "pci 0000:{a:02x}:00.0: PME# supported from D0 D3hot D3cold",
    "ACPI: PCI Root Bridge [PC{a:02X}] (domain 0000 [bus {a:02x}-{a:02x}])",
    "smpboot: CPU {a}: Package: 0, Core: {a}, physical id {a}, Thread: 1",
    "nvme nvme0: {a}/0/0 default/read/poll queues",
    "systemd[1]: Listening on D-Bus System Message Bus Socket number {a}.",
    "LNet: Added LNI 10.150.0.{a}@o2ib [8/256/0/180]",
    'audit: type=1400 audit(1767594000.123:{a}): apparmor="STATUS" operation="profile_load" name="u{a}" pid={b}',
    "hub 1-{a}:1.0: 4 ports detected",
)
_OF_ROOT = {"/sys/devices/virtual/dmi/id/product_serial": "S@{SERIAL}X"}
Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Place:
    """Where a rail of a host is connected."""

    switch: str
    port: int


@dataclass(frozen=True)
class Fleet:
    """So many hosts. What differs between healthy hosts is random, the same for the same seed.

    The last ones are of `others`, each with its share of the hosts; of 0 it is one.
    """

    machine: Machine
    hosts: int
    seed: int = 1
    lines: int = LINES
    level: str = "quick"
    others: tuple[tuple[Machine, float], ...] = ()
    root: bool = False

    def machine_of(self, index: int) -> Machine:
        """The machine of a host."""
        return self._machines[index]

    @cached_property
    def _machines(self) -> list[Machine]:
        last = [machine for machine, share in self.others for _ in range(max(round(share * self.hosts), 1))]
        return ([self.machine] * (self.hosts - len(last)) + last)[: self.hosts]

    def name(self, index: int) -> str:
        return f"nid{index + 1:06d}"

    def place(self, index: int, rail: int) -> Place:
        """Rails are planes of leaf switches of their own; a host has the same port on each."""
        return Place(f"leaf{rail}-{index // PORTS:03d}", 1 + index % PORTS)

    def document_of(self, index: int) -> dict[str, Any]:
        """The document of a host without a fault."""
        document: dict[str, Any] = json.loads(self._line(index))
        return document

    def documents(self, changes: Mapping[int, Change] | None = None) -> Iterator[str]:
        """Lines of a file of snapshots, host by host; `changes` are made to the documents of hosts with faults."""
        for index in range(self.hosts):
            line = self._line(index)
            if changes and index in changes:
                document = json.loads(line)
                changes[index](document)
                line = json.dumps(document, sort_keys=True, separators=(",", ":"))
            yield line

    def _line(self, index: int) -> str:
        texts, names = _template(self.machine_of(index), self.lines, self.level, self.root)
        values = self._own(index)
        return texts[0] + "".join([values[name] + text for name, text in zip(names, texts[1:], strict=True)])

    def topology(self) -> str:
        """A topology file that says where every rail of every host belongs."""
        places = {
            index: {
                rail.interface: self.place(index, at).switch for at, rail in enumerate(self.machine_of(index).rails)
            }
            for index in range(self.hosts)
        }
        switches = {switch for of_nics in places.values() for switch in of_nics.values()}
        lines = ["format: 1", "switches:", *(f"  {name}: {{}}" for name in sorted(switches)), "hosts:"]
        for index, at in places.items():
            lines.append(f"  {self.name(index)}: {{{', '.join(f'{nic}: {switch}' for nic, switch in at.items())}}}")
        return "\n".join(lines) + "\n"

    def _own(self, index: int) -> dict[str, str]:
        """What a host has of its own."""
        dice = random.Random(f"{self.seed}/{index}")
        machine = self.machine_of(index)
        kib = machine.memory_gib << 20
        total = round(kib * 0.985) - dice.randrange(kib >> 12)
        counted = [dice.randrange(10**6, 10**13) for _ in range(TRAFFIC)]
        texts = {f"C{number}": str(value) for number, value in enumerate(counted)}
        texts |= {f"L{number}": str(value + dice.randrange(5000)) for number, value in enumerate(counted)}
        texts |= {f"F{number}": f"{dice.randrange(10**6):06d}" for number in range(_FIELD_DIGITS)}
        texts |= {
            "HOST": self.name(index),
            "BOOT": f"{dice.getrandbits(32):08x}-5f0e-4c11-9d2a-{dice.getrandbits(48):012x}",
            "ID": f"{dice.getrandbits(128):032x}",
            "SERIAL": f"{dice.getrandbits(40):012d}",
            "CE": str(dice.randrange(3)),
            "MEMORY": str(total),
            "COPY": f"{machine.cpus * 2e9 * dice.gauss(1, 0.006):.0f}",
            "HASH": f"{machine.cpus * 8e8 * dice.gauss(1, 0.004):.0f}",
            "OTHERS": f"{0.1 + 0.3 * dice.random():.3f}",
            "WATT": f"{70 + 5 * dice.random():.2f}",
            "LOOP": f"{0.94 * machine.speed_mbit / 1000 * dice.gauss(1, 0.003):.2f}",
            "PAUSED": str(dice.randrange(10**5)),
            "UUID": f"GPU-{dice.getrandbits(32):08x}-88f5-3b5e-7bd4-{dice.getrandbits(44):011x}",
            **_memory_of_nodes(machine, total, dice),
            "FREE": str(round(kib * (0.93 + 0.03 * dice.random()))),
            "UPTIME": f"{86400 * 9 + dice.randrange(7200)}.{dice.randrange(100):02d}",
            "LOAD": f"{dice.randrange(40):02d}",
            "PID": str(dice.randrange(5000, 4_000_000)),
            "TOKEN": f"BOOTIF=01-{dice.getrandbits(48):012x}",
            "TIME": f"{NOW + dice.random():.3f}",
            **_codewords(dice),
            "OFFSET": f"{dice.gauss(0, 2e-5):.9f}",
            "MAC_MGMT": f"3c:ec:ef:{index >> 16:02x}:{index >> 8 & 255:02x}:{index & 255:02x}",
            "IP_MGMT": f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}",
        }
        for rail in range(len(machine.rails)):
            texts |= self._of_rail(index, rail, machine.link)
        return texts

    def _of_rail(self, index: int, rail: int, link: str) -> dict[str, str]:
        number = index * _MOST_RAILS + rail
        place = self.place(index, rail)
        octets = f"{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
        is_infiniband = link == "infiniband"
        long = f"00:00:10:{number & 255:02x}:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:{octets}"
        short = f"02:00:00:{octets}" if link == "slingshot" else f"b8:ce:f6:{octets}"
        return {
            f"MAC{rail}": long if is_infiniband else short,
            f"GUID{rail}": f"b8ce:f603:{number >> 16:04x}:{number & 65535:04x}",
            f"LID{rail}": hex(100 + number),
            f"NID{rail}": f"0x{number:05x}",
            f"IP{rail}": f"172.{16 + rail}.{(index + 1) >> 8}.{(index + 1) & 255}",
            f"HEX{rail}": f"{172 << 8 | 16 + rail:04x}:{index + 1:04x}",
            f"SWITCH{rail}": place.switch,
            f"PORT{rail}": str(place.port),
            f"FAR{rail}": f"02:fe:{rail:02x}:{index // PORTS >> 8:02x}:{index // PORTS & 255:02x}:{place.port:02x}",
        }


def _codewords(dice: random.Random) -> dict[str, str]:
    """Two readings of a Slingshot port: a codeword has 5440 bits (IEEE 802.3, RS(544,514)) at 212.5 Gbit/s."""
    moment, good, passed = NOW + dice.random(), dice.randrange(10**14, 10**15), 0.5 + 0.01 * dice.random()
    later = {"GOOD_LATER": str(good + round(passed * 212.5e9 / 5440)), "MOMENT_LATER": f"{moment + passed:.9f}"}
    return {"GOOD": str(good), "MOMENT": f"{moment:.9f}", **later}


def tree_of(files: Mapping[str, str]) -> dict[str, Any]:
    """Files by path as nested folders."""
    tree: dict[str, Any] = {}
    for path, text in files.items():
        *folders, name = path.strip("/").split("/")
        at = tree
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = text
    return tree


@lru_cache(maxsize=16)
def _template(machine: Machine, lines: int, level: str, root: bool) -> tuple[list[str], list[str]]:
    """Texts of a document, and names of what each host has of its own between them."""
    pieces = _OWN.split(_document(machine, lines, level, root))
    return pieces[::2], pieces[1::2]


def _document(machine: Machine, lines: int, level: str, root: bool) -> str:
    """A document with `@{NAME}` for what each host has of its own."""
    counters = counters_of(machine)
    document = {
        "fablint_snapshot": 1,
        "host": "@{HOST}",
        "time": "@{TIME}",
        "window_s": WINDOWS_S[level],
        "level": level,
        "root": root,
        "kernel": machine.kernel,
        "python": "3.9.18",
        "files": tree_of(files_of(machine) | (_OF_ROOT if root else {})),
        "counters": tree_of(counters),
        "later": tree_of({path: _later(text) for path, text in counters.items()}),
        "links": _links(machine),
        "folders": _folders(machine),
        "commands": _commands(machine, level, root),
        "kernel_log": {"output": _log(machine, lines)},
        "names": {"of": {"@{IP0}": "@{HOST}"}, "to": {"@{HOST}": ["@{IP0}"]}},
        "shared_memory": {"size": machine.memory_gib << 29, "free": machine.memory_gib << 29},
        "incomplete": "",
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).replace('"@{TIME}"', "@{TIME}")


def _commands(machine: Machine, level: str, root: bool) -> dict[str, Any]:
    texts = outputs_of(machine) | (full_outputs_of(machine, root=root) if level == "full" else {})
    said: dict[str, Any] = {name: {"output": text, "status": 0} for name, text in texts.items()}
    if level == "full":
        said |= {name: {"error": "not installed"} for name in ("dcgmi", "cxi_healthcheck")}
    return said


def _memory_of_nodes(machine: Machine, total: int, dice: random.Random) -> dict[str, str]:
    """KiB of NUMA nodes: the first one lacks what the kernel took at boot."""
    each = [total // machine.nodes - dice.randrange(3000) for _ in range(machine.nodes)]
    each[0] -= machine.memory_gib * 300
    return {f"NODE{node}": str(size) for node, size in enumerate(each)}


def _later(text: str) -> str:
    text = text.replace("@{GOOD}", "@{GOOD_LATER}").replace("@{MOMENT}", "@{MOMENT_LATER}")
    return re.sub(r"@\{C(\d+)\}", r"@{L\1}", text)


def _links(machine: Machine) -> dict[str, str]:
    links = {}
    for rail in machine.rails:
        links[f"/sys/class/net/{rail.interface}/device"] = f"../../../{rail.pci}"
        links[f"/sys/class/net/{rail.interface}/device/driver"] = f"../../../../bus/pci/drivers/{machine.driver}"
        if rail.device:
            kind = "cxi" if machine.link == "slingshot" else "infiniband"
            links[f"/sys/class/{kind}/{rail.device}/device"] = f"../../../{rail.pci}"
            links[f"/sys/class/{kind}/{rail.device}/device/iommu_group"] = "../../../../kernel/iommu_groups/0"
    return links


def _folders(machine: Machine) -> dict[str, list[str]]:
    kind = "cxi" if machine.link == "slingshot" else "infiniband"
    rails = {f"/sys/class/{kind}/{one.device}/device/net": [one.interface] for one in machine.rails if one.device}
    switches = [f"0000:{0x07 + index:02x}:00.0" for index in range(4)] if machine.has_nvswitch else []
    return rails | ({"/proc/driver/nvidia-nvswitch/devices": switches} if switches else {})


def _log(machine: Machine, lines: int) -> str:
    """A boot as it usually is; digits of the times are each host's own."""
    dice = random.Random(machine.name)
    said = []
    for index in range(lines):
        text = _LOG[index % len(_LOG)].format(a=dice.randrange(256), b=dice.randrange(1 << 31))
        said.append(f"<6>[{index // 20:5d}.@{{F{index % _FIELD_DIGITS}}}] {text}")
    said[5] = "<4>[    0.@{F3}] ACPI: SPCR: Unexpected SPCR Access Width.  Defaulting to byte size"
    said[9] = "<4>[    0.@{F7}] ERST: Error Record Serialization Table (ERST) support is initialized."
    return "\n".join(said)

"""Snapshots of the hosts of a fleet, as lines of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleets.files import TRAFFIC, counters_of, files_of
from fleets.machines import Machine

NOW = 1767594000.0
WINDOW_S = 0.5
PORTS = 32  # of a leaf switch to hosts
LINES = 850  # of a kernel log
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
Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Place:
    """Where a rail of a host is connected."""

    switch: str
    port: int


@dataclass(frozen=True)
class Fleet:
    """So many hosts of a machine. What differs between healthy hosts is random, the same for the same seed."""

    machine: Machine
    hosts: int
    seed: int = 1
    lines: int = LINES

    def name(self, index: int) -> str:
        return f"nid{index + 1:06d}"

    def place(self, index: int, rail: int) -> Place:
        """Rails are planes of leaf switches of their own; a host has the same port on each."""
        return Place(f"leaf{rail}-{index // PORTS:03d}", 1 + index % PORTS)

    def documents(self, changes: Mapping[int, Change] | None = None) -> Iterator[str]:
        """Lines of a file of snapshots, host by host; `changes` are made to the documents of hosts with faults."""
        pieces = _OWN.split(_template(self.machine, self.lines))
        texts, names = pieces[::2], pieces[1::2]
        for index in range(self.hosts):
            own = self._own(index)
            line = texts[0] + "".join([own[name] + text for name, text in zip(names, texts[1:], strict=True)])
            if changes and index in changes:
                document = json.loads(line)
                changes[index](document)
                line = json.dumps(document, sort_keys=True, separators=(",", ":"))
            yield line

    def topology(self) -> str:
        """A topology file that says where every rail of every host belongs."""
        switches = {self.place(index, rail).switch for index in range(self.hosts) for rail in range(self._rails)}
        lines = ["format: 1", "switches:", *(f"  {name}: {{}}" for name in sorted(switches)), "hosts:"]
        for index in range(self.hosts):
            rails = enumerate(self.machine.rails)
            at = {rail.interface: self.place(index, number).switch for number, rail in rails}
            lines.append(f"  {self.name(index)}: {{{', '.join(f'{nic}: {switch}' for nic, switch in at.items())}}}")
        return "\n".join(lines) + "\n"

    @property
    def _rails(self) -> int:
        return len(self.machine.rails)

    def _own(self, index: int) -> dict[str, str]:
        """What a host has of its own."""
        dice = random.Random(f"{self.seed}/{index}")
        kib = self.machine.memory_gib << 20
        counted = [dice.randrange(10**6, 10**13) for _ in range(TRAFFIC)]
        own = {f"C{number}": str(value) for number, value in enumerate(counted)}
        own |= {f"L{number}": str(value + dice.randrange(5000)) for number, value in enumerate(counted)}
        own |= {f"F{number}": f"{dice.randrange(10**6):06d}" for number in range(_FIELD_DIGITS)}
        own |= {
            "HOST": self.name(index),
            "BOOT": f"{dice.getrandbits(32):08x}-5f0e-4c11-9d2a-{dice.getrandbits(48):012x}",
            "MEMORY": str(round(kib * 0.985) - dice.randrange(kib >> 12)),
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
        for rail in range(self._rails):
            own |= self._of_rail(index, rail)
        return own

    def _of_rail(self, index: int, rail: int) -> dict[str, str]:
        number = index * self._rails + rail
        place = self.place(index, rail)
        octets = f"{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
        is_infiniband = self.machine.link == "infiniband"
        long = f"00:00:10:{number & 255:02x}:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:{octets}"
        short = f"02:00:00:{octets}" if self.machine.link == "slingshot" else f"b8:ce:f6:{octets}"
        return {
            f"MAC{rail}": long if is_infiniband else short,
            f"GUID{rail}": f"b8ce:f603:{number >> 16:04x}:{number & 65535:04x}",
            f"LID{rail}": hex(100 + number),
            f"NID{rail}": f"0x{number:05x}",
            f"IP{rail}": f"172.{16 + rail}.{(index + 1) >> 8}.{(index + 1) & 255}",
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


def _template(machine: Machine, lines: int) -> str:
    """A document with `@{NAME}` for what each host has of its own."""
    counters = counters_of(machine)
    document = {
        "fablint_snapshot": 1,
        "host": "@{HOST}",
        "time": "@{TIME}",
        "window_s": WINDOW_S,
        "level": "quick",
        "root": False,
        "kernel": "5.14.0-427.31.1.el9_4.x86_64",
        "python": "3.9.18",
        "files": tree_of(files_of(machine)),
        "counters": tree_of(counters),
        "later": tree_of({path: _later(text) for path, text in counters.items()}),
        "links": _links(machine),
        "folders": _folders(machine),
        "commands": {name: {"output": text, "status": 0} for name, text in _outputs(machine).items()},
        "kernel_log": {"output": _log(machine, lines)},
        "names": {"of": {"@{IP0}": "@{HOST}"}, "to": {"@{HOST}": ["@{IP0}"]}},
        "shared_memory": {"size": machine.memory_gib << 29, "free": machine.memory_gib << 29},
        "incomplete": "",
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).replace('"@{TIME}"', "@{TIME}")


def _later(text: str) -> str:
    text = text.replace("@{GOOD}", "@{GOOD_LATER}").replace("@{MOMENT}", "@{MOMENT_LATER}")
    return re.sub(r"@\{C(\d+)\}", r"@{L\1}", text)


def _links(machine: Machine) -> dict[str, str]:
    found = {}
    for rail in machine.rails:
        found[f"/sys/class/net/{rail.interface}/device"] = f"../../../{rail.pci}"
        found[f"/sys/class/net/{rail.interface}/device/driver"] = f"../../../../bus/pci/drivers/{machine.driver}"
        if rail.device:
            kind = "cxi" if machine.link == "slingshot" else "infiniband"
            found[f"/sys/class/{kind}/{rail.device}/device"] = f"../../../{rail.pci}"
            found[f"/sys/class/{kind}/{rail.device}/device/iommu_group"] = "../../../../kernel/iommu_groups/0"
    return found


def _folders(machine: Machine) -> dict[str, list[str]]:
    kind = "cxi" if machine.link == "slingshot" else "infiniband"
    return {f"/sys/class/{kind}/{rail.device}/device/net": [rail.interface] for rail in machine.rails if rail.device}


def _outputs(machine: Machine) -> dict[str, str]:
    """Outputs of programs that the quick level asks."""
    named = [("eno1", "@{IP_MGMT}", 8, "@{MAC_MGMT}")]
    named += [(rail.interface, f"@{{IP{index}}}", 16, f"@{{MAC{index}}}") for index, rail in enumerate(machine.rails)]
    addresses: list[dict[str, Any]] = [
        {
            "ifindex": 2 + index,
            "ifname": nic,
            "flags": ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"],
            "mtu": machine.mtu if index else 1500,
            "operstate": "UP",
            "address": mac,
            "addr_info": [
                {"family": "inet", "local": address, "prefixlen": prefix, "scope": "global", "label": nic},
            ],
        }
        for index, (nic, address, prefix, mac) in enumerate(named)
    ]
    routes: list[dict[str, Any]] = [{"dst": "default", "gateway": "10.255.255.254", "dev": "eno1", "flags": []}]
    for index, (nic, address, _, _) in enumerate(named):
        network = "10.0.0.0/8" if index == 0 else f"172.{15 + index}.0.0/16"
        routes.append(
            {"dst": network, "dev": nic, "protocol": "kernel", "scope": "link", "prefsrc": address, "flags": []}
        )
        routes.append({"type": "local", "dst": address, "dev": nic, "table": "local", "scope": "host", "flags": []})
    rules = [
        {"priority": at, "src": "all", "table": name}
        for at, name in ((0, "local"), (32766, "main"), (32767, "default"))
    ]
    neighbour = {
        "dst": "10.255.255.254",
        "dev": "eno1",
        "lladdr": "00:00:5e:00:01:0a",
        "used": 1,
        "confirmed": 1,
        "updated": 4,
        "state": ["REACHABLE"],
    }
    said = {
        "ip-addr": json.dumps(addresses, separators=(",", ":")),
        "ip-route": json.dumps(routes, separators=(",", ":")),
        "ip-rule": json.dumps(rules, separators=(",", ":")),
        "ip-neigh": json.dumps([neighbour], separators=(",", ":")),
        "lldpcli": json.dumps({"lldp": [{"interface": _neighbours(machine)}]}, separators=(",", ":")),
        "chronyc": "C0A80001,10.255.0.1,3,1767594000.1,@{OFFSET},0.000001,0.00002,-1.2,0,0.1,0.0004,0.0008,64,Normal\n",
        "timedatectl": "NTP=yes\nNTPSynchronized=yes\n",
        "mpiexec": "mpiexec (OpenRTE) 4.1.6\n",
    }
    for index, rail in enumerate(machine.rails):
        fields = {"driver": machine.driver, "version": machine.driver_version, "firmware-version": machine.firmware}
        fields |= {"expansion-rom-version": "", "bus-info": machine.rails[index].pci, "supports-statistics": "yes"}
        said[f"ethtool-i/{rail.interface}"] = "".join(f"{key}: {text}\n" for key, text in fields.items())
        fec = "Supported/Configured FEC encodings: Auto RS\nActive FEC encoding: RS\n"
        said[f"ethtool-fec/{rail.interface}"] = f"FEC parameters for {rail.interface}:\n{fec}"
        if machine.link == "slingshot":
            said[f"cxi_rh/{rail.device}"] = "active\n"
    return said


def _neighbours(machine: Machine) -> list[dict[str, Any]]:
    """As `lldpcli -f json0 show neighbors` prints them: the management switch too."""
    seen = [("eno1", "mgmt-@{SWITCH0}", "@{PORT0}", "02:aa:00:00:00:01")]
    if machine.has_lldp:
        rails = enumerate(machine.rails)
        seen += [(rail.interface, f"@{{SWITCH{at}}}", f"@{{PORT{at}}}", f"@{{FAR{at}}}") for at, rail in rails]
    capability = [{"type": "Bridge", "enabled": True}, {"type": "Router", "enabled": True}]
    return [
        {
            "name": nic,
            "via": "LLDP",
            "rid": "1",
            "age": "8 days, 23:11:02",
            "chassis": [{"id": [{"type": "mac", "value": far}], "name": [{"value": switch}], "capability": capability}],
            "port": [{"id": [{"type": "ifname", "value": f"Ethernet{port}"}], "descr": [{"value": f"Ethernet{port}"}]}],
        }
        for nic, switch, port, far in seen
    ]


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

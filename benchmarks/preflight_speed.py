"""How long it takes to judge the snapshots of many hosts.

    python benchmarks/preflight_speed.py [--hosts 1000] [--lines 500] [--profile]

Half of the hosts have two Slingshot NICs, half two InfiniBand ones, as in the samples of the tests; with 128 CPUs, 8
GPUs, 250 PCI devices, LLDP neighbours, outputs of the programs that the quick level asks, and a kernel log of so many
lines. Every 100th host is sick. Reading the documents is timed apart from judging.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "preflight"))

from preflight_help import sample, sysroot

from fablint.fitness import Outcome
from fablint.preflight import Fleet, Host, judge
from fablint.snapshot.collecting import snapshot_of

NOW = 1767594000.0
CPUS, GPUS, DEVICES = 128, 8, 250
QUIET = (
    "pci 0000:{0:02x}:00.0: BAR 0 [mem 0x{0:08x}000-0x{0:08x}fff 64bit pref]: assigned",
    "nvme nvme0: {0}/0/0 default/read/poll queues",
    "systemd[1]: Started session-{0}.scope - Session of user.",
    "mlx5_core 0000:c1:00.0: firmware version: 28.41.{0}",
    "LNet: {0} Added LNI 10.150.0.1@o2ib [8/256/0/180]",
    "audit: type=1400 apparmor=STATUS operation=profile_load name=unconfined pid={0}",
)


def files_of(kind: str) -> dict[str, str]:
    """Files of one host, by path."""
    found = sysroot(f"{kind}-2rail-good")
    for rail, nic in enumerate(nics_of(kind)):
        at = f"/sys/class/net/{nic}"
        found |= {f"{at}/address": f"@MAC{rail}@", f"{at}/mtu": "9000", f"{at}/operstate": "up", f"{at}/carrier": "1"}
        found |= {f"{at}/type": "1" if kind == "cxi" else "32", f"{at}/carrier_changes": "2", f"{at}/speed": "200000"}
        for way in ("rx", "tx"):
            found |= {f"{at}/statistics/{way}_{name}": "7" for name in ("bytes", "packets", "errors", "dropped")}
        found |= {f"/sys/class/cxi/cxi{rail}/device/properties/{name}": f"@NID{rail}@" for name in ("nid", "nic_addr")}
        if kind != "cxi":
            found = {path: text for path, text in found.items() if "/cxi/" not in path}
            found[f"/sys/class/infiniband/mlx5_{rail}/node_guid"] = f"@GUID{rail}@"
    cpu = "/sys/devices/system/cpu"
    found |= {f"{cpu}/cpu{index}/cpufreq/scaling_governor": "performance" for index in range(CPUS)}
    found |= {f"{cpu}/cpu0/cpuidle/state{index}/latency": str(index) for index in range(3)}
    found |= {f"{cpu}/cpu0/cpuidle/state{index}/disable": "0" for index in range(3)}
    found |= {f"{cpu}/online": f"0-{CPUS - 1}", f"{cpu}/smt/active": "1", "/sys/devices/system/node/online": "0-7"}
    for index in range(DEVICES):
        at = f"/sys/bus/pci/devices/0000:{index:02x}:00.0"
        found |= {f"{at}/class": "0x030200" if index < GPUS else "0x060400", f"{at}/numa_node": "0"}
        found |= {f"{at}/current_link_width": "16", f"{at}/max_link_width": "16"}
        found |= {f"{at}/current_link_speed": "32.0 GT/s PCIe", f"{at}/max_link_speed": "32.0 GT/s PCIe"}
    found |= {f"/proc/driver/nvidia/gpus/0000:{index:02x}:00.0/information": "Model: H100" for index in range(GPUS)}
    for nic in ("hsn0", "hsn1", "ib0", "ib1", "all", "eno1"):
        at = f"/proc/sys/net/ipv4/conf/{nic}"
        found |= {f"{at}/rp_filter": "0", f"{at}/arp_ignore": "1", f"{at}/arp_announce": "2", f"{at}/arp_filter": "1"}
    neigh = "/proc/sys/net/ipv4/neigh/default"
    found |= {f"{neigh}/gc_thresh1": "32768", f"{neigh}/gc_thresh2": "65536", f"{neigh}/gc_thresh3": "131072"}
    found |= {
        "/proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  unlimited  unlimited  bytes",
        "/proc/meminfo": "MemTotal:  527000000 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB",
        "/proc/loadavg": "0.10 0.20 0.30 1/900 77",
        "/proc/uptime": "86400.10 900000.00",
        "/etc/os-release": 'PRETTY_NAME="SUSE Linux Enterprise Server 15 SP5"',
        "/sys/devices/virtual/dmi/id/product_name": f"Blade {kind}",
        "/sys/module/nvidia/version": "550.54.15",
    }
    return found


def nics_of(kind: str) -> tuple[str, str]:
    return ("hsn0", "hsn1") if kind == "cxi" else ("ib0", "ib1")


def network_of(kind: str) -> dict[str, str]:
    """Outputs of programs that ask for addresses, routes and neighbours. `@IP0@` and the like are each host's own."""
    nics = nics_of(kind)
    own = [{"local": f"@IP{rail}@", "prefixlen": 16, "family": "inet", "scope": "global"} for rail in (0, 1)]
    addresses = [{"ifname": nic, "mtu": 9000, "addr_info": [one]} for nic, one in zip(nics, own, strict=True)]
    routes, rules = [], json.loads(sample("host/ip-j-rule.json"))
    for rail, nic in enumerate(nics):
        route = {"dst": "10.253.0.0/16", "dev": nic, "scope": "link", "prefsrc": f"@IP{rail}@"}
        routes += [route, {**route, "table": f"rt_{nic}"}]
        rules.append({"priority": 1 + rail, "src": f"@IP{rail}@", "table": f"rt_{nic}"})
    heard = json.loads(sample("lldpcli-json0-two-ports.json"))
    for rail, one in enumerate(heard["lldp"][0]["interface"]):
        one["name"] = nics[rail]
        one["chassis"][0]["name"][0]["value"] = f"@SWITCH{rail}@"
        one["chassis"][0]["id"][0]["value"] = one["port"][0]["id"][0]["value"] = f"@FAR{rail}@"
        one["port"][0]["descr"][0]["value"] = f"Interface 26 as ros0p@PORT{rail}@"
    return {
        "ip-addr": json.dumps(addresses),
        "ip-rule": json.dumps(rules),
        "ip-route": json.dumps(routes),
        "ip-neigh": json.dumps([{"dst": "10.253.200.1", "dev": nics[0], "state": ["REACHABLE"]}]),
        "lldpcli": json.dumps(heard) if kind == "cxi" else "",
    }


def document(kind: str, lines: int) -> str:
    """The snapshot of a host as its collector would print it, with `@HOST@` and the like for what is its own."""
    tree: dict[str, Any] = {}
    for path, text in files_of(kind).items():
        *folders, name = path.strip("/").split("/")
        at = tree
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = text.strip()
    said = {
        **network_of(kind),
        "chronyc": "C0A80001,10.0.0.1,3,1767594000.1,-0.000012,0.000001,0.00002,-1.2,0.0,0.1,0.0004,0.0008,64.5,Normal",
        "mpiexec": "HYDRA build details:\n    Version:   4.2.1\n",
        **{f"ethtool-i/{nic}": sample("host/ethtool-i-veth.txt") for nic in nics_of(kind)},
    }
    log = "\n".join(f"<6>[{index:5d}.000001] {QUIET[index % len(QUIET)].format(index % 256)}" for index in range(lines))
    taken = {
        "fablint_snapshot": 1,
        "host": "@HOST@",
        "time": NOW,
        "window_s": 0.5,
        "kernel": "5.14.21-150500",
        "files": tree,
        "counters": {key: tree[key] for key in ("sys", "run") if key in tree},
        "later": {key: tree[key] for key in ("sys", "run") if key in tree},
        "commands": {name: {"output": text, "status": 0} for name, text in said.items()},
        "kernel_log": {"output": log},
        "shared_memory": {"size": 1 << 38, "free": 1 << 38},
        "names": {"of": {"@IP0@": "@HOST@", "@IP1@": "@HOST@"}, "to": {"@HOST@": ["@IP0@", "@IP1@"]}},
    }
    return json.dumps(taken)


def personal(template: str, index: int) -> dict[str, Any]:
    """The document of one host, with what only it has."""
    text = template.replace("@HOST@", f"nid{index:06d}")
    for rail in (0, 1):
        nid = 2 * index + rail
        octets = f"00:00:{nid >> 16:02x}:{nid >> 8 & 255:02x}:{nid & 255:02x}"
        own = {"IP": f"10.253.{nid >> 8}.{nid & 255}", "MAC": f"02:{octets}", "FAR": f"02:fe{octets[2:]}"}
        own |= {"NID": hex(nid), "PORT": str(nid & 63), "SWITCH": f"x1000c{nid >> 9}r{nid >> 6 & 7}b0"}
        own |= {"GUID": f"0002:c903:{nid >> 8:04x}:{nid & 255:04x}"}
        for key, value in own.items():
            text = text.replace(f"@{key}{rail}@", value)
    taken: dict[str, Any] = json.loads(text)
    return taken


def sick(taken: dict[str, Any]) -> None:
    """As a host that should not be measured."""
    taken["kernel_log"]["output"] += "\n" + sample("misc/dmesg-hardware.txt")
    taken["files"]["proc"]["loadavg"] = "400.00 1.00 1.00 1/900 77"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=500, help="of each kernel log")
    parser.add_argument("--profile", action="store_true", help="also tell where the time goes")
    given = parser.parse_args()
    templates = [document(kind, given.lines) for kind in ("cxi", "mlx5")]
    documents = [personal(templates[index % 2], index) for index in range(given.hosts)]
    for taken in documents[::100]:
        sick(taken)
    begun = time.perf_counter()
    hosts = [Host(snapshot_of(taken)) for taken in documents]
    read, busy = time.perf_counter(), time.process_time()
    profile = cProfile.Profile()
    if given.profile:
        profile.enable()
    fitness = judge(Fleet(hosts))
    profile.disable()
    judged, busy = time.perf_counter(), time.process_time() - busy
    found = Counter(one.outcome for one in fitness.results)
    counts = ", ".join(f"{found[outcome]:,} {outcome}" for outcome in Outcome)
    print(f"{given.hosts} hosts, {len(fitness.rules)} checks, {len(fitness.results):,} results: {counts}")
    print(f"unfit: {len(fitness.unfit)}")
    print(f"reading {read - begun:.2f} s, judging {judged - read:.2f} s ({busy:.2f} s of the CPU)")
    if given.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()

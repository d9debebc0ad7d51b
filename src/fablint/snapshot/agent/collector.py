# ruff: noqa: UP006, UP035
"""Take a snapshot of a host: files of /proc, /sys and /run, and outputs of programs. Nothing is judged here.

Runs on every host after machine.py as `python3 -I - LEVEL WINDOW AIM[:LIMIT] [SYSROOT [NIDS:NICS]]`: standard library
only, Python 3.6, without root, no files are written. It prints compressed JSON on lines that begin with `fablint:`.
Counters are read twice, WINDOW seconds apart. With another SYSROOT, for tests, the outputs of programs are files of its
folder `commands`. Programs may run until AIM seconds; files are read until all are read, at most for LIMIT seconds.
Then the collector prints what it has, and its last activity.
"""

import json
import os
import platform
import re
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Tuple

from fablint.snapshot.agent.journal import with_journal
from fablint.snapshot.agent.log_records import read_kernel_log
from fablint.snapshot.agent.loopback_tests import NO_ANSWER, load_gpus, load_rdma
from fablint.snapshot.agent.machine import MOST_LETTERS, Late, Machine, begin, put, say, stop, wait_for
from fablint.snapshot.agent.speed_probe import add_probe
from fablint.snapshot.agent.tuning import (
    TUNING_FOLDERS,
    fill_tuning,
    fill_tuning_counters,
    kept_of,
    text_without_secrets,
    tuning_commands,
)

LAST_S = 3.0  # at most, for the second reading
GRACE_S = 0.1  # to end after the time limit
MOST_ASKED = 16  # NICs for which programs are run
LOADS = "cxi_gpu_loopback_bw/"  # causes traffic: runs after everything else, one device at a time
FMN_HEALTH = "fmn-update-compute-hsn-health"
MOUNTS = "/proc/self/mountinfo"
SLOWEST = 0.7  # of the aim: time limit of a program

# ------------------------------------------------------------------------------------------------ files
# `{a,b}` and `*` have the meaning of a shell.

PCI = "{vendor,device,current_link_speed,current_link_width,max_link_speed,max_link_width,numa_node}"
FILES = (
    "/sys/class/net/*/{address,mtu,speed,operstate,carrier,type,flags,duplex,ifindex,phys_port_name}",
    "/sys/class/net/*/device/" + PCI,
    "/sys/class/net/*/bonding/{slaves,mode,mii_status,xmit_hash_policy,lacp_rate,miimon,ad_partner_mac,ad_num_ports}",
    "/sys/class/net/*/bonding_slave/{state,mii_status,ad_aggregator_id}",
    "/sys/class/infiniband/*/{fw_ver,board_id,hca_type,node_desc,node_guid,node_type}",
    "/sys/class/infiniband/*/ports/*/{state,phys_state,rate,link_layer,lid,sm_lid,sm_sl,cap_mask}",
    "/sys/class/infiniband/*/device/" + PCI,
    "/sys/class/cxi/*/device/port/{link,speed,link_layer_retry,loopback,pause,media}",
    "/sys/class/cxi/*/device/port/0/{link/state,link/speed,llr/state,link/config/loopback,link/config/pause_map}",
    "/sys/class/cxi/*/device/port/0/media/type",
    "/sys/class/cxi/*/device/properties/*",
    "/sys/class/cxi/*/device/{uc/version,fru/part_number,fru/description,fru/serial_number}",
    "/sys/class/cxi/*/device/link_restarts/time_*",
    "/sys/class/cxi/*/device/" + PCI,
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu0/cpuidle/state*/{name,latency,disable}",
    "/sys/devices/system/cpu/{online,smt/active}",
    "/sys/devices/system/node/{online,has_cpu}",
    "/sys/devices/virtual/dmi/id/{bios_version,product_name,product_serial,sys_vendor}",
    "/sys/kernel/iommu_groups/*/type",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/{mlx5_core,mlx4_core,hfi1,cxi_ss1,cxi_user,bnxt_re,irdma,nvidia,amdgpu,knem,xpmem}/version",
    "/proc/driver/nvidia/gpus/*/information",
    "/proc/sys/kernel/{osrelease,numa_balancing,hostname,dmesg_restrict,random/boot_id}",
    "/proc/sys/net/ipv4/conf/*/{rp_filter,arp_ignore,arp_announce,arp_filter,accept_local}",
    "/proc/sys/net/{ipv4,ipv6}/neigh/default/{gc_thresh1,gc_thresh2,gc_thresh3,gc_stale_time,base_reachable_time_ms}",
    "/proc/sys/net/core/{rmem_max,wmem_max,netdev_max_backlog}",
    "/proc/sys/net/ipv4/{tcp_rmem,tcp_wmem,tcp_congestion_control}",
    "/proc/{meminfo,uptime,loadavg}",
    "/proc/self/limits",
    "/sys/class/block/{dm-,md,nvme,sd,vd}*/dev",
    "/etc/{hostname,os-release,machine-id,resolv.conf}",
    # Last, since sleeping devices wake up:
    "/sys/bus/pci/devices/*/{class,vendor,device,current_link_speed,current_link_width,max_link_speed,max_link_width,numa_node}",
)
# Most GIDs of a port are empty and unreadable; the first are those of the interface, its bond and its VLANs.
GID_INTERFACES = "/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/{[0-9],1[0-5]}"
TELEMETRY = (
    "hni_pcs_{good,corrected,uncorrected}_cw",
    "hni_rx_bad_{opt,ieee}",
    "hni_tx_poisoned_{opt,ieee}",
    "hni_llr_{tx,rx}_replay_event",
    "hni_tx_stall_llr",
    "hni_discard_cntr_[0-7]",
    "hni_pfc_fifo_oflw_cntr_[0-7]",
    "hni_fgfc_discard",
    "hni_{rx,tx}_paused_[0-7]",
    "hni_{rx,tx}_ok_{opt,ieee}",
)
COUNTERS = (
    "/sys/class/net/*/{carrier_changes,carrier_down_count,carrier_up_count}",
    "/sys/class/net/*/statistics/{rx,tx}_{bytes,packets,errors,dropped}",
    "/sys/class/net/*/statistics/rx_{crc,frame,missed,over,fifo}_errors",
    "/sys/class/net/*/device/aer_dev_{correctable,nonfatal,fatal}",
    "/sys/class/infiniband/*/ports/*/{counters,hw_counters}/*",
    "/sys/class/infiniband/*/hw_counters/*",
    "/sys/class/infiniband/*/device/aer_dev_{correctable,nonfatal,fatal}",
    "/sys/class/cxi/*/device/aer_dev_{correctable,nonfatal,fatal}",
    *("/sys/class/cxi/*/device/telemetry/" + name for name in TELEMETRY),
    "/run/cxi/*/{nacks,nack_no_matching_conn,nack_sequence_error,parked_nids,connections_cancelled}",
    "/run/cxi/*/{sct_timeouts,spt_timeouts,spt_timeouts_o,spt_timeouts_u,tct_timeouts,pkts_cancelled_o,pkts_cancelled_u}",
    "/proc/net/{netstat,snmp}",
    "/proc/net/stat/arp_cache",
)
LINKS = (
    "/sys/class/net/*/device",
    "/sys/class/net/*/device/driver",
    "/sys/class/infiniband/*/device",
    "/sys/class/cxi/*/device",
    "/sys/class/{infiniband,cxi}/*/device/iommu_group",
    # with the bridges above each device in their targets
    "/sys/class/net/*",
    "/sys/class/{infiniband,cxi}/*",
    "/sys/bus/pci/drivers/{nvidia,amdgpu}/[0-9a-f]*",
)
FOLDERS = (
    "/sys/class/cxi/*/device/net",
    "/sys/class/infiniband/*/device/net",
    *TUNING_FOLDERS,
)  # whose entries are listed


def commands(
    level: str, nics: List[str], cxi: List[str], ports: List[str], managed: str = ""
) -> Iterator[Tuple[str, List[str]]]:
    """Yield name and argv of the programs to run.

    `managed` are the NIDs and the NICs that the fabric manager is queried about: `1001-1016:hsn0,hsn1`. None at level
    `counters`, which reads what a measurement may have changed.
    """
    if level == "counters":
        return
    if level == "fabric":
        yield "ibnetdiscover", ["ibnetdiscover"]
        yield "ibqueryerrors", ["ibqueryerrors"]
        yield "sminfo", ["sminfo"]
        yield "fmn-show-status", ["fmn-show-status"]
        nids, _, names = managed.partition(":")
        first, _, last = nids.partition("-")
        for nic in filter(None, names.split(",")):
            asked = ["--start-nid", first, "--end-nid", last or first, "-n", nic, "--skip-healthEventCreation"]
            yield FMN_HEALTH + "/" + nic, [FMN_HEALTH, *asked]
        return
    yield "ip-addr", ["ip", "-j", "addr"]
    yield "ip-rule", ["ip", "-j", "rule"]
    yield "ip-route", ["ip", "-j", "route", "show", "table", "all"]
    yield "ip-neigh", ["ip", "-j", "-s", "neigh"]  # with the age of entries
    yield "lldpcli", ["lldpcli", "-f", "json0", "show", "neighbors"]
    yield "chronyc", ["chronyc", "-c", "tracking"]
    yield "timedatectl", ["timedatectl", "show", "-p", "NTPSynchronized", "-p", "NTP"]
    yield "mpiexec", ["mpiexec", "--version"]
    for nic in nics:
        yield "lldptool/" + nic, ["lldptool", "-t", "-n", "-i", nic]
        yield "ethtool-i/" + nic, ["ethtool", "-i", nic]
        yield "ethtool-fec/" + nic, ["ethtool", "-I", "--show-fec", nic]
    for device in cxi:
        yield "cxi_rh/" + device, ["systemctl", "is-active", "cxi_rh@" + device]
    if any(port.startswith("hfi") for port in ports):
        yield "opainfo", ["opainfo"]
    if level == "full":
        yield from slow_commands(nics, cxi)


def slow_commands(nics: List[str], cxi: List[str]) -> Iterator[Tuple[str, List[str]]]:
    """Yield programs that take seconds or need root."""
    for nic in nics:
        yield "ethtool-m/" + nic, ["ethtool", "-m", nic]
        yield "ethtool-a/" + nic, ["ethtool", "-a", nic]
        later = 'sleep 4; exec ethtool -I --show-fec "$0"'  # totals: read twice for their growth
        yield "ethtool-fec-later/" + nic, ["sh", "-c", later, nic]
    yield "lspci", ["lspci", "-vvv"]
    yield "nvidia-smi-nvlink", ["nvidia-smi", "nvlink", "-s"]
    errors = "nvidia-smi nvlink -e"
    yield (
        "nvidia-smi-nvlink-errors",
        ["sh", "-c", errors + " && sleep 4 && " + errors],
    )  # totals: read twice for their growth
    yield "dcgmi", ["dcgmi", "diag", "-r", "1", "-j"]
    if cxi:
        yield "cxi_healthcheck", ["cxi_healthcheck"]
        yield "cxi_service", ["cxi_service", "list"]
    for nic in [nic for nic in nics if nic.startswith("hsn")]:
        yield "slingshot-diag/" + nic, ["slingshot-diag", "-i", nic]
    for device in cxi:
        yield "cxi_gpu_loopback_bw/" + device, ["cxi_gpu_loopback_bw", "-d", device]


# ------------------------------------------------------------------------------------------------ the snapshot


def empty(machine: Machine, level: str) -> Dict[str, Any]:
    """Return a snapshot without any files."""
    hostname = machine.read("/etc/hostname") if machine.root else socket.gethostname()
    return {
        "fablint_snapshot": 1,
        "host": hostname.partition("\n")[0] if isinstance(hostname, str) else "" if machine.root else "localhost",
        "time": time.time(),
        "window_s": 0.0,
        "level": level,
        "root": os.geteuid() == 0,
        "kernel": machine.read("/proc/sys/kernel/osrelease") if machine.root else platform.release(),
        "python": platform.python_version(),
        "files": {},
        "counters": {},
        "later": {},
        "links": {},
        "folders": {},
        "commands": {},
        "kernel_log": {"error": "was not read in time"},
        "names": {"of": {}, "to": {}},
        "shared_memory": {},
        "incomplete": "",
    }


def take(machine: Machine, level: str, window_s: float, taken: Dict[str, Any], managed: str, aim_s: float) -> None:
    """Fill a snapshot; slow parts run in threads. Raises Late."""
    begun = time.monotonic()
    last = begun + aim_s - min(aim_s / 6, LAST_S)  # time of the second reading of counters

    def ask(name: str, argv: List[str]) -> None:
        said = machine.ask(name, argv, min(SLOWEST * aim_s, last - time.monotonic()))
        taken["commands"][name] = fewer_neighbours(said) if name == "ip-neigh" else kept_of(name, said)

    def look_up() -> None:
        wait_for(beside[:1], last)  # `ip addr`
        said = taken["commands"].get("ip-addr", {}).get("output", "")
        machine.look_up(taken["names"], said, last - time.monotonic())

    def read_log() -> None:
        log = read_kernel_log(machine, last - time.monotonic())
        log = with_journal(machine, log, last - time.monotonic())
        taken["kernel_log"] = {key: text_without_secrets(text) for key, text in log.items()}

    cxi, ports = machine.names("/sys/class/cxi/*"), machine.names("/sys/class/infiniband/*")
    asked = list(commands(level, machine.nics[:MOST_ASKED], cxi, ports, managed))
    asked += tuning_commands(level, machine, machine.nics[:MOST_ASKED])
    taken["commands"].update((name, dict(NO_ANSWER)) for name, _ in asked)
    loads = [one for one in asked if one[0].startswith(LOADS)]
    beside = [begin(ask, name, argv) for name, argv in asked if (name, argv) not in loads]
    if level != "counters":
        beside += [begin(read_log)] + ([] if machine.root else [begin(look_up)])
    machine.fill(taken["counters"], COUNTERS)
    fill_tuning_counters(machine, taken["counters"])
    if level != "fabric":
        fill_files(machine, taken["files"])
    taken["links"].update(machine.links(LINKS))
    taken["folders"].update(machine.folders(FOLDERS))
    taken["shared_memory"].update(machine.shared_memory())
    wait_for(beside, last)
    for name, said in taken["commands"].items():
        if name.startswith(FMN_HEALTH):
            add_report(machine, said)
    time.sleep(max(0.0, min(begun + window_s, last) - time.monotonic()))
    taken["window_s"] = time.monotonic() - begun
    machine.fill(taken["later"], COUNTERS)
    fill_tuning_counters(machine, taken["later"])
    for name, argv in loads:
        taken["commands"][name] = machine.ask(name, argv, min(SLOWEST * aim_s, machine.left() - GRACE_S))
    if level == "full":
        load_rdma(machine, taken["commands"])
        load_gpus(machine, taken["commands"])
        add_probe(machine, taken["commands"])


def fill_files(machine: Machine, files: Dict[str, Any]) -> None:
    """Read the files of a host that are no counters."""
    machine.fill(files, FILES)
    machine.fill(files, [GID_INTERFACES], unreadable=False)
    fill_tuning(machine, files)
    add_root(machine, files)


def fewer_neighbours(said: Dict[str, Any]) -> Dict[str, Any]:
    """Reduce a long output of `ip -j neigh` to the fields of the checks, without permanent entries.

    On a large fabric each of ten thousand hosts has an entry for every other.
    """
    text = said.get("output", "")
    if len(text) <= MOST_LETTERS:
        return said
    try:
        entries = [one for one in json.loads(text) if "PERMANENT" not in one.get("state", ())]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return said
    kept = [{key: one[key] for key in ("dst", "dev", "lladdr", "state", "updated") if key in one} for one in entries]
    return dict(said, output=json.dumps(kept, separators=(",", ":")))


def add_root(machine: Machine, files: Dict[str, Any]) -> None:
    """Store the mount of the root file system only, since a host with containers has thousands of mounts."""
    mounts = machine.read(MOUNTS)
    root = re.search(r"^.* / / .*$", mounts, re.MULTILINE) if isinstance(mounts, str) else None
    if root is not None:
        put(files, MOUNTS, root.group())


def add_report(machine: Machine, said: Dict[str, Any]) -> None:
    """Append the report file that an output names, which contains the failures."""
    named = re.search(r"^Check result (/\S+)", said.get("output", ""), re.MULTILINE)
    report = machine.read(named.group(1)) if named else None
    if isinstance(report, str):
        said["output"] += "\n" + report


# ------------------------------------------------------------------------------------------------ as a program


def snapshot(
    level: str, window_s: float, limit_s: float, root: str, managed: str = "", aim_s: float = 0.0
) -> Dict[str, Any]:
    """Take a snapshot, as far as possible within the limit. The aim is the limit if it is 0."""
    machine = Machine(root, limit_s)
    taken = empty(machine, level)
    whole = threading.Event()

    def run() -> None:
        with suppress(Late):
            take(machine, level, window_s, taken, managed, aim_s or limit_s)
            whole.set()

    wait_for([begin(run)], machine.end + GRACE_S)
    if not whole.is_set():
        taken["incomplete"] = machine.doing
    stop()
    return taken


def main(argv: List[str]) -> None:
    """Print a snapshot; for the arguments see above."""
    level, window_s, (aim, _, limit) = argv[0], float(argv[1]), argv[2].partition(":")
    root, managed = (argv[3:] + ["/", ""][len(argv) - 3 :])[:2]
    say(snapshot(level, window_s, float(limit or aim), root, managed, float(aim)))
    os._exit(0)  # does not wait for threads in a driver or a name lookup


if __name__ == "__main__":
    main(sys.argv[1:])

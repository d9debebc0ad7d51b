# ruff: noqa: PTH115, PTH123, PTH207, PTH208, UP006, UP022, UP031, UP035
"""Takes a snapshot of a host: files of /proc, /sys and /run, and what programs print. Nothing is judged here.

Runs by itself on every host, as `python3 - LEVEL WINDOW LIMIT [SYSROOT] < collector.py`: standard library only,
Python 3.6, no root needed, nothing is written. It prints JSON, packed, on lines that begin with `fablint:`. Counters
are read twice, WINDOW seconds apart. Below another SYSROOT, for tests, the outputs of programs are files of its folder
`commands`.
"""

import base64
import glob
import itertools
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

LETTERS = 16384  # of a file
MOST_LETTERS = 400000  # of a program's output, and of the kernel log
LINE = 400  # letters: launchers break longer lines
SLOWEST_S = {"quick": 1.2, "full": 60.0, "fabric": 60.0}  # of a program

# ------------------------------------------------------------------------------------------------ what is read
# `{a,b}` and `*` as in a shell.

PCI = "{vendor,device,current_link_speed,current_link_width,max_link_speed,max_link_width,numa_node}"
FILES = (
    "/sys/class/net/*/{address,mtu,speed,operstate,carrier,type,flags,duplex,ifindex}",
    "/sys/class/net/*/device/" + PCI,
    "/sys/class/net/*/bonding/{slaves,mode,mii_status}",
    "/sys/class/infiniband/*/{fw_ver,board_id,hca_type,node_desc,node_guid,node_type}",
    "/sys/class/infiniband/*/ports/*/{state,phys_state,rate,link_layer,lid,sm_lid,sm_sl,cap_mask}",
    "/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/0",
    "/sys/class/infiniband/*/device/" + PCI,
    "/sys/class/cxi/*/device/port/{link,speed,link_layer_retry,loopback,pause,media}",
    "/sys/class/cxi/*/device/port/0/{link/state,link/speed,llr/state,link/config/loopback,link/config/pause_map}",
    "/sys/class/cxi/*/device/port/0/media/type",
    "/sys/class/cxi/*/device/properties/*",
    "/sys/class/cxi/*/device/{uc/version,fru/part_number,fru/description,fru/serial_number}",
    "/sys/class/cxi/*/device/link_restarts/time_*",
    "/sys/class/cxi/*/device/" + PCI,
    "/sys/bus/pci/devices/*/{class,current_link_speed,current_link_width,max_link_speed,max_link_width,numa_node}",
    "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu0/cpuidle/state*/{name,latency,disable}",
    "/sys/devices/system/cpu/{online,smt/active}",
    "/sys/devices/system/node/{online,has_cpu}",
    "/sys/devices/virtual/dmi/id/{bios_version,product_name,sys_vendor}",
    "/sys/kernel/iommu_groups/*/type",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/module/{mlx5_core,mlx4_core,hfi1,cxi_ss1,cxi_user,bnxt_re,irdma,nvidia,amdgpu,knem,xpmem}/version",
    "/proc/driver/nvidia/gpus/*/information",
    "/proc/sys/kernel/{osrelease,numa_balancing,hostname,dmesg_restrict,random/boot_id}",
    "/proc/sys/net/ipv4/conf/*/{rp_filter,arp_ignore,arp_announce,arp_filter,accept_local}",
    "/proc/sys/net/ipv4/neigh/default/{gc_thresh1,gc_thresh2,gc_thresh3,gc_stale_time,base_reachable_time_ms}",
    "/proc/{meminfo,cmdline,uptime,loadavg}",
    "/proc/self/limits",
    "/etc/{hostname,os-release}",
)
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
)
FOLDERS = ("/sys/class/cxi/*/device/net", "/sys/class/infiniband/*/device/net")  # whose names are wanted
VIRTUAL = ("lo", "veth", "docker", "virbr", "br-", "tap", "tun", "dummy", "ifb", "cni", "flannel", "cali")


def commands(level: str, nics: List[str], cxi: List[str], ports: List[str]) -> Iterator[Tuple[str, List[str]]]:
    """Name and argv of the programs to ask."""
    if level == "fabric":
        yield "ibnetdiscover", ["ibnetdiscover"]
        yield "ibqueryerrors", ["ibqueryerrors", "--counters"]
        yield "sminfo", ["sminfo"]
        yield "fmn-show-status", ["fmn-show-status"]
        return
    yield "ip-addr", ["ip", "-j", "addr"]
    yield "ip-rule", ["ip", "-j", "rule"]
    yield "ip-route", ["ip", "-j", "route", "show", "table", "all"]
    yield "ip-neigh", ["ip", "-j", "neigh"]
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
    """Those that take seconds, or need root."""
    for nic in nics:
        yield "ethtool-m/" + nic, ["ethtool", "-m", nic]
        yield "ethtool-a/" + nic, ["ethtool", "-a", nic]
    yield "lspci", ["lspci", "-vvv"]
    yield "nvidia-smi-nvlink", ["nvidia-smi", "nvlink", "-s"]
    yield "nvidia-smi-nvlink-errors", ["nvidia-smi", "nvlink", "-e"]
    yield "dcgmi", ["dcgmi", "diag", "-r", "1", "-j"]
    if cxi:
        yield "cxi_healthcheck", ["cxi_healthcheck"]
        yield "cxi_service", ["cxi_service", "list"]
    for nic in [nic for nic in nics if nic.startswith("hsn")]:
        yield "slingshot-diag/" + nic, ["slingshot-diag", "-i", nic]
    for device in cxi:
        yield "cxi_gpu_loopback_bw/" + device, ["cxi_gpu_loopback_bw", "-d", device]


# ------------------------------------------------------------------------------------------------ files


class Host:
    """The machine below `root`."""

    def __init__(self, root: str, limit_s: float) -> None:
        self.root = root.rstrip("/")
        self.end = time.monotonic() + limit_s

    def left(self) -> float:
        return self.end - time.monotonic()

    def find(self, pattern: str) -> List[str]:
        """Paths, without the root, that match."""
        found: List[str] = []
        for one in alternatives(pattern):
            found += glob.glob(glob.escape(self.root) + one)
        return sorted(path[len(self.root) :] for path in found)

    def read(self, path: str) -> Any:
        """A file's text, or a list with the reason why there is none."""
        try:
            with open(self.root + path, "rb") as stream:
                return stream.read(LETTERS).decode("utf-8", "replace").rstrip("\n")
        except (OSError, ValueError) as error:
            return [getattr(error, "strerror", None) or str(error)]

    def tree(self, patterns: Any) -> Dict[str, Any]:
        """Nested folders of what matches; the time may end it early."""
        found: Dict[str, Any] = {}
        for pattern in patterns:
            for path in self.find(pattern):
                if self.left() <= 0:
                    return found
                if not Path(self.root + path).is_dir():
                    put(found, path, self.read(path))
        return found


def alternatives(pattern: str) -> List[str]:
    """`a{b,c}` as `ab` and `ac`."""
    parts = re.split(r"\{([^{}]*)\}", pattern)
    options = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return ["".join(words) for words in itertools.product(*options)]


def put(tree: Dict[str, Any], path: str, value: Any) -> None:
    *folders, name = path.strip("/").split("/")
    for folder in folders:
        tree = tree.setdefault(folder, {})
        if not isinstance(tree, dict):
            return
    tree[name] = value


def links(host: Host) -> Dict[str, str]:
    """Where symbolic links point to."""
    found = {}
    for pattern in LINKS:
        for path in host.find(pattern):
            with suppress(OSError):  # a folder is no link
                found[path] = os.readlink(host.root + path)
    return found


def folders(host: Host) -> Dict[str, List[str]]:
    found = {}
    for pattern in FOLDERS:
        for path in host.find(pattern):
            with suppress(OSError):  # it may have gone
                found[path] = sorted(os.listdir(host.root + path))
    return found


# ------------------------------------------------------------------------------------------------ programs


def ask(host: Host, level: str, asked: List[Tuple[str, List[str]]]) -> Dict[str, Any]:
    """What the programs print, all asked at once."""
    if host.root:
        return {name: saved(host, name) for name, _ in asked}
    said: Dict[str, Any] = {name: {"error": "no answer in time"} for name, _ in asked}

    def one(name: str, argv: List[str]) -> None:
        said[name] = output(argv, min(host.left(), SLOWEST_S[level]))

    threads = [threading.Thread(target=one, args=pair, daemon=True) for pair in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, host.left()))
    return dict(said)


def saved(host: Host, name: str) -> Dict[str, Any]:
    """An output as a file of the folder `commands`."""
    text = host.read("/commands/" + name)
    return {"output": text, "status": 0} if isinstance(text, str) else {"error": "no such output below the sysroot"}


def output(argv: List[str], limit_s: float) -> Dict[str, Any]:
    """What a program prints, or why it prints nothing."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin"
    program = shutil.which(argv[0], path=path)
    if program is None:
        return {"error": "not installed"}
    if limit_s <= 0:
        return {"error": "no time left"}
    try:
        done = subprocess.run(
            [program] + argv[1:],  # noqa: RUF005
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return {"error": "no answer in time"}
    except OSError as error:
        return {"error": str(error.strerror)}
    said: Dict[str, Any] = {"status": done.returncode, "output": text_of(done.stdout)}
    if done.returncode:
        lines = (text_of(done.stderr) or said["output"]).strip().splitlines()
        said["error"] = lines[0][:200] if lines else "exit status %d" % done.returncode
    return said


def text_of(octets: bytes) -> str:
    return octets[:MOST_LETTERS].decode("utf-8", "replace")


# ------------------------------------------------------------------------------------------------ the rest


def kernel_log(host: Host) -> Dict[str, str]:
    """Records of the kernel since it was booted; `<PRIORITY>[SECONDS] text` each."""
    if host.root:
        text = host.read("/var/log/dmesg")
        return {"output": text} if isinstance(text, str) else {"error": text[0]}
    try:
        device = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        said = output(["dmesg", "--raw"], min(host.left(), 1.0))
        return {"output": said["output"]} if said.get("status") == 0 else {"error": str(error.strerror)}
    lines: List[str] = []
    try:
        while host.left() > 0:
            try:
                record = os.read(device, 8192).decode("utf-8", "replace")
            except BrokenPipeError:
                continue  # it was overwritten: the next is there
            except BlockingIOError:
                break
            head, _, text = record.partition(";")
            fields = head.split(",")
            priority, moment = int(fields[0]) & 7, int(fields[2]) / 1e6
            lines += ["<%d>[%12.6f] %s" % (priority, moment, text.partition("\n")[0])]
    except (OSError, ValueError, IndexError) as error:
        return {"error": str(error)}
    finally:
        os.close(device)
    return {"output": "\n".join(lines)[-MOST_LETTERS:]}


def names(host: Host, addresses: str) -> Dict[str, Any]:
    """What name each own address has, and what addresses these names have."""
    found: Dict[str, Any] = {"of": {}, "to": {}}
    if host.root:
        return found
    try:
        every = [one["local"] for nic in json.loads(addresses) for one in nic["addr_info"] if one["scope"] == "global"]
    except (ValueError, TypeError, KeyError):
        every = []

    def look(address: str) -> None:
        try:
            found["of"][address] = socket.gethostbyaddr(address)[0]
        except OSError as error:
            found["of"][address] = [error.strerror or str(error)]

    def resolve(name: str) -> None:
        try:
            found["to"][name] = sorted({str(one[4][0]) for one in socket.getaddrinfo(name, None)})
        except (OSError, UnicodeError) as error:
            found["to"][name] = [["%s" % getattr(error, "strerror", error)]]

    in_time(host, look, [address for address in every[:16] if ":" not in address])
    known = {name for name in found["of"].values() if isinstance(name, str)}
    in_time(host, resolve, sorted(known | {socket.gethostname()}))
    return {key: dict(value) for key, value in found.items()}


def in_time(host: Host, function: Any, arguments: List[str]) -> None:
    """Call it for each argument at once; who is late is left."""
    threads = [threading.Thread(target=function, args=(argument,), daemon=True) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, host.left()))


def space(host: Host) -> Dict[str, Any]:
    """Bytes of the shared memory file system."""
    try:
        found = os.statvfs(host.root + "/dev/shm")
    except OSError as error:
        return {"error": str(error.strerror)}
    return {"size": found.f_blocks * found.f_frsize, "free": found.f_bavail * found.f_frsize}


def snapshot(level: str, window_s: float, limit_s: float, root: str) -> Dict[str, Any]:
    host = Host(root, limit_s)
    begun, first = time.monotonic(), time.time()
    earlier = host.tree(COUNTERS)
    files = {} if level == "fabric" else host.tree(FILES)
    nics = [path.rsplit("/", 1)[1] for path in host.find("/sys/class/net/*")]
    nics = [nic for nic in nics if not nic.startswith(VIRTUAL) and "/" not in nic and nic != "bonding_masters"]
    cxi = [path.rsplit("/", 1)[1] for path in host.find("/sys/class/cxi/*")]
    ports = [path.rsplit("/", 1)[1] for path in host.find("/sys/class/infiniband/*")]
    said = ask(host, level, list(commands(level, nics, cxi, ports)))
    resolved = names(host, said.get("ip-addr", {}).get("output", ""))
    log = kernel_log(host)
    time.sleep(max(0.0, min(begun + window_s - time.monotonic(), host.left() - 0.2)))
    own = host.read("/etc/hostname") if host.root else socket.gethostname()
    return {
        "fablint_snapshot": 1,
        "host": own if isinstance(own, str) else "localhost",
        "time": first,
        "window_s": time.monotonic() - begun,
        "level": level,
        "root": os.geteuid() == 0,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "files": files,
        "counters": earlier,
        "later": host.tree(COUNTERS),
        "links": links(host),
        "folders": folders(host),
        "commands": said,
        "kernel_log": log,
        "names": resolved,
        "shared_memory": space(host),
    }


def main(argv: List[str]) -> None:
    level, window_s, limit_s = argv[0], float(argv[1]), float(argv[2])
    taken = snapshot(level, window_s, limit_s, argv[3] if len(argv) > 3 else "/")
    packed = zlib.compress(json.dumps(taken, sort_keys=True, separators=(",", ":")).encode(), 6)
    text = base64.b64encode(packed).decode()
    for start in range(0, len(text), LINE):
        print("fablint:" + text[start : start + LINE] + ".")
    sys.stdout.flush()
    os._exit(0)  # threads that wait for a program or a name server are left behind


if __name__ == "__main__":
    main(sys.argv[1:])

# ruff: noqa: B905, UP006, UP035
"""Loopback tests of RDMA devices, and of Slingshot NICs with GPU memory, one after the other.

Sent to every host between machine.py and collector.py, under the same rules. The first test of each device precedes the
second of any: where time is short, each device has a result. A test that would not end in time is not begun.
"""

import os
import re
from typing import Any, Dict, Iterator, List, Set, Tuple

from fablint.snapshot.agent.machine import Machine, output_of_client

NO_ANSWER = {"error": "no answer in time"}
NO_TIME = {"error": "there was no time left for it"}
RDMA_S = 10.0  # at most, for two seconds of traffic
KEPT_S = 6.0  # for what follows, after the first test of each device
RDMA_TESTS: Tuple[Tuple[str, List[str]], ...] = (  # name, options
    ("ib_write_bw", ["--report_gbits", "-D", "2"]),
    ("ib_read_bw", ["--report_gbits", "-D", "2"]),
    ("ib_write_lat", []),
    ("ib_read_lat", []),
)
GPU_S = 15.0  # at most, for two seconds of traffic; the start of the GPU's library takes seconds
GPU_TESTS = (("cxi_gpu_loopback_bw-tx", "--tx-gpu"), ("cxi_gpu_loopback_bw-rx", "--rx-gpu"))
GPU_CLASSES = ("0x0302", "0x0380", "0x1200")  # 3D and display controllers, processing accelerators


def load_rdma(machine: Machine, said: Dict[str, Any]) -> None:
    """Run the loopback tests on each RDMA device."""
    asked = list(loopbacks(machine))
    said.update((name, dict(NO_ANSWER)) for name, _, _ in asked)
    for name, device, argv in asked:
        kept_s = 0.0 if name.startswith(RDMA_TESTS[0][0]) else KEPT_S
        said[name] = in_time(machine, RDMA_S, kept_s) or loopback(machine, name, device, argv, machine.left())


def in_time(machine: Machine, longest_s: float, kept_s: float) -> Dict[str, Any]:
    """Return why a test is not begun; nothing if there is time for it."""
    return dict(NO_TIME) if kept_s and not machine.root and machine.left() < longest_s + kept_s else {}


def loopbacks(machine: Machine) -> Iterator[Tuple[str, str, List[str]]]:
    """Yield the tests of devices with an active port: name, device, and the argv of both ends."""
    words_of_device: Dict[str, List[str]] = {}
    for path in machine.find("/sys/class/infiniband/*/ports/*/state"):
        device, _, port = path.split("/")[4:7]
        is_fit = machine.read("/sys/class/infiniband/" + device + "/node_type") == "1: CA"  # not iWARP
        if device not in words_of_device and is_fit and machine.read(path) == "4: ACTIVE":
            words_of_device[device] = ["-d", device, "-i", port, "-F", *gid(machine, path[: -len("/state")])]
    for program, options in RDMA_TESTS:
        for device, words in words_of_device.items():
            yield program + "/" + device, device, [program, *words, *options]


def gid(machine: Machine, port: str) -> List[str]:
    """Return the option for a GID of RoCE v2 over IPv4, if any: perftest's default depends on its version."""
    for index in sorted(machine.names(port + "/gids/*"), key=lambda name: (len(name), name)):
        version, address = (machine.read(port + at + index) for at in ("/gid_attrs/types/", "/gids/"))
        if version == "RoCE v2" and ":0000:ffff:" in address:
            return ["-x", index]
    return []


def loopback(machine: Machine, name: str, device: str, argv: List[str], limit_s: float) -> Dict[str, Any]:
    """Run the test of a device on a CPU near to it."""
    if machine.root:
        return machine.ask(name, argv, limit_s)
    for path in machine.find("/sys/class/infiniband_verbs/uverbs*/ibdev"):
        special = "/dev/infiniband/" + path.split("/")[4]
        if machine.read(path) == device and not os.access(special, os.R_OK | os.W_OK):
            return {"error": "no access to " + special}
    usual = os.sched_getaffinity(0)
    near = numbers(str(machine.read("/sys/class/infiniband/" + device + "/device/local_cpulist")))
    os.sched_setaffinity(0, near & usual or usual)  # of this thread and the programs that it starts
    try:
        return output_of_client(argv, min(RDMA_S, limit_s))
    finally:
        os.sched_setaffinity(0, usual)


def numbers(text: str) -> Set[int]:
    """Parse a list of CPUs such as `0-3,8`."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return {number for first, last in ranges for number in range(int(first), int(last or first) + 1)}


# ------------------------------------------------------------------------------------------------ GPU memory


def load_gpus(machine: Machine, said: Dict[str, Any]) -> None:
    """Run the loopback test of each Slingshot NIC from, then into the memory of the GPU nearest to it."""
    gpus = gpus_of(machine)
    near = {device: nearest(machine, device, gpus) for device in machine.names("/sys/class/cxi/*")} if gpus else {}
    asked = [
        (name + "/" + device, ["cxi_gpu_loopback_bw", "-d", device, "-D", "2", option, str(gpus.index(gpu))])
        for name, option in GPU_TESTS
        for device, gpu in sorted(near.items())
    ]
    said.update((name, dict(NO_ANSWER)) for name, _ in asked)
    for name, argv in asked:
        said[name] = in_time(machine, GPU_S, KEPT_S) or machine.ask(name, argv, GPU_S)


def gpus_of(machine: Machine) -> List[str]:
    """Return the PCI addresses of the GPUs with a driver, in the order of the driver's numbers."""
    names = [name for name in machine.names("/sys/bus/pci/drivers/{nvidia,amdgpu}/[0-9a-f]*") if ":" in name]
    kinds = {name: machine.read("/sys/bus/pci/devices/" + name + "/class") for name in names}
    return sorted(name for name in names if isinstance(kinds[name], str) and kinds[name].startswith(GPU_CLASSES))


def nearest(machine: Machine, device: str, gpus: List[str]) -> str:
    """Return the GPU with the longest common path to a NIC on PCI Express, else on its NUMA node."""
    nic = machine.root + "/sys/class/cxi/" + device + "/device"

    def closeness(gpu: str) -> Tuple[int, bool]:
        folder = "/sys/bus/pci/devices/" + gpu
        here, there = (os.path.realpath(path).split("/") for path in (nic, machine.root + folder))
        node = machine.read(folder + "/numa_node")
        is_same_node = isinstance(node, str) and node == machine.read("/sys/class/cxi/" + device + "/device/numa_node")
        return common_parts(here, there), is_same_node

    return max(reversed(gpus), key=closeness)


def common_parts(here: List[str], there: List[str]) -> int:
    """Return the number of folders that two paths begin with."""
    return next((index for index, (a, b) in enumerate(zip(here, there)) if a != b), min(len(here), len(there)))

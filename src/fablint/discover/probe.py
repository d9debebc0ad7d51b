# ruff: noqa: UP006, UP022, UP031, UP035, PTH115
"""What a host knows about its network interfaces, as JSON on lines that begin with `fablint:`.

Runs by itself on every host, as `python3 - < probe.py`: standard library only, Python 3.6, two seconds at most,
nothing is written. `--sysroot FOLDER` reads another /sys, for tests.
"""

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

LONGEST_S = 2.0  # for everything; who is silent by then is left out
PROGRAM_S = 1.0
MOST_LETTERS = 200000  # of a program's output
LINE = 400  # letters: launchers break longer lines


class Host:
    """The machine below `root`."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.end = time.monotonic() + LONGEST_S

    def read(self, *parts: str) -> str:
        """A file of /sys; empty where there is none or the driver refuses."""
        try:
            with Path(self.root, "sys/class", *parts).open(errors="replace") as stream:
                return stream.read(4096).strip()
        except (OSError, ValueError):
            return ""

    def names(self, *parts: str) -> List[str]:
        try:
            return sorted(path.name for path in Path(self.root, "sys/class", *parts).iterdir())
        except OSError:
            return []

    def link(self, *parts: str) -> str:
        """Last part of what a link points to."""
        try:
            return Path(os.readlink(str(Path(self.root, "sys/class", *parts)))).name
        except OSError:
            return ""

    def is_virtual(self, name: str) -> bool:
        return not Path(self.root, "sys/class/net", name, "device").exists()

    def run(self, *argv: str) -> Dict[str, str]:
        """Output of a program, or why there is none."""
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        program = shutil.which(argv[0], path=path)
        if program is None:
            return {"error": "not installed"}
        left = min(self.end - time.monotonic(), PROGRAM_S)
        if left <= 0:
            return {"error": "no time left"}
        try:
            done = subprocess.run(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=left,
            )
        except subprocess.TimeoutExpired:
            return {"error": "no answer in time"}
        except OSError as error:
            return {"error": str(error.strerror)}
        output = done.stdout.decode("utf-8", "replace")[:MOST_LETTERS]
        if done.returncode == 0:
            return {"output": output}
        errors = (done.stderr.decode("utf-8", "replace") or output).strip().splitlines()
        return {"error": errors[0][:200] if errors else "exit status %d" % done.returncode}


def interfaces(host: Host) -> List[Dict[str, Any]]:
    """/sys/class/net without the loopback."""
    found = []
    addresses = ip_addresses(host)
    for name in host.names("net"):
        if host.read("net", name, "type") == "772":
            continue
        found.append(
            {
                "name": name,
                "mac": host.read("net", name, "address"),
                "mtu": number(host.read("net", name, "mtu")),
                "speed": number(host.read("net", name, "speed")),
                "operstate": host.read("net", name, "operstate"),
                "carrier": host.read("net", name, "carrier"),
                "type": host.read("net", name, "type"),
                "driver": host.link("net", name, "device", "driver"),
                "virtual": host.is_virtual(name),
                "addresses": addresses.get(name, []),
            }
        )
    return found


def number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return None


def ip_addresses(host: Host) -> Dict[str, List[str]]:
    """Interface: addresses with their prefix. In a test's sysroot there are none."""
    found: Dict[str, List[str]] = {}
    if host.root != "/":
        return found
    for line in host.run("ip", "-o", "addr", "show").get("output", "").splitlines():
        words = line.split()
        if len(words) > 3 and words[2] in ("inet", "inet6"):
            found.setdefault(words[1], []).append(words[3])
    return found


def infiniband(host: Host) -> List[Dict[str, Any]]:
    """Ports in /sys/class/infiniband."""
    found = []
    for device in host.names("infiniband"):
        for port in host.names("infiniband", device, "ports"):
            at = ("infiniband", device, "ports", port)
            fact = {"device": device, "port": port, "description": host.read("infiniband", device, "node_desc")}
            for key in ("state", "phys_state", "rate", "link_layer", "lid"):
                fact[key] = host.read(*at, key)
            found.append(fact)
    return found


def cxi(host: Host) -> List[Dict[str, Any]]:
    """Slingshot NICs in /sys/class/cxi."""
    found = []
    for device in host.names("cxi"):
        properties = ("cxi", device, "device", "properties")
        nets = host.names("cxi", device, "device", "net")
        found.append(
            {
                "device": device,
                "net": nets[0] if nets else "",
                "nid": host.read(*properties, "nid"),
                "link": host.read("cxi", device, "device", "port", "link"),
                "speed": host.read("cxi", device, "device", "port", "speed"),
            }
        )
    return found


def lldp(host: Host, nics: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Neighbours as lldpd tells them, else as lldpad does for each NIC."""
    said: Dict[str, Any] = {"lldpcli": shortened(host.run("lldpcli", "-f", "json0", "show", "neighbors"))}
    if '"interface"' in said["lldpcli"].get("output", ""):
        return said
    said["lldptool"] = {
        nic["name"]: host.run("lldptool", "-t", "-n", "-i", nic["name"])
        for nic in nics
        if shutil.which("lldptool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        and not nic["name"].startswith(("veth", "docker", "virbr", "br-"))
    }
    return said


def shortened(said: Dict[str, str]) -> Dict[str, str]:
    """JSON without the blanks; what is no JSON as it is."""
    try:
        return {"output": json.dumps(json.loads(said["output"]), separators=(",", ":"))}
    except (KeyError, ValueError):
        return said


def main(argv: List[str]) -> None:
    root = argv[argv.index("--sysroot") + 1] if "--sysroot" in argv[:-1] else "/"
    host = Host(root)
    nics = interfaces(host)
    answer = {
        "fablint_probe": 1,
        "host": socket.gethostname(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "nics": nics,
        "infiniband": infiniband(host),
        "cxi": cxi(host),
        "lldp": lldp(host, nics),
    }
    text = json.dumps(answer, sort_keys=True, separators=(",", ":"))
    for start in range(0, len(text), LINE):
        print("fablint:" + text[start : start + LINE] + ".")


if __name__ == "__main__":
    main(sys.argv[1:])

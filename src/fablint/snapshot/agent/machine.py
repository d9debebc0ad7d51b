# ruff: noqa: PTH112, PTH115, PTH123, PTH207, PTH208, UP006, UP031, UP035
"""Access to the examined machine: files, programs, names and addresses.

Sent to every host before collector.py: standard library only, Python 3.6, no files are written. Nothing on the machine
may stall this program: programs are ended, and threads in name lookups or drivers are abandoned.
"""

import base64
import errno
import glob
import itertools
import json
import os
import re
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import zlib
from contextlib import suppress
from typing import Any, Callable, Dict, Iterable, List

LETTERS = 16384  # characters of a file
MOST_LETTERS = 400000  # characters of a program's output
LARGE = {  # of outputs that grow with the fabric, uptime, containers, queues or GPUs
    "ibnetdiscover": 1 << 25,  # 100,000 cables, reported by both ends
    "ibqueryerrors": 1 << 24,
    "ip-neigh": 1 << 24,
    "dmesg": 1 << 26,
    "lspci": 1 << 22,
    "journalctl": 1 << 24,
    "ip-addr": 1 << 24,
    "ip-route": 1 << 24,
    "ethtool-S": 1 << 22,
    "ethtool-S-later": 1 << 22,
    "nvidia-smi-q": 1 << 22,
}
MOST_NICS = 32  # examined; a host with hundreds of containers has hundreds
MOST_ADDRESSES = 16  # whose names are looked up
VIRTUAL = ("veth", "docker", "virbr", "br-", "tap", "tun", "dummy", "ifb", "cni", "flannel", "cali")
LINE = 400  # characters: launchers break longer lines
RUNNING: List[Any] = []  # programs (Popen) that were started
_OF_NICS = re.compile(r"(/sys/class/net|/proc/sys/net/ipv4/conf)/\*")
_NIC = re.compile(r"[\w.@+-]+")


class Late(Exception):
    """The time limit was reached."""


class Machine:
    """The machine whose files are below `root`."""

    def __init__(self, root: str, limit_s: float) -> None:
        self.root = os.path.realpath(root).rstrip("/")
        self.end = time.monotonic() + limit_s
        self.doing = ""  # present activity, for the report of a timeout
        self.nics = self._nics()

    def left(self) -> float:
        """Return the seconds until the time limit."""
        return self.end - time.monotonic()

    # -------------------------------------------------------------------------------------------- files

    def _nics(self) -> List[str]:
        """Return network interfaces except loopback and those of containers, the most important first."""
        folder = self.root + "/sys/class/net"
        result: List[str] = []
        with suppress(OSError):
            result = [
                name for name in os.listdir(folder) if _NIC.fullmatch(name) and os.path.isdir(folder + "/" + name)
            ]
        result = [name for name in result if name != "lo" and not name.startswith(VIRTUAL)]
        result.sort(key=lambda name: (self._rank(folder + "/" + name), name))
        return result[:MOST_NICS]

    @staticmethod
    def _rank(folder: str) -> int:
        """Rank bonds and hardware interfaces first, then virtual functions, then all others."""
        if os.path.lexists(folder + "/device/physfn"):
            return 1
        return 0 if os.path.lexists(folder + "/device") or os.path.lexists(folder + "/bonding") else 2

    def find(self, pattern: str) -> List[str]:
        """Return matching paths without the root; `*` of interfaces stands for the examined ones."""
        self.doing = "looking for " + pattern
        named = _OF_NICS.sub(r"\1/{%s}" % ",".join(["all", "default", *self.nics]), pattern)
        result: List[str] = []
        for alternative in alternatives(named):
            result += glob.glob(glob.escape(self.root) + alternative)
        return sorted(path[len(self.root) :] for path in result if self._holds(path))

    def _holds(self, path: str) -> bool:
        """Tell whether a path is inside the root: links of a copied tree must not lead out of it."""
        return not self.root or os.path.realpath(path).startswith(self.root + "/")

    def read(self, path: str, most: int = LETTERS) -> Any:
        """Return the text of a regular file, or a list with the reason why there is none.

        A pipe is not waited for, and a device is not read: a tree may contain any.
        """
        if not self._holds(self.root + path):
            return ["leads out of the folder"]
        try:
            with open(os.open(self.root + path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    return ["is not a regular file"]
                return stream.read(most).decode("utf-8", "replace").rstrip("\n")
        except (OSError, ValueError) as error:
            return [getattr(error, "strerror", None) or str(error)]

    def fill(self, tree: Dict[str, Any], patterns: Iterable[str], unreadable: bool = True) -> None:
        """Put matching files into nested folders of `tree`; `unreadable`: also reasons. Raises Late."""
        for pattern in patterns:
            for path in self.find(pattern):
                if self.left() <= 0:
                    raise Late
                self.doing = "reading " + path
                text = None if os.path.isdir(self.root + path) else self.read(path)
                if isinstance(text, str) or (unreadable and text is not None):
                    put(tree, path, text)

    def links(self, patterns: Iterable[str]) -> Dict[str, str]:
        """Return the targets of the symbolic links that match shell patterns, by path; unreadable ones are left out."""
        result = {}
        for path in itertools.chain.from_iterable(map(self.find, patterns)):
            with suppress(OSError):  # not a link
                result[path] = os.readlink(self.root + path)
        return result

    def folders(self, patterns: Iterable[str]) -> Dict[str, List[str]]:
        """Return the entries of folders."""
        result = {}
        for path in itertools.chain.from_iterable(map(self.find, patterns)):
            with suppress(OSError):  # it may have been removed
                result[path] = sorted(os.listdir(self.root + path))
        return result

    def names(self, pattern: str) -> List[str]:
        """Return the last components of matching paths."""
        return [path.rsplit("/", 1)[1] for path in self.find(pattern)]

    def shared_memory(self) -> Dict[str, Any]:
        """Return size and free space of the shared memory file system in bytes."""
        if self.root:
            return {"error": "a tree of files has none"}
        try:
            result = os.statvfs("/dev/shm")
        except OSError as error:
            return {"error": str(error.strerror)}
        return {"size": result.f_blocks * result.f_frsize, "free": result.f_bavail * result.f_frsize}

    # -------------------------------------------------------------------------------------------- programs

    def ask(self, name: str, argv: List[str], limit_s: float) -> Dict[str, Any]:
        """Run a program and return its output or the reason of a failure; with a root, a file of `commands`."""
        most = LARGE.get(name.partition("/")[0], MOST_LETTERS)
        if self.root:
            text = self.read("/commands/" + name, most)
            return {"output": text, "status": 0} if isinstance(text, str) else {"error": "no such output in the tree"}
        return output(argv, min(limit_s, self.left()), most)

    # -------------------------------------------------------------------------------------------- names

    def look_up(self, result: Dict[str, Any], addresses: str, limit_s: float) -> None:
        """Put the name of each own address into `result`, and the addresses of these names."""
        try:
            nics = json.loads(addresses)
            usable = [one["local"] for nic in nics for one in nic["addr_info"] if one["scope"] == "global"]
        except (ValueError, TypeError, KeyError):
            usable = []
        names, there = result["of"], result["to"]

        def look(address: str) -> None:
            try:
                names[address] = socket.gethostbyaddr(address)[0]
            except OSError as error:
                names[address] = [error.strerror or str(error)]

        def resolve(name: str) -> None:
            try:
                there[name] = sorted({str(one[4][0]) for one in socket.getaddrinfo(name, None)})
            except (OSError, UnicodeError) as error:
                there[name] = [["%s" % getattr(error, "strerror", error)]]

        end = time.monotonic() + limit_s
        wait_for([begin(look, one) for one in usable[:MOST_ADDRESSES] if ":" not in one], end - limit_s / 2)
        names_of_hosts = {name for name in list(names.values()) if isinstance(name, str)}
        wait_for([begin(resolve, name) for name in sorted(names_of_hosts | {socket.gethostname()})], end)


def alternatives(pattern: str) -> List[str]:
    """Expand `a{b,c}` to `ab` and `ac`."""
    parts = re.split(r"\{([^{}]*)\}", pattern)
    options = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return ["".join(words) for words in itertools.product(*options)]


def put(tree: Dict[str, Any], path: str, value: Any) -> None:
    """Store a value in nested folders of `tree`."""
    *folders, name = path.strip("/").split("/")
    for folder in folders:
        tree = tree.setdefault(folder, {})
        if not isinstance(tree, dict):
            return
    tree[name] = value


def begin(function: Callable[..., None], *arguments: Any) -> threading.Thread:
    """Call a function in a daemon thread, which does not delay the end of the program."""
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def wait_for(threads: Iterable[threading.Thread], end: float) -> None:
    """Wait for threads until the time `end`."""
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))


def start(argv: List[str], before: Iterable[str] = ()) -> Any:
    """Start a program with the words `before` in front of its argv; return its Popen. Raises OSError."""
    path = ":".join(filter(None, [os.environ.get("PATH", ""), "/usr/sbin:/sbin:/usr/bin"]))
    program = shutil.which(argv[0], path=path)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "not installed")
    running = subprocess.Popen(
        [*before, program, *argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, LC_ALL="C", CUDA_DEVICE_ORDER="PCI_BUS_ID"),
        start_new_session=True,  # so that its children can be ended as well
    )
    RUNNING.append(running)
    return running


def output(argv: List[str], limit_s: float, most: int = MOST_LETTERS) -> Dict[str, Any]:
    """Run a program and return its output or the reason of a failure; at most `most` characters per stream."""
    try:
        running = start(argv)
    except OSError as error:
        return {"error": str(error.strerror)}
    return said_by(running, time.monotonic() + max(0.0, limit_s), most)


def output_of_client(argv: List[str], limit_s: float) -> Dict[str, Any]:
    """Run a server `argv -p PORT` and a client with the server's address; return the output of the client.

    If the server does not begin to listen, return its output.
    """
    limit_s = max(0.0, limit_s)
    end = time.monotonic() + limit_s
    port = free_port()
    words = [*argv, "-p", str(port)]
    ending = [
        "timeout",
        "-s",
        "KILL",
        "%d" % (limit_s + 2),
    ]  # servers wait without limit, even if this program is killed
    try:
        server = start(words, ending)
        while server.poll() is None and not listens(port) and time.monotonic() < end:
            time.sleep(0.02)
        if not listens(port):
            return said_by(server, end)
        said = said_by(start([*words, "127.0.0.1"], ending), end)
    except OSError as error:
        return {"error": str(error.strerror)}
    said_by(server, min(end, time.monotonic() + 1))
    return said


def free_port() -> int:
    """Return a free TCP port."""
    with socket.socket() as item:
        item.bind(("", 0))
        return int(item.getsockname()[1])


def listens(port: int) -> bool:
    """Tell whether a program listens on a TCP port, without connecting, since the server accepts one client."""
    result = ""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(table) as lines:
            result += lines.read()
    return re.search(r":%04X [0-9A-F]+:0000 0A " % port, result) is not None


def said_by(running: Any, end: float, most: int = MOST_LETTERS) -> Dict[str, Any]:
    """Return `status` and `output` of a program (a Popen with pipes); `error` where it failed.

    It is ended at the monotonic time `end`, or after `most` letters; then there is an `error` only.
    """
    said = {running.stdout: bytearray(), running.stderr: bytearray()}
    try:
        listen(said, end, most)
        if max(map(len, said.values())) > most:
            raise Late("it printed more than %d letters" % most)
        status = running.wait(max(0.0, end - time.monotonic()))
    except (Late, subprocess.TimeoutExpired) as error:
        kill(running)
        return {"error": str(error) if isinstance(error, Late) else "no answer in time"}
    finally:
        running.stdout.close()
        running.stderr.close()
    output, errors = (said[stream].decode("utf-8", "replace") for stream in (running.stdout, running.stderr))
    if not status:
        return {"status": status, "output": output}
    lines = (errors or output).strip().splitlines()
    return {"status": status, "output": output, "error": lines[0][:200] if lines else "exit status %d" % status}


def stop() -> None:
    """End all running programs."""
    for running in list(RUNNING):
        if running.poll() is None:
            kill(running)


def listen(said: Dict[Any, bytearray], end: float, most: int = MOST_LETTERS) -> None:
    """Read streams until all end, until the time `end`, or until one has more than `most` characters."""
    with selectors.DefaultSelector() as streams:
        for stream in said:
            streams.register(stream, selectors.EVENT_READ)
        while streams.get_map() and time.monotonic() < end and max(map(len, said.values())) <= most:
            for key, _ in streams.select(max(0.0, end - time.monotonic())):
                octets = os.read(key.fd, 1 << 16)
                said[key.fileobj] += octets
                if not octets:
                    streams.unregister(key.fileobj)


def kill(running: Any) -> None:
    """End a program (a Popen) and its children."""
    with suppress(OSError):  # no process is left
        os.killpg(running.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # a process in a driver does not end
        running.wait(0.1)


def say(document: Dict[str, Any]) -> None:
    """Print a compressed document on marked lines, so that it is found among other output."""
    packed = zlib.compress(json.dumps(document, sort_keys=True, separators=(",", ":")).encode(), 6)
    text = base64.b64encode(packed).decode()
    for start in range(0, len(text), LINE):
        print("fablint:" + text[start : start + LINE] + ".")
    sys.stdout.flush()

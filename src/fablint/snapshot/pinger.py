# ruff: noqa: UP006, UP031, UP035
"""Pings other hosts from this one, and says what came of it. Nothing is judged here.

Runs on every host at once, behind machine.py whose functions it uses: standard library only, Python 3.6, no root.
All hosts get the same table of hosts and the same offsets: in round k host i pings host i + offset k, so that nobody is
pinged by all at once. Each finds itself in the table. Frames are as large as the NIC's MTU and must not be broken up;
where none comes back it is tried again, beside frames that every network carries.
"""

import json
import os
import re
import socket
import threading
import time
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any, Dict, List, Tuple

from fablint.snapshot.machine import begin, output, say, stop, wait_for

HEADERS = 28  # bytes of IPv4 and ICMP
LARGEST = 65535
USUAL, SMALL = 1500, 84  # bytes of frames that are tried where one of full size does not come back
PROBE_S = 3.0  # of a peer that does not answer, at most
AT_ONCE = 32
HOPELESS = 8  # peers of a rail without any answer: no more are tried
NAMED = 16  # peers whose names are looked up

_TEXTS = (  # of what ping prints, in capitals or not
    ("message too long", "too long"),
    ("frag needed", "mtu"),
    ("network is unreachable", "no route"),
    ("net unreachable", "no route"),
    ("no route to host", "no route"),
    ("host unreachable", "unreachable"),
)


def understood(said: Dict[str, Any]) -> Dict[str, Any]:
    """What ping's output means: `kind` is empty where an answer came, else why none did."""
    text = "%s\n%s" % (said.get("output", ""), said.get("error", ""))
    came = re.search(r"(\d+)(?: packets)? received", text)
    fastest = re.search(r"= ([\d.]+)/", text)
    if came and int(came.group(1)) > 0:
        return {"kind": "", "rtt_us": round(float(fastest.group(1)) * 1000) if fastest else None}
    for words, kind in _TEXTS:
        found = next((line for line in text.splitlines() if words in line.lower()), None)
        if found:
            return {"kind": kind, "text": found.strip()[:120]}
    if came or said.get("error") == "no answer in time":
        return {"kind": "no answer", "text": ""}
    return {"kind": "not run", "text": str(said.get("error", ""))[:120]}


def ping(own: str, peer: str, frame: int) -> Dict[str, Any]:
    """Three frames of so many bytes, 0.2 s apart: as fast as those who are not root may."""
    size = str(min(frame, LARGEST) - HEADERS)
    words = ["ping", "-n", "-M", "do", "-s", size, "-c", "3", "-i", "0.2", "-W", "1", "-I", own, peer]
    return understood(output(words, PROBE_S))


def probe(own: str, peer: str, mtu: int) -> Dict[str, Any]:
    """What comes of frames of full size; where none is answered: `passes`, the largest size that is."""
    first = ping(own, peer, mtu)
    if first["kind"] in ("", "not run"):
        return first
    again: Dict[int, Dict[str, Any]] = {}

    def once_more(size: int) -> None:
        again[size] = ping(own, peer, size)

    sizes = {size for size in (mtu, USUAL, SMALL) if size <= mtu}
    wait_for([begin(once_more, size) for size in sizes], time.monotonic() + PROBE_S)
    last = again.get(mtu, first)
    passes = max((size for size, one in again.items() if size < mtu and not one["kind"]), default=0)
    if last["kind"] and passes:
        return {"kind": "mtu" if last["kind"] == "no answer" else last["kind"], "text": last["text"], "passes": passes}
    return last


class Task:
    """What this host has to do."""

    def __init__(self, table: List[Dict[str, Any]], offsets: List[int], limit_s: float) -> None:
        self.end = time.monotonic() + limit_s
        self.jobs = list(pairs(table, place(table), offsets))
        self.waiting = list(reversed(self.jobs))
        self.tried: Dict[str, List[bool]] = {}
        self.pings: List[List[Any]] = []
        self.names: List[List[Any]] = []
        self.lock = threading.Lock()

    def run(self) -> None:
        """Ping, many at once, and look up names meanwhile."""
        lookups = list(dict.fromkeys((peer, address) for peer, _, _, address, _ in self.jobs))[:NAMED]
        work = [begin(self.work) for _ in range(AT_ONCE)]
        wait_for(work + [begin(self.look_up, *one) for one in lookups], self.end)

    def work(self) -> None:
        while True:
            with self.lock:
                if not self.waiting or self.end - time.monotonic() < PROBE_S:
                    return
                peer, rail, own, address, mtu = self.waiting.pop()
                before = self.tried.setdefault(rail, [])
                if len(before) >= HOPELESS and not any(before):
                    continue
            one = probe(own, address, mtu)
            with self.lock:
                before.append(not one["kind"])
                self.pings.append(
                    [peer, rail, one["kind"], one.get("rtt_us"), one.get("passes", 0), one.get("text", "")]
                )

    def look_up(self, peer: str, address: str) -> None:
        """Which name an address has, and whether the name has the address."""
        name = ""
        found: List[str] = []
        with suppress(OSError, UnicodeError):
            name = socket.gethostbyaddr(address)[0]
        if name:
            with suppress(OSError, UnicodeError):
                found = sorted({str(one[4][0]) for one in socket.getaddrinfo(name, None, socket.AF_INET)})
        self.names.append([peer, address, name, found[:8]])

    def neighbours(self) -> List[Dict[str, Any]]:
        """Whom the kernel takes those that were pinged for, as `ip` prints it."""
        pinged = {address for _, _, _, address, _ in self.jobs}
        try:
            return [
                one for one in json.loads(output(["ip", "-j", "-s", "neigh"], 2.0)["output"]) if one["dst"] in pinged
            ]
        except (ValueError, KeyError, TypeError):
            return []


def place(table: List[Dict[str, Any]]) -> int:
    """Which row is this host? The one with its name; where several have it, or none, the one with its addresses."""
    named = [index for index, row in enumerate(table) if row["own"] == socket.gethostname()]
    if len(named) == 1:
        return named[0]
    some = named or range(len(table))
    mine = [index for index in some if any(is_mine(nic[0]) for nic in table[index]["rails"].values())]
    if len(mine) != 1:
        raise ValueError("it cannot find itself among the hosts, by name or by address")
    return mine[0]


def is_mine(address: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.bind((address, 0))
        except OSError:
            return False
    return True


def pairs(table: List[Dict[str, Any]], me: int, offsets: List[int]) -> List[Tuple[str, str, str, str, int]]:
    """Round by round: the peer, the rail, its own address and the peer's, and the MTU of both."""
    found = []
    for offset in offsets:
        peer = table[(me + offset) % len(table)]
        for rail, (own, mtu) in sorted(table[me]["rails"].items()):
            if rail in peer["rails"] and peer is not table[me]:
                address, most = peer["rails"][rail]
                sure = [str(IPv4Address(one)) for one in (own, address)]
                found.append((peer["host"], rail, sure[0], sure[1], min(int(mtu), int(most))))
    return found


def reach(asked: Dict[str, Any]) -> Dict[str, Any]:
    """All that this host has to say."""
    try:
        task = Task(asked["hosts"], asked["offsets"], asked["limit_s"])
    except ValueError as error:
        return {"fablint_reach": 1, "error": str(error)}
    task.run()
    with task.lock:
        return {
            "fablint_reach": 1,
            "pings": sorted(task.pings, key=lambda one: one[:2]),
            "untried": len(task.jobs) - len(task.pings),
            "names": sorted(task.names),
            "neighbours": task.neighbours(),
        }


def main(asked: Dict[str, Any]) -> None:
    say(reach(asked))
    stop()
    os._exit(0)  # threads that wait for a name server are left behind

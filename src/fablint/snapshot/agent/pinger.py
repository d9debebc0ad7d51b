# ruff: noqa: UP006, UP031, UP035
"""Pings other hosts from this one, and says what came of it. Nothing is judged here.

Runs on every host at once, behind machine.py whose functions it uses: standard library only, Python 3.6, no root.
All hosts get the same table of hosts and the same offsets: in round k host i pings host i + offset k, so that nobody is
pinged by all at once. Each finds itself in the table. Frames are as large as the NIC's MTU and must not be broken up;
where none comes back it is tried again, beside frames that every network carries. How many were sent and how many
answers came is counted; where some are lost more are sent, so that a share can be told from chance.
"""

import json
import os
import re
import socket
import threading
import time
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any, Callable, Dict, List, Tuple

from fablint.snapshot.agent.machine import begin, output, say, stop, wait_for

HEADERS = 28  # bytes of IPv4 and ICMP
LARGEST = 65535
USUAL, SMALL = 1500, 84  # bytes of frames that are tried where one of full size does not come back
GAP_S = 0.2  # between pings: as fast as those who are not root may
SLACK_S = 2.6  # that ping may take beside: it waits 1 s for the last answer, and hosts have other work
FIRST, MORE = 3, 9  # pings of the first try, and where some of them are lost
AT_ONCE = 32
MORE_PEERS = 16  # of a rail on which something is lost, that are pinged once more
CHANCE = 1e-3  # that loss alone explains why all long frames are lost, and short ones are not
HOPELESS = 8  # peers of a rail without any answer: no more are tried
NAMED = 16  # peers whose names are looked up

Job = Tuple[str, str, str, str, int]  # peer, rail, own address, its address, bytes of frames

_TEXTS = (  # of what ping prints, in capitals or not
    ("message too long", "too long"),
    ("frag needed", "mtu"),
    ("network is unreachable", "no route"),
    ("net unreachable", "no route"),
    ("no route to host", "no route"),
    ("host unreachable", "unreachable"),
)


def understood(said: Dict[str, Any]) -> Dict[str, Any]:
    """What ping's output means: `kind` is empty where an answer came, else why none did; pings `sent`, `received`."""
    text = "%s\n%s" % (said.get("output", ""), said.get("error", ""))
    counts = re.search(r"(\d+) packets transmitted, (\d+)(?: packets)? received", text)
    sent, received = (int(counts.group(1)), int(counts.group(2))) if counts else (0, 0)
    found = {"kind": "", "rtt_us": None, "text": "", "sent": sent, "received": min(sent, received)}
    if received > 0:
        fastest = re.search(r"= ([\d.]+)/", text)
        return dict(found, rtt_us=round(float(fastest.group(1)) * 1000) if fastest else None)
    for words, kind in _TEXTS:
        line = next((line for line in text.splitlines() if words in line.lower()), None)
        if line:
            return dict(found, kind=kind, text=line.strip()[:120])
    if counts or said.get("error") == "no answer in time":
        return dict(found, kind="no answer")
    return dict(found, kind="not run", text=str(said.get("error", ""))[:120])


def ping(own: str, peer: str, frame: int, count: int = FIRST) -> Dict[str, Any]:
    """What comes of so many frames of so many bytes."""
    size = str(min(frame, LARGEST) - HEADERS)
    words = ["ping", "-n", "-M", "do", "-s", size, "-c", str(count), "-i", str(GAP_S), "-W", "1", "-I", own, peer]
    return understood(output(words, duration(count)))


def duration(count: int) -> float:
    """Seconds that so many pings take at most."""
    return (count - 1) * GAP_S + SLACK_S


def fitting(count: int, end: float) -> int:
    """How many of so many pings can be sent so that their answers are there at the end."""
    return max(0, min(count, int((end - time.monotonic() - SLACK_S) / GAP_S) + 1))


def added(one: Dict[str, Any], more: Dict[str, Any]) -> Dict[str, Any]:
    """Two results of frames of one size as one; the kind is that of the last where none was answered."""
    times = [result["rtt_us"] for result in (one, more) if result["rtt_us"] is not None]
    sums = {key: one[key] + more[key] for key in ("sent", "received")}
    worst = {"kind": "", "text": ""} if sums["received"] else {"kind": more["kind"], "text": more["text"]}
    return dict(one, rtt_us=min(times) if times else None, **sums, **worst)


def again(own: str, peer: str, mtu: int, first: Dict[str, Any], end: float) -> Dict[str, Any]:
    """What comes of a peer that answered no frame of full size: they are sent again, beside smaller ones.

    `passes` is the largest size that is answered where full size is not, though more than chance could lose were sent.
    """
    count = fitting(MORE, end)
    if not count:
        return first
    found: Dict[int, Dict[str, Any]] = {}

    def once_more(size: int) -> None:
        found[size] = ping(own, peer, size, count)

    sizes = {size for size in (mtu, USUAL, SMALL) if size <= mtu}
    wait_for([begin(once_more, size) for size in sizes], time.monotonic() + duration(count))
    full = added(first, found[mtu]) if mtu in found else first
    small = [(size, one) for size, one in found.items() if size < mtu and one["received"]]
    if not full["kind"] or not small:
        return full
    passes, best = max(small, key=lambda pair: pair[0])
    if full["kind"] in ("mtu", "too long"):  # said, not concluded
        return dict(full, passes=passes)
    lost = (best["sent"] - best["received"] + 1.0) / (best["sent"] + 2.0)
    if lost ** full["sent"] < CHANCE:
        return dict(full, kind="mtu", passes=passes)
    every = added(full, small[0][1]) if len(small) == 1 else added(added(full, small[0][1]), small[1][1])
    return dict(every, rtt_us=None)


class Task:
    """What this host has to do."""

    def __init__(self, table: List[Dict[str, Any]], offsets: List[int], count: int, limit_s: float) -> None:
        self.end = time.monotonic() + limit_s
        self.count = count
        self.jobs = list(pairs(table, place(table), offsets))
        self.tried: Dict[str, List[bool]] = {}
        self.pings: Dict[Tuple[str, str], Dict[str, Any]] = {}
        self.names: List[List[Any]] = []
        self.lock = threading.Lock()

    def run(self) -> None:
        """Ping, many at once, and look up names meanwhile; then once more where something was lost."""
        peers = list(dict.fromkeys((job[0], job[3]) for job in self.jobs))
        lookups = [begin(self.look_up, *one) for one in peers[:NAMED]]
        self.each(self.first, self.jobs)
        self.each(self.more, self.doubtful())
        wait_for(lookups, self.end)

    def each(self, function: Callable[[Job], None], jobs: List[Job]) -> None:
        """Call it with every job, as far as there is time."""
        waiting = list(reversed(jobs))

        def work() -> None:
            while True:
                with self.lock:
                    if not waiting or not fitting(1, self.end):
                        return
                    job = waiting.pop()
                function(job)

        wait_for([begin(work) for _ in range(min(AT_ONCE, len(jobs)))], self.end)

    def first(self, job: Job) -> None:
        """Ping a peer; what is known of it is there from the first answer on, should time be up."""
        _, rail, own, address, mtu = job
        with self.lock:
            before = self.tried.setdefault(rail, [])
            if len(before) >= HOPELESS and not any(before):
                return
        one = ping(own, address, mtu)
        self.keep(job, one)
        if one["kind"] not in ("", "not run"):
            one = again(own, address, mtu, one, self.end)
        elif not one["kind"]:
            one = self.longer(job, one, self.count - FIRST)
        self.keep(job, one)
        with self.lock:
            before.append(not one["kind"])

    def more(self, job: Job) -> None:
        with self.lock:
            one = self.pings[job[:2]]
        self.keep(job, self.longer(job, one, MORE))

    def longer(self, job: Job, one: Dict[str, Any], count: int) -> Dict[str, Any]:
        """A result with so many more pings, as far as there is time for them."""
        _, _, own, address, mtu = job
        fit = fitting(count, self.end)
        return added(one, ping(own, address, mtu, fit)) if fit > 0 else one

    def keep(self, job: Job, one: Dict[str, Any]) -> None:
        with self.lock:
            self.pings[job[:2]] = one

    def doubtful(self) -> List[Job]:
        """Peers of rails on which some pings are lost: those first that lost some, of all that answer."""
        with self.lock:
            known = {key: one["sent"] - one["received"] for key, one in self.pings.items() if not one["kind"]}
            sent = {key: one["sent"] for key, one in self.pings.items()}
        rails = {key[1] for key, lost in known.items() if lost}
        found: List[Job] = []
        for rail in sorted(rails):
            jobs = [job for job in self.jobs if job[1] == rail and job[:2] in known]
            jobs.sort(key=lambda job: -known[job[:2]])
            found += [job for job in jobs[:MORE_PEERS] if sent[job[:2]] < FIRST + MORE]
        return found

    def rows(self) -> List[List[Any]]:
        """What came of all pings: peer, rail, kind, shortest time in us, size that passes, text, sent, received."""
        with self.lock:
            return [
                [*key, one["kind"], one["rtt_us"], one.get("passes", 0), one["text"], one["sent"], one["received"]]
                for key, one in sorted(self.pings.items())
            ]

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


def pairs(table: List[Dict[str, Any]], me: int, offsets: List[int]) -> List[Job]:
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
        task = Task(asked["hosts"], asked["offsets"], asked["count"], asked["limit_s"])
    except ValueError as error:
        return {"fablint_reach": 1, "error": str(error)}
    task.run()
    rows = task.rows()
    return {
        "fablint_reach": 1,
        "pings": rows,
        "untried": len(task.jobs) - len(rows),
        "names": sorted(task.names),
        "neighbours": task.neighbours(),
    }


def main(asked: Dict[str, Any]) -> None:
    say(reach(asked))
    stop()
    os._exit(0)  # threads that wait for a name server are left behind

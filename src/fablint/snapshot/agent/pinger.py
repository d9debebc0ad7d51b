# ruff: noqa: UP006, UP031, UP035
"""Ping other hosts from this host and report the results. Nothing is judged here.

Runs on all hosts at once, after machine.py: standard library only, Python 3.6, without root. All hosts get the same
table of hosts and the same offsets: in round k host i pings host i + offset k, so that no host is pinged by all at
once. Each host finds its own row of the table. Frames have the size of the NIC's MTU and are not fragmented; without
an answer the ping is repeated, together with smaller frames that every network carries. Sent and answered pings are
counted. After losses the program runs a second time, for the pairs of the ends with losses.
"""

import json
import os
import re
import socket
import threading
import time
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from fablint.snapshot.agent.machine import begin, output, say, stop, wait_for

HEADERS, HEADERS_6 = 28, 48  # bytes of IPv4 and ICMP, of IPv6 and ICMPv6
LARGEST = 65535
USUAL, SMALL = 1500, 84  # bytes of frames that are tried after a failed full-size frame
GAP_S = 0.2  # between pings: the minimum without root
SLACK_S = 2.6  # additional time of ping: it waits 1 s for the last answer, and hosts may be busy
FIRST, MORE = 3, 9  # pings of the first attempt, and without an answer to it
AT_ONCE = 32
CHANCE = 1e-3  # probability below which loss does not explain that only long frames fail
HOPELESS = 8  # peers of a rail without an answer, after which no more are tried
NAMED = 16  # peers with a name lookup

Job = Tuple[str, str, str, str, int]  # peer, rail, own address, its address, bytes of frames

_TEXTS = (  # of what ping prints, in capitals or not
    ("message too long", "too long"),
    ("frag needed", "mtu"),
    ("packet too big", "mtu"),
    ("network is unreachable", "no route"),
    ("net unreachable", "no route"),
    ("no route", "no route"),
    ("address unreachable", "unreachable"),
    ("host unreachable", "unreachable"),
)


def understood(said: Dict[str, Any]) -> Dict[str, Any]:
    """Parse the output of ping: `kind` is '' after an answer, else the reason; pings `sent` and `received`.

    The last of several pings is not counted if others were answered: ping ends two round trips after it, before a busy
    host reads the answer. An answer to it is not counted either, since the share of lost pings would be too low.
    """
    text = "%s\n%s" % (said.get("output", ""), said.get("error", ""))
    counts = re.search(r"(\d+) packets transmitted, (\d+)(?: packets)? received", text)
    sent, received = (int(counts.group(1)), int(counts.group(2))) if counts else (0, 0)
    answered = {int(number) for number in re.findall(r" bytes from [^\n]*icmp_seq=(\d+)", text)}
    is_answered = received > 0
    if answered and sent > 1:
        sent, received = sent - 1, received - (sent in answered)
    result = {"kind": "", "rtt_us": None, "text": "", "sent": sent, "received": min(sent, received)}
    if is_answered:
        fastest = re.search(r"= ([\d.]+)/", text)
        return dict(result, rtt_us=round(float(fastest.group(1)) * 1000) if fastest else None)
    for words, kind in _TEXTS:
        line = next((line for line in text.splitlines() if words in line.lower()), None)
        if line:
            return dict(result, kind=kind, text=line.strip()[:120])
    if counts or said.get("error") == "no answer in time":
        return dict(result, kind="no answer")
    return dict(result, kind="not run", text=str(said.get("error", ""))[:120])


def ping(source: str, peer: str, frame: int, count: int = FIRST) -> Dict[str, Any]:
    """Send `count` pings with frames of `frame` bytes from address `source` to address `peer`.

    Returns the numbers `sent` and `received`, the shortest round trip `rtt_us` (None without an answer), and `kind` and
    `text` of an error, '' without one.
    """
    size = str(min(frame, LARGEST) - (HEADERS_6 if ":" in source else HEADERS))
    words = ["ping", "-n", "-M", "do", "-s", size, "-c", str(count), "-i", str(GAP_S), "-W", "1", "-I", source, peer]
    return understood(output(words, duration(count)))


def duration(count: int) -> float:
    """Return the maximum duration of a number of pings in seconds."""
    return (count - 1) * GAP_S + SLACK_S


def fitting(count: int, end: float) -> int:
    """Return how many of `count` pings can be sent and answered until the time `end`."""
    return max(0, min(count, int((end - time.monotonic() - SLACK_S) / GAP_S) + 1))


def added(item: Dict[str, Any], more: Dict[str, Any]) -> Dict[str, Any]:
    """Merge two results of one frame size; without an answer the kind is that of the second."""
    times = [result["rtt_us"] for result in (item, more) if result["rtt_us"] is not None]
    sums = {key: item[key] + more[key] for key in ("sent", "received")}
    is_answered = not item["kind"] or not more["kind"]
    worst = {"kind": "", "text": ""} if is_answered else {"kind": more["kind"], "text": more["text"]}
    return dict(item, rtt_us=min(times) if times else None, **sums, **worst)


def again(source: str, peer: str, mtu: int, first: Dict[str, Any], end: float) -> Dict[str, Any]:
    """Repeat the pings of a peer without an answer to full-size frames, together with smaller frames.

    `passes` is the largest answered size, if loss cannot explain the missing answers to full-size frames.
    """
    count = fitting(MORE, end)
    if not count:
        return first
    item_of_size: Dict[int, Dict[str, Any]] = {}

    def once_more(size: int) -> None:
        item_of_size[size] = ping(source, peer, size, count)

    sizes = {size for size in (mtu, USUAL, SMALL) if size <= mtu}
    wait_for([begin(once_more, size) for size in sizes], time.monotonic() + duration(count))
    full = added(first, item_of_size[mtu]) if mtu in item_of_size else first
    small = [(size, one) for size, one in item_of_size.items() if size < mtu and not one["kind"]]
    if not full["kind"] or not small:
        return full
    passes, best = max(small, key=lambda pair: pair[0])
    if full["kind"] in ("mtu", "too long"):  # reported by ping
        return dict(full, passes=passes)
    lost = (best["sent"] - best["received"] + 1.0) / (best["sent"] + 2.0)
    if lost ** full["sent"] < CHANCE:
        return dict(full, kind="mtu", passes=passes)
    total = added(full, small[0][1]) if len(small) == 1 else added(added(full, small[0][1]), small[1][1])
    return dict(total, rtt_us=None)


class Task:
    """Pings and name lookups of this host."""

    def __init__(self, asked: Dict[str, Any]) -> None:
        self.end = time.monotonic() + asked["limit_s"]
        self.count = asked["count"]
        self.is_second = bool(asked["lossy"])
        self.jobs = jobs_of(asked)
        self.tried: Dict[str, List[bool]] = {}
        self.pings: Dict[Tuple[str, str], Dict[str, Any]] = {}
        self.names: List[List[Any]] = []
        self.lock = threading.Lock()

    def run(self) -> None:
        """Ping many peers at once; look up names, in the first pass only."""
        peers = [] if self.is_second else list(dict.fromkeys((job[0], job[3]) for job in self.jobs))
        lookups = [begin(self.look_up, *one) for one in peers[:NAMED]]
        self.each(self.ping_peer, self.jobs)
        wait_for(lookups, self.end)

    def each(self, function: Callable[[Job], None], jobs: List[Job]) -> None:
        """Call a function with every job in several threads, until the time limit."""
        waiting = list(reversed(jobs))

        def work() -> None:
            while True:
                with self.lock:
                    if not waiting or not fitting(1, self.end):
                        return
                    job = waiting.pop()
                function(job)

        wait_for([begin(work) for _ in range(min(AT_ONCE, len(jobs)))], self.end)

    def ping_peer(self, job: Job) -> None:
        """Ping a peer; the first result is stored at once in case of the time limit."""
        _, rail, source, address, mtu = job
        with self.lock:
            before = self.tried.setdefault(rail, [])
            if len(before) >= HOPELESS and not any(before):
                return
        first = self.count if self.is_second else FIRST
        item = ping(source, address, mtu, first)
        self.keep(job, item)
        if item["kind"] not in ("", "not run"):
            item = again(source, address, mtu, item, self.end)
        elif not item["kind"]:
            count = fitting(self.count - first, self.end)
            item = added(item, ping(source, address, mtu, count)) if count else item
        self.keep(job, item)
        with self.lock:
            before.append(not item["kind"])

    def keep(self, job: Job, item: Dict[str, Any]) -> None:
        """Store the result of the pings of a job; callable from several threads."""
        with self.lock:
            self.pings[job[:2]] = item

    def rows(self) -> List[List[Any]]:
        """Return all results: peer, rail, kind, shortest time in us, passing size, text, sent, received."""
        with self.lock:
            return [
                [
                    *key,
                    item["kind"],
                    item["rtt_us"],
                    item.get("passes", 0),
                    item["text"],
                    item["sent"],
                    item["received"],
                ]
                for key, item in sorted(self.pings.items())
            ]

    def look_up(self, peer: str, address: str) -> None:
        """Look up the name of an address, and the addresses of the name."""
        name = ""
        texts: List[str] = []
        with suppress(OSError, UnicodeError):
            name = socket.gethostbyaddr(address)[0]
        if name:
            with suppress(OSError, UnicodeError):
                texts = sorted({str(one[4][0]) for one in socket.getaddrinfo(name, None, family(address))})
        self.names.append([peer, address, name, texts[:8]])

    def neighbours(self) -> List[Dict[str, Any]]:
        """Return the neighbour entries of the pinged addresses, as printed by `ip`."""
        pinged = {address for _, _, _, address, _ in self.jobs}
        try:
            return [
                load for load in json.loads(output(["ip", "-j", "-s", "neigh"], 2.0)["output"]) if load["dst"] in pinged
            ]
        except (ValueError, KeyError, TypeError):
            return []


def place(table: List[Dict[str, Any]]) -> int:
    """Return the row of this host: by its name, or by its addresses if the name is not unique. Raises ValueError."""
    named = [index for index, row in enumerate(table) if row["own"] == socket.gethostname()]
    if len(named) == 1:
        return named[0]
    candidates = named or range(len(table))
    indices = [index for index in candidates if any(is_mine(nic[0]) for nic in table[index]["rails"].values())]
    if len(indices) != 1:
        raise ValueError("it cannot find itself among the hosts, by name or by address")
    return indices[0]


def is_mine(address: str) -> bool:
    """Return whether the address is one of this host."""
    try:
        with socket.socket(family(address), socket.SOCK_DGRAM) as item:
            item.bind((address, 0))
    except OSError:
        return False
    return True


def family(address: str) -> Any:
    """Return the address family of a socket for an address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def jobs_of(asked: Dict[str, Any]) -> List[Job]:
    """Return the jobs of this host: of all pairs, or of those of the ends with losses."""
    table, lossy = asked["hosts"], {tuple(one) for one in asked["lossy"]}
    me = place(table)
    jobs = pairs(table, me, asked["offsets"])
    return [job for job in jobs if not lossy or not lossy.isdisjoint([job[:2], (table[me]["host"], job[1])])]


def pairs(table: List[Dict[str, Any]], me: int, offsets: List[int]) -> List[Job]:
    """Return the jobs of all rounds: peer, rail, own and peer's address, smaller MTU."""
    result = []
    for offset in offsets:
        peer = table[(me + offset) % len(table)]
        for rail, (source, mtu) in sorted(table[me]["rails"].items()):
            if rail in peer["rails"] and peer is not table[me]:
                address, most = peer["rails"][rail]
                sure = [ip_address(one.replace("%", "/")) for one in (source, address)]  # no zones
                if sure[0].version == sure[1].version:
                    result.append((peer["host"], rail, str(sure[0]), str(sure[1]), min(int(mtu), int(most))))
    return result


def unsent_of(counters: str) -> int:
    """Return IcmpOutErrors of the text of /proc/net/snmp: ICMP messages without room in the send buffer; 0 if unknown.

    All replies of a CPU share one send buffer. Replies to a peer wait in it while ARP looks for the MAC of that peer: a
    few full-size ones fill it, and the replies to all other peers are discarded meanwhile.
    """
    rows = [line.split() for line in counters.splitlines() if line.startswith("Icmp:")]
    with suppress(ValueError, IndexError):
        return int(rows[1][rows[0].index("OutErrors")])
    return 0


def unsent_replies() -> int:
    """Return the number of replies that this host could not send since its start."""
    total = 0
    with suppress(OSError):
        total += unsent_of(Path("/proc/net/snmp").read_text())
    with suppress(OSError):
        total += sum(map(int, re.findall(r"(?m)^Icmp6OutErrors\s+(\d+)", Path("/proc/net/snmp6").read_text())))
    return total


def reach(asked: Dict[str, Any]) -> Dict[str, Any]:
    """Run all pings and lookups; return the document of this host."""
    before = unsent_replies()
    time.sleep(asked["pause_s"])
    try:
        task = Task(asked)
    except ValueError as error:
        return {"fablint_reach": 1, "error": str(error)}
    task.run()
    rows = task.rows()
    return {
        "fablint_reach": 1,
        "pings": rows,
        "untried": len(task.jobs) - len(rows),
        "unsent": unsent_replies() - before,
        "names": sorted(task.names),
        "neighbours": task.neighbours(),
    }


def main(asked: Dict[str, Any]) -> None:
    """Ping the addresses of a request, write the results to stdout, and end the process."""
    say(reach(asked))
    stop()
    os._exit(0)  # threads that wait for a name server are left behind

"""How findings are worded: effects, sizes, what else it could be, what to do next."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fablint.model import Component, Run, Topology

MOST_NAMES = 6  # of links that a finding spells out

NEXT_STEP: dict[Component, str] = {
    "host": "run a loopback test on {name}: if slow, it is the host or its NIC; else move its cable to another port",
    "nic": "move the cable of {name} to another port of the switch and measure again",
    "switch": "read the error counters, temperature and power of {name}, then measure again around it",
    "cable": "read the error counters of both ports of {name}, reseat or swap the cable, measure again",
    "link": "read the error counters at the receiving end of {name}, reseat or swap the cable, measure again",
    "route": "measure {name} again; if it stays slow, look at the route between them",
    "config": "",
}


def between_switches(name: str, run: Run, topology: Topology | None) -> str:
    """What to do about a link `s0>s1` or cable `s0=s1`, with the ports where the topology knows them."""
    one_way = ">" in name
    a, b = name.split(">" if one_way else "=")
    ports = topology.ports if topology else {}
    start, end = (f"{x} port {ports[x, y]}" if (x, y) in ports else x for x, y in ((a, b), (b, a)))
    where = f"at {end}, which receives" if one_way else f"at {start} and {end}"
    again = run.path.name if run.path else "RUN"
    return f"read the error counters {where}; reseat or swap the cable {start} to {end}, then `fablint retest {again}`"


def without_run(step: str) -> str:
    """The same advice for what was not measured by fablint: it can neither be finished nor measured again by it."""
    step = re.sub(r", then `fablint retest [^`]*`", ", then measure again", step)
    return step.replace("finish the run (fablint resume), or ", "")


def times_text(ratio: float) -> str:
    """`1.9` or `11`."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def size_text(size: int) -> str:
    """`8 B`, `1 MiB`."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def listed(names: Sequence[str], kind: str) -> str:
    """A few names, or how many there are: names of links do not fold."""
    return ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} {kind}s"

"""How findings are worded: effects, sizes, what else it could be, what to do next."""

from __future__ import annotations

import re

from fablint.model import ComponentKind, ComponentRef, Run, Topology

NEXT_STEP: dict[ComponentKind, str] = {
    "host": "run a loopback test on {name}: if slow, it is the host or its NIC; else move its cable to another port",
    "nic": "move the cable of {name} to another port of the switch and measure again",
    "switch": "read the error counters, temperature and power of {name}, then measure again around it",
    "cable": "read the error counters of both ports of {name}, reseat or swap the cable, measure again",
    "link": "read the error counters at the receiving end of {name}, reseat or swap the cable, measure again",
    "route": "measure {name} again; if it stays slow, look at the route between them",
    "config": "",
}


def between_switches(component: ComponentRef, run: Run, topology: Topology | None) -> str:
    """What to do about a link `s0>s1` or cable `s0=s1`, with the ports where the topology knows them."""
    a, b = (end.label for end in component.ends)
    ports = topology.ports if topology else {}
    start, end = (f"{x} port {ports[x, y]}" if (x, y) in ports else x for x, y in ((a, b), (b, a)))
    where = f"at {end}, which receives" if component.directed else f"at {start} and {end}"
    again = run.path.name if run.path else "RUN"
    return f"read the error counters {where}; reseat or swap the cable {start} to {end}, then `fablint retest {again}`"


def without_run(step: str) -> str:
    """The same advice for what was not measured by fablint: it can neither be finished nor measured again by it."""
    step = re.sub(r", then `fablint retest [^`]*`", ", then measure again", step)
    return step.replace("finish the run (fablint resume), or ", "")


def times_text(ratio: float) -> str:
    """`1.9` or `11`."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"

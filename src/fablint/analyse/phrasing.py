"""How findings are worded: effects, sizes, what else it could be, what to do next."""

from __future__ import annotations

from fablint.model import ComponentKind, ComponentRef, Run, Topology

RESUME = "finish the run (fablint resume), or "  # first part of advice on what was not judged
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
    return f"read the error counters {where}; reseat or swap the cable {start} to {end}, then {retest(run_name(run))}"


def run_name(run: Run) -> str:
    """Name of the run directory in advice; empty for a run of another tool, which fablint cannot measure again."""
    return "" if "imported" in run.attributes else run.path.name if run.path else "RUN"


def retest(name: str) -> str:
    """The command that measures the components of a run again."""
    return f"`fablint retest {name}`" if name else "measure again"


def times_text(ratio: float) -> str:
    """`1.9` or `11`."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"

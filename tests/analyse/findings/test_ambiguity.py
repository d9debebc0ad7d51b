"""Parts in series are one class, which is said; a pair that crosses one of them and not the other splits it."""

from __future__ import annotations

import numpy as np
import pytest
from fabric_cases import STREAM, checked, faulty, findings, rounds_of

from fablint.analyse import diagnose
from fablint.model import Cable, Finding, State, Switch, Topology
from fablint.simulate import Fabric, Fault, SimulatedRow, fat_tree
from finding_cases import component, group, ref

LEAVES = 8
ALONE = SimulatedRow("bandwidth", (1 << 20,), "serial")
TREE = fat_tree(8, 2)


def bridge(middle: int) -> Fabric:
    """Six leaves on left and two on right, with four hosts each, and mid between; `middle` hosts are on mid."""
    switches = {
        name: Switch(name, name) for name in [f"leaf{index}" for index in range(LEAVES)] + ["left", "mid", "right"]
    }
    hosts = {f"h{index:02d}": f"leaf{index // 4}" for index in range(4 * LEAVES)}
    hosts |= {f"m{index}": "mid" for index in range(middle)}
    cables = [Cable(f"leaf{index}", "left" if index < 6 else "right") for index in range(LEAVES)]
    return Fabric(Topology(switches, hosts, (*cables, Cable("left", "mid"), Cable("mid", "right"))))


def at_fault(fabric: Fabric, fault: Fault) -> list[Finding]:
    run = faulty(fabric, fault).measure(None, [ALONE])  # half of all pairs cross the bridge
    return findings(diagnose(run, fabric.topology).verdict.findings, State.FAULT)


@pytest.mark.parametrize("link", ["left>mid", "mid>right"])
def test_links_in_series_are_one_class(link: str) -> None:
    (finding,) = at_fault(bridge(0), Fault(component("link", link), bandwidth_factor=0.5))
    other = {"left>mid": "mid>right", "mid>right": "left>mid"}[finding.name]
    assert f"link {other}" in group(finding)
    assert finding.effect == pytest.approx(-0.5, abs=0.02)  # although all pairs as far apart cross it


@pytest.mark.parametrize("link", ["left>mid", "mid>right"])
def test_hosts_between_them_split_the_class(link: str) -> None:
    (finding,) = at_fault(bridge(4), Fault(component("link", link), bandwidth_factor=0.5))
    assert finding.name == link
    assert not [name for name in group(finding) if name.startswith("link")]


def far_only(fabric: Fabric) -> list[np.ndarray]:
    at = fabric.port_switch
    return [pairs[at[pairs[:, 0]] != at[pairs[:, 1]]] for pairs in rounds_of(fabric)]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(ref("host", "h21"), "rx", bandwidth_factor=0.6),
        Fault(ref("link", "spine5", "leaf2"), bandwidth_factor=0.6),
    ],
    ids=["host", "link"],
)
def test_a_host_and_the_only_path_to_it_are_one_group_until_a_neighbour_sends(fault: Fault) -> None:
    """h21 is on leaf2, and under d-mod-k all that comes to it from elsewhere comes by spine5."""
    fabric = faulty(TREE, fault)
    run = fabric.measure([pairs for pairs in far_only(TREE) if len(pairs)], [STREAM])
    (finding,) = findings(diagnose(run, TREE.topology).verdict.findings, State.FAULT)
    names = {finding.name, *group(finding)}
    assert {"h21", "link spine5>leaf2"} <= names or {"spine5>leaf2", "host h21 (rx)"} <= names
    (finding,) = findings(diagnose(checked(fabric), TREE.topology).verdict.findings, State.FAULT)
    assert finding.components == (fault.component,)
    assert not {"link spine5>leaf2", "host h21 (rx)"} & set(group(finding))


def test_a_component_that_is_slow_in_both_directions_is_alone_in_its_group() -> None:
    (finding,) = at_fault(TREE, Fault(ref("host", "h21"), bandwidth_factor=0.6))
    assert (finding.name, finding.direction) == ("h21", "both")
    assert not [name for name in group(finding) if name.startswith(("link", "host"))]

"""fablint discover on a virtual cluster: real LLDP between switches and hosts, real Slurm."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vcluster import Cluster, StartCluster

FABLINT = (sys.executable, "-m", "fablint.cli")
HOSTS = "nid[001000-001007]"


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Cluster]:
    with virtual_cluster("discover") as made:
        yield made


def discover(bed: Cluster, *words: str | Path, status: int = 0) -> dict[str, Any]:
    """The verb's JSON, run on the login node."""
    done = bed.run([*FABLINT, "discover", "--json", *map(str, words)], timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def findings(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["state"], one["text"]["component"], one["text"]["name"]) for one in found["findings"]]


def save_neighbours(bed: Cluster, folder: Path) -> list[str]:
    """Saved LLDP output of every switch: its own name and its neighbours."""
    words: list[str] = []
    for switch in bed.topology()["switches"]:
        if switch.startswith("sw-"):
            continue
        path = folder / f"{switch}.json"
        asked = [
            bed.run(["lldpcli", "-f", "json0", "show", what], node=switch).stdout for what in ("chassis", "neighbors")
        ]
        path.write_text("\n".join(asked))
        words += ["--from", str(path)]
    return words


def test_lldp_and_slurm_agree_with_the_truth(bed: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "topology.json"
    found = discover(bed, "-w", HOSTS, "-o", out)
    assert found["findings"] == []
    from fablint.discover import load_topology

    truth = bed.topology()["hosts"]
    topology = load_topology(out)
    assert topology.host_switch == {host: one["switch"] for host, one in truth.items()}
    assert {host: topology.group_of(host) for host in truth} == {h: f"group{one['group']}" for h, one in truth.items()}
    assert topology.ports["x1000c0r0b0", "nid001000"] == "h0"
    assert {"LLDP", "scontrol"} <= {one["name"] for one in found["sources"] if one["counts"]}


def test_switches_tell_the_cables(bed: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "topology.yaml"
    discover(bed, "-w", HOSTS, *save_neighbours(bed, tmp_path), "-o", out)
    from fablint.discover import load_topology

    between = {
        frozenset({link["a"], link["b"]}) for link in bed.topology()["links"] if link["kind"] in ("local", "global")
    }
    assert {frozenset({cable.a, cable.b}) for cable in load_topology(out).cables} == between


def test_a_silent_host_is_reported_and_the_rest_discovered(bed: Cluster) -> None:
    found = discover(bed, "-w", "nid[001000-001003],nid009999", status=1)
    assert ("FAULT", "host", "nid009999") in findings(found)
    assert len(found["topology"]["hosts"]) == 4


def test_drained_hosts_are_left_out_and_named(bed: Cluster) -> None:
    update = ["scontrol", "update", "NodeName=nid001002"]
    assert bed.run([*update, "State=DRAIN", "Reason=bad cable"]).returncode == 0
    try:
        found = discover(bed, "-w", HOSTS)
    finally:
        bed.run([*update, "State=RESUME"])
    assert findings(found) == [("NOT JUDGED", "host", "nid001002")]
    assert "drained (bad cable" in found["findings"][0]["text"]["evidence"]
    assert "nid001002" not in found["hosts"]


def test_inside_a_job_its_hosts_are_asked_through_srun(bed: Cluster) -> None:
    done = bed.run(["salloc", "-N", "4", *FABLINT, "discover", "--json"], timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert len(found["hosts"]) == 4
    assert {one["host"] for one in found["nics"]} == set(found["hosts"])


def test_a_wrong_topology_conf_is_a_contradiction(bed: Cluster, tmp_path: Path) -> None:
    conf = tmp_path / "topology.conf"
    text = bed.control("topology", "--format", "slurm")
    conf.write_text(
        text.replace("nid001001", "nid00x").replace("nid001002", "nid001001").replace("nid00x", "nid001002")
    )
    found = discover(bed, "-w", HOSTS, "--from", conf, status=3)
    assert ("SUSPECT", "config", "nid001001") in findings(found)
    assert ("SUSPECT", "config", "nid001002") in findings(found)

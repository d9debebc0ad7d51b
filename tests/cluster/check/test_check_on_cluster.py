"""`fablint check` of a virtual cluster under real Slurm: 16 hosts on 4 switches, with a known fault or healthy.

benchmarks/cluster_check.py goes through all kinds of faults; here is one of each path through the program.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checked_cluster import reported, verdict_of, wait_for
from tested_mpis import wrapper_name
from vcluster import Cluster, StartCluster

pytestmark = pytest.mark.alone

HOSTS = "nid[001000-001015]"
SLOW = "nid001006"
CHECK = (sys.executable, "-m", "fablint.cli", "check", "--mpicxx", wrapper_name("openmpi"), "--budget", "40s")
LIMIT_S = 400


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Cluster]:
    with virtual_cluster("check", groups=2, switches=2, hosts=4) as made:
        yield made


@pytest.fixture
def faulty(bed: Cluster) -> Iterator[Cluster]:
    """The cluster, healed afterwards."""
    yield bed
    bed.heal()


def in_a_job(bed: Cluster, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return bed.run(["salloc", "--quiet", "-N16", *CHECK, *options, "-o", output], timeout=LIMIT_S, cwd=output.parent)


def test_a_healthy_cluster_passes_level_by_level(bed: Cluster, tmp_path: Path) -> None:
    output = tmp_path / "a.run"
    done = in_a_job(bed, output)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = verdict_of(output)
    assert verdict["coverage"]["hosts_judged"] == 16
    assert verdict["coverage"]["links_judged"] == verdict["coverage"]["links"] > 0
    for level in ("edge", "local", "global"):
        assert (output / f"{level}-bandwidth" / "zarr.json").exists()
    assert (output / "launches" / "intra-node.run" / "zarr.json").exists()
    (spent,) = (note["text"] for note in verdict["notes"] if note["kind"] == "duration")
    assert re.search(r"\d+ s for 1 launch \(\d+ s more beside asking\)", spent)


def test_a_submitted_check_over_tcp_names_the_slow_sender_and_excludes_a_drained_host(
    faulty: Cluster, tmp_path: Path
) -> None:
    faulty.fault("slow", SLOW, "--rate", "20mbit", "--dir", "tx")
    faulty.run(["scontrol", "update", "nodename=nid001014", "state=drain", "reason=cable"])
    output = tmp_path / "a.run"
    try:
        options = ("-w", HOSTS, "--submit", "--time", "10m", "--transport", "tcp", "-o", output)
        done = faulty.run([*CHECK, *options], timeout=LIMIT_S, cwd=tmp_path)
    finally:
        faulty.run(["scontrol", "update", "nodename=nid001014", "state=resume"])
    assert done.returncode == 1, done.stdout + done.stderr
    assert reported(output) == [("host", SLOW, "tx")]
    assert transports(output) == {"tcp"}
    (drained,) = (one for one in verdict_of(output)["findings"] if one["text"]["name"] == "nid001014")
    assert (drained["state"], "drained (cable)" in drained["text"]["evidence"]) == ("NOT JUDGED", True)


# Each transport with another direction and another loss: of 50 Mbit/s, 20 and 30 remain; tcp is above.
SLOW_HOSTS = {
    "ucx": (("ucx",), ("--rate", "20mbit", "--dir", "rx"), "rx"),
    "ofi": (("ofi", "--ofi-provider", "tcp"), ("--rate", "30mbit"), "both"),
}


@pytest.mark.parametrize("transport", SLOW_HOSTS)
def test_each_transport_names_the_slow_host_with_its_direction_and_no_path(
    faulty: Cluster, tmp_path: Path, transport: str
) -> None:
    """Latencies over TCP vary so little that one more switch on a path shows, whose cables are assumed here."""
    carrier, fault, direction = SLOW_HOSTS[transport]
    faulty.fault("slow", SLOW, *fault)
    output = tmp_path / "a.run"
    done = in_a_job(faulty, output, "--transport", *carrier)
    assert done.returncode == 1, done.stdout + done.stderr
    assert reported(output) == [("host", SLOW, direction)]
    assert transports(output) == {transport}


def transports(output: Path) -> set[str]:
    """By which the levels of a check were measured."""
    return {json.loads(path.read_text())["attributes"]["transport"] for path in output.glob("*-bandwidth/zarr.json")}


def test_a_host_that_is_killed_costs_its_own_rounds(bed: Cluster, tmp_path: Path) -> None:
    """The last test: the host does not come back."""
    output = tmp_path / "a.run"
    argv = bed.command(["salloc", "--quiet", "-N16", "--no-kill", *CHECK, "-o", output])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path) as process:
        wait_for(output / "local-bandwidth" / "zarr.json", process)
        kill_host(bed, "nid001005")
        said, _ = process.communicate(timeout=LIMIT_S)
    findings = [one for one in verdict_of(output)["findings"] if one["text"]["name"] == "nid001005"]
    assert {finding["text"]["component"] for finding in findings} == {"host"}, said
    assert {finding["state"] for finding in findings} & {"FAULT", "SUSPECT"}, said
    assert [name for _, name, _ in reported(output) if name != "nid001005"] == [], said
    assert (output / "global-bandwidth" / "zarr.json").exists(), said
    assert verdict_of(output)["coverage"]["hosts_judged"] >= 15


def kill_host(bed: Cluster, host: str) -> None:
    """End all processes of a virtual host but the one that holds its namespaces."""
    space = bed.run(["readlink", "/proc/self/ns/net"], node=host).stdout.strip()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            inside = str((process / "ns" / "net").readlink()) == space
            if inside and not (process / "cmdline").read_bytes().startswith(b"sleep"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:  # it has ended by itself
            continue

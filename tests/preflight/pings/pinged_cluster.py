"""Four hosts of a virtual cluster ping each other with real ping: what preflight finds."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from vcluster import Cluster, StartCluster

HOSTS = [f"nid00100{number}" for number in range(4)]
Messages = list[tuple[str, str, str, str]]
_FABLINT = (sys.executable, "-m", "fablint.cli")
_FAMILY = (
    "net.ping",
    "net.ping.route",
    "net.ping.mtu",
    "net.ping.loss",
    "net.ping.rtt",
    "net.ip.duplicate",
    "net.route.rails",
    "net.dns.peers",
)
_BAD = ("WARN", "FAIL", "ERROR")


def four_hosts(start: StartCluster, name: str) -> AbstractContextManager[Cluster]:
    """The cluster, with two hosts on each of two switches."""
    return start(name, groups=2, switches=1, hosts=2, slurm=False, lldp=False)


def reported(bed: Cluster, home: Path, *words: str) -> Messages:
    """Check, host, outcome and message of what the family finds, run on the login node; times are not reported."""
    argv = [*_FABLINT, "preflight", "-w", ",".join(HOSTS), "--json", *words]
    done = bed.run(argv, timeout=180, FABLINT_HOME=str(home))
    assert done.returncode in (0, 1, 3), done.stderr
    results = json.loads(done.stdout)["results"]
    mine = [result for result in results if result["check"] in _FAMILY and result["check"] != "net.ping.rtt"]
    assert {one["host"] for one in mine} == set(HOSTS)
    return [(one["check"], one["host"], one["outcome"], one["message"]) for one in mine if one["outcome"] in _BAD]

"""`fablint check` of a virtual cluster that drops frames of one host: which host, and in which direction.

Frames are dropped by nftables, and Open MPI sends over TCP: its sockets know what was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from checked_cluster import Outcome, checked
from vcluster import Cluster, StartCluster

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Cluster]:
    with virtual_cluster("segments", groups=2, switches=2, hosts=2, slurm=False) as made:
        yield made


def check(bed: Cluster, folder: Path) -> Outcome:
    hosts = ",".join(sorted(bed.topology()["hosts"]))
    return checked(bed, folder, "-w", hosts, "--include-unfit", "--budget", "40s")


def faults(outcome: Outcome) -> list[tuple[str, str, str | None]]:
    return [
        (finding["text"]["component"], finding["text"]["name"], finding["direction"])
        for finding in outcome.findings
        if finding["state"] == "FAULT"
    ]


def test_a_host_that_loses_frames_is_named_with_its_direction(bed: Cluster, tmp_path: Path) -> None:
    bed.fault("loss", "nid001003", "--percent", "5", "--dir", "rx")
    try:
        outcome = check(bed, tmp_path)
    finally:
        bed.heal()
    assert faults(outcome) == [("host", "nid001003", "rx")], outcome.summary()
    (found,) = (finding for finding in outcome.findings if finding["state"] == "FAULT")
    assert "TCP sent" in found["text"]["evidence"]

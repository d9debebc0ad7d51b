"""Hosts of a virtual cluster ping each other: faults of the fabric are named on the right host, with real ping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pinged_cluster import HOSTS, Messages, four_hosts, reported

from pinned import pinned_by
from vcluster import Cluster, StartCluster

PINNED = pinned_by("preflight.toml", __file__)


@pytest.fixture(scope="module")
def bed(virtual_cluster: StartCluster) -> Iterator[Cluster]:
    with four_hosts(virtual_cluster, "reach") as made:
        yield made


def test_a_black_hole_for_long_frames(bed: Cluster, tmp_path: Path) -> None:
    bed.fault("mtu", "nid001002", "--mtu", "1500", "--dir", "rx")
    try:
        found = reported(bed, tmp_path)
    finally:
        bed.heal()
    message = "frames of 9000 bytes are lost, of 1500 pass: from or to 3 of 3 others"
    assert found == [("net.ping.mtu", "nid001002", "FAIL", message)]


def test_a_switch_that_drops_the_traffic_of_a_host(bed: Cluster, tmp_path: Path) -> None:
    for switch in [name for name in bed.topology()["switches"] if not name.startswith("sw-")]:
        bed.fault("misroute", switch, "--host", "nid001001", "--via", "none")
    try:
        found = reported(bed, tmp_path)
    finally:
        bed.heal()
    message = "no answer from 3 of 3 others, which reach each other"
    assert found == [("net.ping", "nid001001", "FAIL", message)]


def test_an_address_that_two_hosts_use(bed: Cluster, tmp_path: Path) -> None:
    bed.fault("dup-ip", "nid001001", "--of", "nid001003")
    try:
        found = reported(bed, tmp_path)
    finally:
        bed.heal()
    assert {one[:3] for one in found} == {
        ("net.ip.duplicate", "nid001001", "FAIL"),
        ("net.ip.duplicate", "nid001003", "FAIL"),
    }


def test_traffic_that_leaves_by_the_management_network(bed: Cluster, tmp_path: Path) -> None:
    bed.fault("wrong-route", "nid001001")
    try:
        found = reported(bed, tmp_path)
    finally:
        bed.heal()
    assert {one[:3] for one in found} == {
        ("net.route.rails", "nid001001", "FAIL"),
        ("net.ping.mtu", "nid001001", "FAIL"),  # which carries short frames only
    }


def without_name(bed: Cluster, name: str, folder: Path) -> Path:
    """A copy of the cluster's /etc/hosts without a name."""
    lines = bed.run(["cat", "/etc/hosts"]).stdout.splitlines(keepends=True)
    path = folder / "hosts"
    path.write_text("".join(line for line in lines if name not in line))
    assert len(path.read_text().splitlines()) < len(lines)
    return path


def missing_on(bed: Cluster, nodes: Sequence[str], folder: Path) -> Messages:
    """Findings while these nodes do not find nid001002-hsn0."""
    path = without_name(bed, "nid001002-hsn0", folder)
    for node in nodes:
        assert bed.run(["mount", "--bind", path, "/etc/hosts"], node=node).returncode == 0
    try:
        return reported(bed, folder)
    finally:
        for node in nodes:
            bed.run(["umount", "/etc/hosts"], node=node)


def test_a_host_that_misses_a_name(bed: Cluster, tmp_path: Path) -> None:
    """A host looks up the names of those that it pings."""
    assert missing_on(bed, ["nid001003"], tmp_path) == [
        ("net.dns.peers", "nid001003", "WARN", PINNED["does not find nid001002-hsn0"])
    ]


def test_a_name_that_no_host_finds(bed: Cluster, tmp_path: Path) -> None:
    assert missing_on(bed, HOSTS, tmp_path) == [("net.dns.peers", "nid001002", "WARN", PINNED["no host finds a name"])]

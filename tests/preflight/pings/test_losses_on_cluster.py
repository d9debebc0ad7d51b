"""Cables that lose frames, and healthy ones: the loss is named on the right host, with real ping.

Hosts whose CPU others use lose pings as well, which is reported of them. Pings mostly wait: each case has a cluster of
its own, and several are pinged at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from pinged_cluster import Messages, four_hosts, reported

from vcluster import StartCluster

pytestmark = pytest.mark.alone

LOSSY = "nid001002"


class Case(NamedTuple):
    """What the cable of a host loses, the level of the preflight, and the outcome for that host."""

    level: str
    percent: int = 0
    direction: str = "both"
    outcome: str = ""

    def found(self, start: StartCluster, folder: Path) -> Messages:
        """What preflight reports; the kernel has no netem here: nftables drops at random, frames of every size."""
        with four_hosts(start, folder.name) as bed:
            if self.percent:
                bed.fault("loss", LOSSY, "--percent", str(self.percent), "--dir", self.direction)
            return reported(bed, folder, "--level", self.level)


AT_ONCE = 4
CASES = {
    "5-both-full": Case("full", 5, "both", "WARN"),
    "60-rx-full": Case("full", 60, "rx", "FAIL"),
    "clean-full": Case("full"),
    "30-both-quick": Case("quick", 30, "both", "FAIL"),
    "45-both-quick": Case("quick", 45, "both", "FAIL"),
    "clean-quick": Case("quick"),
}


@pytest.fixture(scope="module")
def found(virtual_cluster: StartCluster, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Messages]:
    """What preflight reports in each case."""
    folders = [tmp_path_factory.mktemp(name) for name in CASES]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = pool.map(lambda case, folder: case.found(virtual_cluster, folder), CASES.values(), folders)
        return dict(zip(CASES, results, strict=True))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.outcome])
def test_a_clean_cluster_is_silent(found: Mapping[str, Messages], name: str) -> None:
    assert found[name] == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.outcome])
def test_a_cable_that_loses_frames(found: Mapping[str, Messages], name: str) -> None:
    assert [one[:3] for one in found[name]] == [("net.ping.loss", LOSSY, CASES[name].outcome)]

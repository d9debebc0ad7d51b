"""Hosts whose time ran out are asked once more, with more time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from fablint import cluster
from fablint.model import Allocation, Answer
from fablint.snapshot import CollectedSnapshots
from fablint.system import System
from fablint.workflows import fabric_discovery
from snapshot_trees import printed

HOSTS = ("a", "b", "c")


class CheckRequest:
    """Stands for the hosts: what each says the first time, and the second. A fake."""

    def __init__(self, *said: Mapping[str, str]) -> None:
        self.said = list(said)  # by host: what it was doing when its time was up; a host that is not there is silent
        self.calls: list[tuple[tuple[str, ...], str, float]] = []

    def everywhere(
        self, _: System, allocation: Allocation, argv: Sequence[str], __: str, timeout_s: float
    ) -> list[Answer]:
        self.calls.append((allocation.hosts, argv[-1], timeout_s))
        said = self.said.pop(0)
        return [
            Answer(host, printed({"fablint_snapshot": 1, "incomplete": said[host], "time": len(self.calls)}))
            if host in said
            else Answer(host, error="does not answer")
            for host in allocation.hosts
        ]


def asked(monkeypatch: pytest.MonkeyPatch, *said: Mapping[str, str]) -> tuple[CheckRequest, CollectedSnapshots]:
    hosts = CheckRequest(*said)
    monkeypatch.setattr(cluster, "everywhere", hosts.everywhere)
    return hosts, fabric_discovery.collect_snapshots(System(), Allocation(HOSTS, "test"))


def limits(words: str) -> tuple[float, ...]:
    return tuple(map(float, words.split(":")))


def test_only_hosts_whose_time_ran_out_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, collected = asked(monkeypatch, {"a": "", "b": "reading /sys/x"}, {"b": ""})
    (first, usual, patience), (second, more, more_patience) = hosts.calls
    assert (first, second) == (HOSTS, ("b",))
    assert all(b > a for a, b in zip(limits(usual), limits(more), strict=True))
    assert more_patience > limits(more)[1] > limits(usual)[1] and patience > limits(usual)[1]
    assert {name: one.incomplete for name, one in collected.snapshots.items()} == {"a": "", "b": ""}
    assert collected.documents["b"]["time"] == 2
    assert list(collected.silent) == ["c"]


def test_what_was_known_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, collected = asked(monkeypatch, {"a": "", "b": "reading /sys/x", "c": ""}, {})
    assert len(hosts.calls) == 2
    assert collected.snapshots["b"].incomplete == "reading /sys/x"
    assert collected.silent == {}


def test_whole_snapshots_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, _ = asked(monkeypatch, {"a": "", "b": "", "c": ""})
    assert len(hosts.calls) == 1

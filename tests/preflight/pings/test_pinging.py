"""The pings that the front end starts on hosts, in two passes, and what becomes of their output."""

from __future__ import annotations

import ast
import json
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

from fablint import cluster
from fablint.model import Allocation, Answer
from fablint.snapshot import CollectedSnapshots, snapshot_of
from fablint.snapshot.agent.machine import say
from fablint.snapshot.pinging import with_reach
from fablint.workflows import host_preflight


@pytest.mark.parametrize(
    ("state", "mac", "kept"),
    [("STALE", "old", False), ("REACHABLE", "old", True), ("DELAY", "old", True), ("REACHABLE", "new", False)],
)
def test_neighbour_tables_are_those_after_the_pings(state, mac, kept):
    """What was confirmed just before, with another MAC, stays: two hosts answer for the address."""

    def entry(dst: str, mac: str, state: str = "REACHABLE") -> dict[str, Any]:
        return {"dst": dst, "dev": "hsn0", "lladdr": mac, "state": [state]}

    old, other = entry("10.0.0.2", mac, state), entry("10.0.0.9", "other", "STALE")
    said = {"output": json.dumps([old, other]), "status": 0}
    document = {"fablint_snapshot": 1, "host": "a", "commands": {"ip-neigh": said}}
    collected = CollectedSnapshots({"a": document}, {"a": snapshot_of(document)})
    fresh = [entry("10.0.0.2", "new"), entry("10.0.0.3", "more")]
    found = with_reach(collected, [Answer("a", printed({"fablint_reach": 1, "pings": [], "neighbours": fresh}))])
    after = json.loads(found.snapshots["a"].command("ip-neigh").text)
    assert after == [*([old] if kept else []), other, *fresh]


def printed(document: dict[str, Any]) -> str:
    with redirect_stdout(StringIO()) as text:
        say(document)
    return text.getvalue()


def two_hosts(**state: str) -> CollectedSnapshots:
    """Hosts with an address each, as their snapshots tell."""
    documents = {}
    for number, name in enumerate(("a", "b"), 1):
        addresses = [{"ifname": "hsn0", "addr_info": [{"local": f"10.0.0.{number}", "prefixlen": 24}]}]
        nic = {"address": f"02:00:00:00:00:0{number}", "mtu": "9000", "operstate": state.get(name, "up"), "type": "1"}
        documents[name] = {
            "fablint_snapshot": 1,
            "host": name,
            "files": {"sys": {"class": {"net": {"hsn0": nic}}}},
            "commands": {"ip-addr": {"output": json.dumps(addresses), "status": 0}},
        }
    return CollectedSnapshots(documents, {name: snapshot_of(one) for name, one in documents.items()})


def test_hosts_that_can_be_pinged_are_asked_once_with_one_text(monkeypatch, staged):
    asked = []

    def everywhere(system, allocation, argv, text, timeout_s):
        asked.append((allocation.hosts, text))
        return [Answer(name, printed({"fablint_reach": 1, "pings": []})) for name in allocation.hosts]

    monkeypatch.setattr(cluster, "everywhere", everywhere)
    allocation = Allocation(("a", "b", "c"), "test")
    found = host_preflight.ping_each_other(staged, allocation, two_hosts(), "quick")
    ((hosts, text),) = asked
    assert sorted(hosts) == ["a", "b"]
    assert "10.0.0.2" in text
    assert found.snapshots["a"].reach["pings"] == []
    assert not host_preflight.ping_each_other(staged, allocation, two_hosts(b="down"), "quick").snapshots["a"].reach
    assert len(asked) == 1  # of one host there is nothing to be said


@pytest.mark.parametrize("lost", [0, 1])
def test_hosts_ping_a_second_time_after_a_loss(monkeypatch, staged, lost):
    """The second pass is that of the hosts that send pings from or to an end with a loss."""
    passes = []

    def everywhere(system, allocation, argv, text, timeout_s):
        passes.append((allocation.hosts, ast.literal_eval(text.rpartition("main(")[2].rstrip(")\n"))))
        rows = {"a": [["b", "", "", 200, 0, "", 3, 3 - lost]]}
        return [Answer(name, printed({"fablint_reach": 1, "pings": rows.get(name, [])})) for name in allocation.hosts]

    monkeypatch.setattr(cluster, "everywhere", everywhere)
    found = host_preflight.ping_each_other(staged, Allocation(("a", "b"), "test"), two_hosts(), "quick")
    assert sorted(passes[0][0]) == ["a", "b"]
    assert not passes[0][1]["lossy"]
    assert [(hosts, asked["lossy"]) for hosts, asked in passes[1:]] == lost * [(("a",), [("a", ""), ("b", "")])]
    assert ("second" in found.snapshots["a"].reach) == bool(lost)
    assert "second" not in found.snapshots["b"].reach


def test_what_was_said_is_kept_with_the_snapshot():
    documents = {name: {"fablint_snapshot": 1, "host": name} for name in ("a", "b", "c")}
    collected = CollectedSnapshots(
        documents, {name: snapshot_of(one) for name, one in documents.items()}, {"d": "dead"}
    )
    found = with_reach(collected, [Answer("a", "", "no end after 23 s"), Answer("b", "hello")])
    assert found.snapshots["a"].reach == {"error": "no end after 23 s"}
    assert found.snapshots["b"].reach == {"error": "its output cannot be parsed"}
    assert not found.snapshots["c"].reach
    assert found.silent == collected.silent
    again = {name: snapshot_of(one) for name, one in found.documents.items()}
    assert again == found.snapshots

"""No check of the network raises, whatever programs print and files hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from net_help import wired
from preflight_help import SAMPLES, nic, rows_of, sample

from fablint.model import Switch, Topology
from fablint.model.preflight_results import Outcome
from fablint.preflight.checks.host import identity
from fablint.preflight.checks.network import (
    address_names,
    addresses,
    arp_table,
    conflicts,
    ethtool,
    link_counters,
    links,
    lldp,
    loss,
    multirail,
    routes,
)
from fablint.preflight.checks.slingshot import slingshot_addresses
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.preflight.runner import judge
from fablint.snapshot import snapshot_of

pytestmark = pytest.mark.long  # many damaged files

MODULES = (addresses, arp_table, conflicts, ethtool, link_counters, links, lldp, multirail, address_names, routes)
MORE = (identity, loss, slingshot_addresses)
MINE = rows_of(*MODULES, *MORE)
COMMANDS = ["ip-addr", "ip-route", "ip-rule", "ip-neigh", "lldpcli", "lldptool/hsn0", "ethtool-fec/hsn0"]
COMMANDS += ["ethtool-fec-later/hsn0", "ethtool-a/hsn0", "ethtool-m/hsn0"]
COUNTED = ("rx_errors", "tx_errors", "rx_missed_errors", "rx_dropped", "rx_packets")
FILES = [f"/sys/class/net/hsn0/{name}" for name in ("address", "mtu", "speed", "operstate", "flags", "duplex", "type")]
FILES += [f"/sys/class/net/hsn0/statistics/{name}" for name in COUNTED]
FILES += ["/sys/class/net/hsn0/bonding/slaves", "/sys/class/net/hsn0/carrier_down_count", "/proc/uptime"]
FILES += ["/proc/net/netstat", "/proc/net/stat/arp_cache", "/proc/sys/kernel/hostname"]
FILES += [f"/proc/sys/net/ipv4/neigh/default/gc_thresh{number}" for number in (1, 2, 3)]
FILES += [f"/proc/sys/net/ipv4/conf/all/{name}" for name in ("rp_filter", "arp_ignore", "arp_announce", "arp_filter")]
LLDP = ["lldpcli-json0-slingshot-ama-mismatch-on-hsn1.json", "lldptool-tn-hsn0.txt", "lldpcli-json-two-ports.json"]
TEXTS = [path.read_text(errors="replace") for path in sorted((SAMPLES / "host").iterdir())] + list(map(sample, LLDP))
KEYS = ["ifname", "addr_info", "local", "prefixlen", "scope", "family", "dst", "dev", "gateway", "table", "metric"]
KEYS += [
    "nexthops",
    "via",
    "host",
    "type",
    "flags",
    "priority",
    "src",
    "srclen",
    "dstlen",
    "lladdr",
    "state",
    "updated",
]
WORDS = ["hsn0", "10.1.0.1", "10.1.0.2", "10.1.0.0/16", "default", "global", "main", "local", "throw", "all", "FAILED"]
WORDS += ["STALE", "02:15:00:00:00:01", "10.1.0.0/99", "10.1.0.0/٣", "\x00", "\udcff"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8), max_size=4)
FIGURES = st.sampled_from(
    ["-1", "0x1003", "up", "9" * 5000, "1e400", "nan", "", "TcpExt: a", "entries table_fulls\nzz"]
)
TOPOLOGY = Topology({"s0": Switch("s0")}, {"n1": "s0", "n2": "x3000c0r42b0"})


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A sample cut off, and some of its letters changed."""
    letters = list(draw(st.sampled_from(TEXTS)))
    for at in draw(st.lists(st.integers(0, max(len(letters) - 1, 0)), max_size=5)):
        letters[at : at + 1] = draw(st.sampled_from(["", "}", '"', "0", "-", "\n", "�", "{", "none"]))
    return "".join(letters[: draw(st.integers(0, len(letters)))])


OUTPUT = st.one_of(broken(), ROWS.map(json.dumps), JSON.map(json.dumps), FIGURES, st.text(max_size=80))
HOSTS = st.tuples(st.dictionaries(st.sampled_from(COMMANDS), OUTPUT), st.dictionaries(st.sampled_from(FILES), OUTPUT))


def odd(index: int, commands: Mapping[str, str], files: Mapping[str, str]) -> Host:
    """A host of which some is as it should be."""
    readings = {path: text for path, text in files.items() if "/statistics/" in path or "/proc/net/" in path}
    one = wired(index, files={**nic(), **files}, commands=commands, later={path: "7" for path in readings})
    one.before = {"time": 5.0, "counters": {"sys": readings}}
    return one


def assert_reported(hosts: list[Host]) -> None:
    """Every check says something of every host, and all of it can be written."""
    found = judge(Fleet(hosts, topology=TOPOLOGY), MINE)
    assert {(result.check, result.host) for result in found.results} >= {
        (check.id, host.name) for check in MINE for host in hosts
    }
    assert all(result.message for result in found.results if result.outcome is not Outcome.PASS)
    json.dumps([result._asdict() for result in found.results])


@settings(max_examples=80)
@given(st.lists(HOSTS, min_size=1, max_size=3))
def test_no_check_breaks(every: list[tuple[Mapping[str, str], Mapping[str, str]]]) -> None:
    odd_ones = [odd(index, *one) for index, one in enumerate(every, 1)]
    assert_reported([*odd_ones, wired(8), wired(9)])


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["files", "counters", "later", "names", "commands", "folders"]), JSON), ROWS)
def test_no_document_breaks(document: dict[str, Any], rows: list[Any]) -> None:
    commands = {name: {"output": json.dumps(rows), "status": 0} for name in COMMANDS}
    assert_reported([Host(snapshot_of({"commands": commands, **document, "host": "n1"})), wired(2), wired(3)])


@pytest.mark.parametrize("text", ["[" * 99999, '{"lldp":' * 9999, "\n" * 400_000, " " * 400_000, "alarm : " * 50_000])
def test_hostile_texts(text: str) -> None:
    files = {path: text[:16384] for path in FILES}
    assert_reported([odd(1, dict.fromkeys(COMMANDS, text), files), wired(2)])


def test_all_checks_of_the_network_are_in_the_table() -> None:
    assert len(MINE) == 38
    assert all(len(check.id) <= 20 for check in MINE)

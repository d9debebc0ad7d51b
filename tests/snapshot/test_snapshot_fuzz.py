"""Whatever a host says, reading it raises nothing."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from hypothesis import given, settings, strategies as st

from fablint.model import Answer
from fablint.snapshot import Snapshot, fabric_nics, nics_of, rails, read_answers, snapshot_of
from fablint.snapshot.collecting import unpack
from fablint.snapshot.neighbours import neighbours_of
from fablint.snapshot.parsers.lldp import local_name
from fablint.snapshot.parsers.slingshot_tlv import requested
from snapshot_trees import FIXTURES, nested, printed


def words(text: str) -> list[str]:
    return text.split()


PARTS = words("host time window_s level root kernel files counters later links folders commands kernel_log names")
PARTS += words("shared_memory reach incomplete")
KEYS = words("sys class net hsn0 address mtu speed operstate carrier type infiniband mlx5_0 ports 1 rate state of to")
KEYS += words("link_layer cxi cxi0 device output error status size ip-addr lldpcli lldptool/hsn0")
KEYS += [*PARTS, "/sys/class/cxi/cxi0/device/net", "/sys/class/net"]
LLDP = words("lldp interface name chassis port id type value via capability descr unknown-tlvs unknown-tlv oui")
IP = words("ifname addr_info local prefixlen")
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["-1", "0x10", "1_0", "9" * 5000, "inf Gb/sec", "nan", "4: ACTIVE", "02:00:00:00:00:40", "772"]),
    st.sampled_from([(FIXTURES / "discover" / name).read_text() for name in ("lldptool-tn-hsn0.txt",)]),
)
NUMBERS = st.one_of(st.integers(), st.integers(10**300, 10**310), st.floats())


def documents(keys: list[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | NUMBERS | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(keys), inner, max_size=5),
        max_leaves=30,
    )


def look_at(snapshot: Snapshot) -> None:
    """All that is read of a snapshot for its own sake."""
    nics = nics_of(snapshot)
    rails(nics)
    known = {nic.name: nic for nic in nics}
    neighbours = neighbours_of(snapshot)
    fabric_nics({neighbour.port for neighbour in neighbours}, known)
    for neighbour in neighbours:
        requested(neighbour.tlv)
    for path in ("/sys/class/net/hsn0/mtu", "/sys/class/net", "/sys", "/", ""):
        snapshot.number(path)
        snapshot.read_later(path)
        assert snapshot.why_not(path)
        assert isinstance(list(snapshot.names(path)), list)
        assert isinstance(snapshot.link(path), str)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(PARTS), documents(KEYS), max_size=len(PARTS)))
def test_any_document_is_a_snapshot(document: dict[str, Any]) -> None:
    snapshot = snapshot_of(document)
    look_at(snapshot)
    assert abs(snapshot.time) < 1e13  # a number in any case
    assert read_answers([Answer("n1", printed({"fablint_snapshot": 1, **document}))]).snapshots["n1"].host == "n1"


@settings(max_examples=200)
@given(documents(LLDP), documents(IP), TEXTS)
def test_any_output_of_lldp_and_ip_is_read(lldp: object, ip: object, text: str) -> None:
    said = {"lldpcli": json.dumps({"lldp": lldp}), "ip-addr": json.dumps(ip), "lldptool/hsn0": text}
    commands = {name: {"output": text, "status": 0} for name, text in said.items()}
    look_at(snapshot_of({"commands": commands, "files": nested({"/sys/class/net/hsn0/address": text})}))
    local_name(said["lldpcli"])


@settings(max_examples=200)
@given(st.one_of(st.text(), st.text().map("fablint:{}.".format), st.binary().map(lambda raw: raw.decode("latin1"))))
def test_any_text_is_unpacked(text: str) -> None:
    assert unpack(text) is None


@settings(max_examples=200)
@given(documents(KEYS), st.data())
def test_an_answer_that_was_broken_is_unpacked_or_is_none(document: object, data: st.DataObject) -> None:
    packed = bytearray(zlib.compress(json.dumps({"fablint_snapshot": 1, "files": document}).encode()))
    for at in data.draw(st.lists(st.integers(0, len(packed) - 1), max_size=3)):
        packed[at] = data.draw(st.integers(0, 255))
    kept = packed[: data.draw(st.integers(0, len(packed)))]
    found = unpack(f"fablint:{base64.b64encode(kept).decode()}.")
    assert found is None or found["fablint_snapshot"] == 1

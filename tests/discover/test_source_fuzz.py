"""Nothing that a tool prints, whole or broken, ends in an exception other than UsageError."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from discovery_help import SAMPLES, BareFakeSystem
from hypothesis import given, settings, strategies as st

from fablint.discover import discover, format_tree, write_topology
from fablint.discover.answers import read_snapshots
from fablint.discover.sources import SOURCES, SavedOutput
from fablint.errors import UsageError
from fablint.model import Answer
from fablint.snapshot import read_answers
from snapshot_trees import printed

TEXTS = [
    path.read_bytes()
    for path in sorted([*SAMPLES.rglob("*"), *(SAMPLES.parent / "outside").iterdir()])
    if path.is_file() and path.suffix != ".md" and path.parent.name != "sysroot" and path.stat().st_size < 12000
]
KEYS = ["lldp", "interface", "name", "chassis", "port", "id", "type", "value", "via", "capability", "unknown-tlvs"]
KEYS += ["unknown-tlv", "oui", "switches", "links", "IP", "grpId", "swcNum", "endpoint1"]
KEYS += ["output", "lldpcli", "lldptool", "mac", "mtu", "device", "net", "rate"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A sample cut off, with bytes changed, lines doubled, left out or exchanged."""
    data = bytearray(draw(st.sampled_from(TEXTS)))
    for at in draw(st.lists(st.integers(0, len(data) - 1), max_size=6)):
        data[at] = draw(st.integers(0, 255))
    lines = bytes(data[: draw(st.integers(0, len(data)))]).decode(errors="replace").splitlines()
    if lines:
        index = st.integers(0, len(lines) - 1)
        for a, b in draw(st.lists(st.tuples(index, index), max_size=4)):
            lines[a] = draw(st.sampled_from([lines[b], "", lines[a] + lines[b]]))
    return "\n".join(lines)


def read_all(text: str) -> None:
    """By every source, whatever it recognises."""
    for source in SOURCES:
        source.recognises(text)
        with suppress(UsageError):
            source.read(SavedOutput("fuzz", text, "x1000c0r3b0"))


@settings(max_examples=300)
@given(st.one_of(broken(), JSON.map(json.dumps), st.text(max_size=200)))
def test_no_source_breaks(text: str) -> None:
    read_all(text)


@settings(max_examples=100)
@given(st.lists(broken(), min_size=1, max_size=3))
def test_what_was_understood_can_be_printed_and_written(texts: list[str]) -> None:
    known = [
        SavedOutput(f"f{i}", text, "x1000c0r3b0")
        for i, text in enumerate(texts)
        if any(s.recognises(text) for s in SOURCES)
    ]
    try:
        found = discover(BareFakeSystem(), texts=known)
    except UsageError:
        return
    assert format_tree(found)
    if found.topology:
        assert write_topology(found.topology)


@settings(max_examples=100)
@given(JSON, JSON, JSON)
def test_no_answer_breaks(net: object, lldp: object, other: object) -> None:
    said = {"output": json.dumps({"lldp": lldp}), "status": 0}
    files = {"sys": {"class": {"net": net, "infiniband": other, "cxi": other}}}
    document = {"fablint_snapshot": 1, "files": files, "commands": {"lldpcli": said, "lldptool/hsn0": other}}
    read_snapshots(read_answers([Answer("n1", printed(document)), Answer("n2", json.dumps(document))]))


@pytest.mark.parametrize("text", ["[" * 100000, '{"lldp":' * 100000, "{" * 100000, "\x00" * 1000, "+-\n|" * 10000])
def test_hostile_texts(text: str) -> None:
    read_all(text)

"""Documents of like hosts share what they have in common, and stay what they were."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fablint.snapshot.sharing import Sharing, parsed, written

TREES = st.recursive(
    st.sampled_from(["0", "1", "9000"]) | st.none() | st.booleans() | st.integers(0, 1),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=12,
)


def host(name: str, mtu: str) -> dict[str, Any]:
    files = {"sys": {"class": {"net": {"hsn0": {"mtu": mtu, "speed": "200000"}, "hsn1": {"mtu": "9000"}}}}}
    return {"fablint_snapshot": 1, "host": name, "files": files, "kernel_log": {"output": "x" * 1000}}


def test_equal_parts_are_one_object_also_behind_a_host_that_differs() -> None:
    sharing = Sharing()
    first, odd, third = (
        sharing.of(parsed(written(host(*one)))) for one in (("a", "9000"), ("b", "1500"), ("c", "9000"))
    )
    assert (first, odd, third) == (host("a", "9000"), host("b", "1500"), host("c", "9000"))
    nets = [one["files"]["sys"]["class"]["net"] for one in (first, odd, third)]
    assert nets[0]["hsn1"] is nets[1]["hsn1"] is nets[2]["hsn1"]
    assert first["kernel_log"] is odd["kernel_log"] is third["kernel_log"]


@given(st.lists(st.dictionaries(st.sampled_from("abc"), TREES, max_size=3), max_size=6))
def test_no_value_changes(documents: list[dict[str, Any]]) -> None:
    sharing, before = Sharing(), copy.deepcopy(documents)
    shared = [sharing.of(document) for document in documents]
    assert shared == before


def test_a_document_that_is_nested_too_deeply_stays_as_it_is() -> None:
    deep = "[" * 900 + "]" * 900
    sharing = Sharing()
    for _ in range(3):
        text = f'{{"files": {deep}}}'.encode()
        assert json.dumps(sharing.of(parsed(text))) == text.decode()


@pytest.mark.parametrize("text", [b"{", b"nul", b"\xff", b"", b'{"a": "\x01'])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        parsed(text)


def test_names_that_are_no_unicode_are_kept() -> None:
    document = {"a": "\udcff", "b": 1.5, "c": [10**30, None, True]}
    assert parsed(written(document)) == document

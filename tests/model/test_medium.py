"""The medium of a row: how its bytes travel."""

from __future__ import annotations

from dataclasses import asdict, fields, replace

from fablint.model import Medium, RowSpec


def test_the_default_medium_is_that_of_a_row() -> None:
    spec = RowSpec(kernel="latency")
    assert {field.name for field in fields(Medium)} <= {field.name for field in fields(RowSpec)}
    assert replace(spec, **asdict(Medium())) == spec
    assert Medium.of(asdict(spec)) == Medium()

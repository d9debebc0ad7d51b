"""The thresholds of a site file: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from fablint.errors import UsageError
from fablint.model import Scope
from fablint.plan.check.site_thresholds import KEYS, SCOPES, parse_thresholds

EDGE = {"scope": "edge", "kernel": "bandwidth", "size": "1M", "value": "12.2 GB/s", "lower": "10%"}
LOCAL = {"scope": "local", "kernel": "latency", "size": 8, "value": "1.9 us", "upper": "0.2us"}


def written(*entries: dict[str, object], head: str = "format = 1\n") -> str:
    """A site file; values are written as TOML."""
    tables = (
        "[[threshold]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in entry.items()) for entry in entries
    )
    return head + "".join(tables)


def toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def test_value_and_tolerances_become_limits():
    edge, local, anywhere = parse_thresholds(
        written(EDGE, LOCAL, {"scope": "any", "kernel": "bibandwidth", "size": "64K", "value": "1 GiB/s"}), "site.toml"
    )
    assert (edge.scope, edge.kernel, edge.size, edge.quantity) == (Scope.EDGE, "bandwidth", 1 << 20, "bandwidth")
    assert (edge.value, edge.lowest, edge.highest) == (12.2e9, pytest.approx(10.98e9), None)
    assert (local.value, local.lowest, local.highest) == (pytest.approx(1.9e-6), None, pytest.approx(2.1e-6))
    assert (anywhere.scope, anywhere.lowest, anywhere.highest) == (None, 2.0**30, None)
    assert anywhere.source == "site.toml: threshold 3"
    assert edge.facts()["scope"] == "edge"
    assert anywhere.facts()["scope"] == "any"


def test_the_example_of_the_reference_is_one():
    page = (Path(__file__).parents[3] / "docs/reference/site-file.md").read_text()
    edge, anywhere = parse_thresholds(page.split("## Thresholds")[1].split("```toml")[1].split("```")[0], "site.toml")
    assert (edge.lowest, anywhere.highest) == (pytest.approx(10.98e9), pytest.approx(2.3e-6))


def test_both_tolerances_and_none():
    both = {**EDGE, "lower": "1 GB/s", "upper": "5 %"}
    alone = {key: value for key, value in LOCAL.items() if key != "upper"}
    first, second = parse_thresholds(written(both, alone), "site.toml")
    assert (first.lowest, first.highest) == (pytest.approx(11.2e9), pytest.approx(12.81e9))
    assert (second.lowest, second.highest) == (None, pytest.approx(1.9e-6))


def test_a_file_without_thresholds_has_none():
    assert parse_thresholds("format = 1", "site.toml") == ()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**EDGE, "scope": "egde"}, "threshold 2: unknown scope 'egde': did you mean edge"),
        ({**EDGE, "scope": 3}, "threshold 2: unknown scope 3: choose intra-node, edge, local, global or any"),
        ({**EDGE, "kernel": "bandwith"}, "threshold 2: unknown kernel 'bandwith': did you mean bandwidth"),
        ({**EDGE, "kernel": "bcast"}, "threshold 2: unknown kernel 'bcast'"),
        ({**EDGE, "value": "12.2 us"}, "threshold 2: value: 'us' is not a unit of a bandwidth: use B/s, kB/s"),
        ({**LOCAL, "value": "2 MB/s"}, "threshold 2: value: 'MB/s' is not a unit of a latency: use s, ms, us or ns"),
        ({**EDGE, "value": "-1 GB/s"}, "threshold 2: value: '-1 GB/s' is negative"),
        ({**EDGE, "value": "0 GB/s"}, "threshold 2: value: '0 GB/s' is nothing"),
        ({**EDGE, "value": 12.2}, 'threshold 2: value: 12.2 is not a figure with a unit: write it as "12.2 GB/s"'),
        ({**EDGE, "value": "inf GB/s"}, "threshold 2: value: 'inf GB/s' is not a figure with a unit"),
        ({**EDGE, "lower": "-10%"}, "threshold 2: lower: '-10%' is negative"),
        ({**EDGE, "lower": "101%"}, "threshold 2: lower: '101%' is more than the value"),
        ({**EDGE, "lower": "13 GB/s"}, "threshold 2: lower: '13 GB/s' is more than the value"),
        ({**EDGE, "lower": 0.1}, 'threshold 2: lower: 0.1 is not a figure with a unit: write it .* such as "10%"'),
        ({**EDGE, "size": "1X"}, "threshold 2: size: '1X' is not a size"),
        ({**EDGE, "size": 0}, "threshold 2: size: bandwidth has no meaning at size 0"),
        ({**EDGE, "size": True}, "threshold 2: size: True is not a size"),
        ({**EDGE, "sise": "1M"}, "threshold 2: unknown key 'sise': did you mean size"),
        ({"scope": "edge"}, "threshold 2: no kernel: it needs scope, kernel, size and value"),
        (LOCAL, "threshold 2: local latency 8 has threshold 1 already"),
    ],
)
def test_a_wrong_entry_is_named(entry, message):
    with pytest.raises(UsageError, match=f"^site.toml: {message}"):
        parse_thresholds(written(LOCAL, entry), "site.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format = ", r"not TOML: Invalid value \(at end of document\)"),
        ("a = " + "[" * 5000, "not TOML: "),
        ("a = " + "1" * 5000, "not TOML: "),
        ("", "no format: write format = 1 on top"),
        ("format = 2", "format 2: write format = 1"),
        ("format = true", "format True: write format = 1"),
        ("format = 1\nthreshold = 3", r"threshold is not a list of tables: begin each with \[\[threshold\]\]"),
        ("format = 1\n[threshold]\nscope = 'edge'", "threshold is not a list of tables"),
        ("format = 1\n[[treshold]]", "unknown key 'treshold': did you mean threshold"),
    ],
)
def test_a_file_that_is_none_is_refused(text, message):
    with pytest.raises(UsageError, match=f"^site.toml: {message}"):
        parse_thresholds(text, "site.toml")


VALUES = st.one_of(
    st.sampled_from([*SCOPES, "bandwidth", "latency", "1M", "8", "10%", "5 us", "12 GB/s", "1e99 ns", "²"]),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters='"\\'), max_size=8).filter(str.isprintable),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: round(value, 3)),
    st.booleans(),
)


@given(st.lists(st.dictionaries(st.sampled_from([*KEYS, "other"]), VALUES), max_size=3))
def test_whatever_is_written_is_read_or_refused_in_one_line(entries):
    try:
        thresholds = parse_thresholds(written(*entries), "site.toml")
    except UsageError as error:
        assert str(error).startswith("site.toml")
        assert "\n" not in str(error)
    else:
        assert len(thresholds) == len(entries)
        assert all(threshold.lowest is None or 0 <= threshold.lowest <= threshold.value for threshold in thresholds)


@given(st.text(max_size=60))
def test_no_text_is_read_in_anger(text):
    try:
        parse_thresholds(text, "site.toml")
    except UsageError as error:
        assert "\n" not in str(error)

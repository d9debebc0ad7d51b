"""net_sanitizer's text, old releases and new ones: the right numbers, and what they have to be multiplied by."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from import_cases import text_of, texts

from fablint.errors import UsageError
from fablint.store.importing import parse_net_sanitizer
from fablint.store.importing.net_sanitizer import Figures
from pinned import pinned_by

PINNED = pinned_by("store.toml", __file__)

ALL = texts("net_sanitizer")


def parsed(name):
    return parse_net_sanitizer(text_of("net_sanitizer", f"net_sanitizer-{name}.txt"))


def test_the_header_line():
    assert parsed("c30b104-alltoall-openmpi4.1.4-np2").counts[0].values == {
        "nservers": 0,
        "nclients": 2,
        "niters": 32,
        "nflight": 12,
        "sequential": 0,
        "ssize": 1,
        "esize": 4194304,
    }


def test_sum_min_and_max_of_every_size():
    found = parsed("c30b104-alltoall-openmpi4.1.4-np2").summaries
    assert [one.size for one in found] == [1 << power for power in range(23)]
    assert (found[0].line, found[0].direction) == (4, "Und")
    assert found[-1].sum == Figures(0.0, 10346, 154.65, 2586)
    assert found[-1].min == Figures(0.0, 5173, 77.32, 1293)
    assert found[-1].max == Figures(0.0, 5173, 77.33, 1293)


def test_put_and_get_are_distinguished():
    put, get = parsed("c30b104-clientserver-openmpi4.1.4-np2").summaries
    assert (put.direction, put.sum.bandwidth) == ("Put", 10425)
    assert (get.direction, get.sum.bandwidth, get.max.iops) == ("Get", 10079, 161259)


def test_connections_of_verbose():
    found = parsed("c30b104-alltoall-verbose-sequential-openmpi4.1.4-np4")
    assert len(found.connections) == 12
    last = found.connections[-1]
    assert (last.line, last.src, last.dest, last.direction, last.size) == (14, "1", "3", "Und", 65536)
    assert last.figures == Figures(0.0, 1875, 3.33, 29992)


def test_older_releases_print_the_sum_alone():
    both = parsed("readme-clientserver")
    assert [summary.direction for summary in both.summaries] == ["Put"] * 23 + ["Get"] * 23
    assert both.summaries[22].sum == Figures(12.0, 21770, 293.98, 5443)
    assert both.summaries[22].min is None
    assert [one.text for one in both.foreign] == [
        PINNED["run_netsan.sh --servers server"],
        "Servers(2): server2:2,server3:2",
        "Clients(8): client1,client2,client3,client4",
    ]
    all_to_all = parsed("readme-alltoall").summaries
    assert (len(all_to_all), all_to_all[0].direction) == (23, "")
    assert all_to_all[-1].sum == Figures(58.2, 31632, 812.62, 7908)


def test_host_names_of_the_verbose_example():
    found = parsed("readme-verbose").connections
    slow = {name for one in found for name in (one.src, one.dest) if one.figures.bandwidth < 4000}
    assert len(found) == 12
    assert set.intersection(*({one.src, one.dest} for one in found if one.figures.bandwidth < 4000)) == {"client3-2"}
    assert "client3-2" in slow


@pytest.mark.parametrize("name", ALL)
def test_the_units_of_the_original_are_said(name):
    found = parse_net_sanitizer(text_of("net_sanitizer", name))
    assert (found.megabyte, found.latency_factor) == (1 << 20, 10)


def test_the_factors_are_right():
    """100 operations of 1 MiB/s ... at 1478 operations/s of 4 MiB one takes 677 us, which is printed as 67.67."""
    one = parsed("readme-verbose").connections[0].figures
    found = parsed("readme-verbose")
    assert one.latency * found.latency_factor * 1e-6 == pytest.approx(1 / one.iops, rel=1e-3)
    assert one.bandwidth * found.megabyte == pytest.approx(one.iops * 4194304, rel=1e-3)


def test_names_that_run_into_each_other_cannot_be_read_and_are_named():
    text = text_of("net_sanitizer", "net_sanitizer-readme-verbose.txt")
    text = text.replace("        client2-1        client1-0", "       x1000c0s0b0n0-1x1000c0s0b0n1-0", 1)
    found = parse_net_sanitizer(text)
    assert len(found.connections) == 11
    assert any("x1000c0s0b0n0-1x1000c0s0b0n1-0" in one.text and one.line == 5 for one in found.foreign)


def test_a_cut_last_line_is_no_row():
    text = text_of("net_sanitizer", "net_sanitizer-readme-verbose.txt").rstrip("\n")
    found = parse_net_sanitizer(text[:-1])
    assert len(found.connections) == 11
    assert [one.line for one in found.foreign] == [1, 16]


@pytest.mark.parametrize("text", ["", "hello\n", "1 2 3 4 5\n"])
def test_a_text_of_something_else_is_refused(text):
    with pytest.raises(UsageError, match="the text has no output of net_sanitizer"):
        parse_net_sanitizer(text)


@settings(max_examples=100)
@given(st.sampled_from(ALL), st.data())
def test_no_damage_makes_it_fail(name, data):
    text = text_of("net_sanitizer", name)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    put = data.draw(st.text(max_size=30) | st.sampled_from([text[start:end] * 2, "#nservers=", "9" * 5000, " -nan "]))
    try:
        parse_net_sanitizer(text[:start] + put + text[end:])
    except UsageError as error:
        assert "\n" not in str(error)

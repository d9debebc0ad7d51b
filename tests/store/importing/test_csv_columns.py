"""Headings of CSV files: names, units and separators as people write them; what is unclear is refused by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fablint.errors import UsageError
from fablint.model import Run
from fablint.store import import_run
from pinned import pinned_by

PINNED = pinned_by("store.toml", __file__)


def imported(folder: Path, text: str) -> Run:
    path = folder / "pairs.csv"
    path.write_text(text)
    return import_run([path])


def mean(run: Run, kernel: str, src: int = 0, dst: int = 1) -> float:
    (row,) = (row for row in run.rows if row.kernel == kernel)
    return float(np.asarray(row.arrays["time_mean"])[0, src, dst, 0])


RATES = {
    "bandwidth": 1e6,
    "bandwidth_gbps": 1e9 / 8,
    "bandwidth (Gb/s)": 1e9 / 8,
    "BW[GB/s]": 1e9,
    "avg_bw_GiB/s": 2.0**30,
    "Throughput MBps": 1e6,
    "bandwidth_mbps": 1e6 / 8,
    "bandwidth_MiB_s": 2.0**20,
    "bandwidth_GBytes/sec": 1e9,
    "bandwidth_Mbit/s": 1e6 / 8,
}
TIMES = {
    "time": 1.0,
    "time_us": 1e-6,
    "latency (usec)": 1e-6,
    "lat_ns": 1e-9,
    "Avg Latency [ms]": 1e-3,
    "time (µs)": 1e-6,
}


@pytest.mark.parametrize(("heading", "unit"), RATES.items())
def test_a_bandwidth_has_the_unit_of_its_heading(tmp_path: Path, heading: str, unit: float) -> None:
    run = imported(tmp_path, f"src,dst,size,{heading}\na,b,1000,2.5\nb,a,1000,5\n")
    assert mean(run, "bandwidth") == pytest.approx(1000 / (2.5 * unit))


@pytest.mark.parametrize(("heading", "unit"), TIMES.items())
def test_a_time_has_the_unit_of_its_heading(tmp_path: Path, heading: str, unit: float) -> None:
    run = imported(tmp_path, f"src,dst,size,{heading}\na,b,1000,0.25\nb,a,1000,5\n")
    assert mean(run, "latency") == pytest.approx(0.25 * unit)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_columns_in_any_order_with_any_separator(tmp_path: Path, separator: str) -> None:
    lines = [["Bandwidth (GB/s)", "Destination", "comment", "Message Size", "Source"], ["12.5", "b", "x", "1024", "a"]]
    run = imported(tmp_path, "\n".join(separator.join(line) for line in lines) + "\n")
    assert (run.hosts, mean(run, "bandwidth")) == (["a", "b"], pytest.approx(1024 / 12.5e9))


def test_a_decimal_comma_between_semicolons(tmp_path: Path) -> None:
    assert mean(imported(tmp_path, "src;dst;size;latency_us\na;b;8;1,25\n"), "latency") == pytest.approx(1.25e-6)


def test_a_column_states_the_unit_of_each_line(tmp_path: Path) -> None:
    run = imported(
        tmp_path, "src,dst,size,bandwidth,unit\na,b,1000,193.5,Gb/s\nb,a,1000,24.2,GB/s\na,c,1000,9,furlongs\n"
    )
    assert mean(run, "bandwidth") == pytest.approx(1000 / (193.5e9 / 8))
    assert mean(run, "bandwidth", 1, 0) == pytest.approx(1000 / 24.2e9)
    (line,) = run.facts.imported.lines_left_out
    assert (line.line, line.why) == (4, PINNED["the unit of bandwidth"])


def test_a_file_with_times_and_bandwidths_has_a_row_of_each(tmp_path: Path) -> None:
    run = imported(tmp_path, "from,to,bytes,latency_us,bandwidth_gbps\na,b,1000,2.5,80\nb,a,1000,2.5,-\n")
    assert {row.kernel: row.facts.state for row in run.rows} == {
        "latency": "complete",
        "bandwidth": "interrupted",
    }
    assert mean(run, "bandwidth") == pytest.approx(1e-7)


@pytest.mark.parametrize(
    ("heading", "problem"),
    [
        ("Src,Dst,Bandwidth", "no column size"),
        ("src,dst,size,gain", "no column of figures"),
        ("src,dst,size,latency", "the column 'latency' states no unit"),
        ("src,dst,size,bandwidth_gb/s", "the column 'bandwidth_gb/s' states no unit that is known"),
        ("src;dst;size;bandwidth_furlongs", "the column 'bandwidth_furlongs' states no unit that is known"),
    ],
)
def test_a_near_miss_names_the_column(tmp_path: Path, heading: str, problem: str) -> None:
    with pytest.raises(UsageError, match="the heading") as caught:
        imported(tmp_path, f"{heading}\na,b,8,1\n")
    assert problem in str(caught.value)


def test_hosts_may_be_ipv6_addresses(tmp_path: Path) -> None:
    run = imported(tmp_path, "src,dst,size,time_us\n2001:db8::1,[2001:db8::2]:0,8,1.5\n[2001:db8::2]:0,n1:3,8,1.5\n")
    assert run.hosts == ["2001:db8::1", "2001:db8::2", "n1"]


@pytest.mark.parametrize(
    ("ends", "ranks"),
    [
        (["n1:1 n0:0", "n1:0 n0:1"], ["n1", "n1", "n0", "n0"]),  # each host numbers its ranks
        (["n1:3 n0:0", "n0:1 n1:2"], ["n0", "n0", "n1", "n1"]),  # the ranks of the run are numbered
        (["n1:b n0:a", "n0:b n1:a"], ["n1", "n0", "n0", "n1"]),  # names that are no numbers
    ],
)
def test_ranks_are_in_the_order_of_their_numbers(tmp_path: Path, ends: list[str], ranks: list[str]) -> None:
    """Findings name a rank by its number."""
    lines = [f"{pair.replace(' ', ',')},8,{time}" for time, pair in enumerate(ends, 1)]
    run = imported(tmp_path, "\n".join(["src,dst,size,time_us", *lines]) + "\n")
    assert list(run.rank_host) == ranks

"""The share of lines whose figures cannot be read: of the lines with figures, without headings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from import_cases import written

from fablint.store.importing.launcher_text import is_mostly_figures

OSU = "# OSU MPI Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
NET_SANITIZER = """#nservers=0 nclients=2 niters=1 nflight=1 ssize=1, esize=8
#  src  dest Dir size(B) time(s) bw(MB/s) lat(us) iops
"""


def osu(readable: int, unreadable: int) -> str:
    rows = [f"{1 << at}  {1.5 if at < readable else 0.0:.2f}\n" for at in range(readable + unreadable)]
    return OSU + "".join(rows)


def net_sanitizer(readable: int, unreadable: int) -> str:
    hosts = [f"n{at}-{at}" for at in range(readable + unreadable + 1)]
    rates = ["5000 60.1 1500"] * readable + ["0 0.0 0"] * unreadable
    pairs = zip(hosts, hosts[1:], rates, strict=False)
    return NET_SANITIZER + "".join(f"  {src}  {dst} Und 4194304  0.0 {rate}\n" for src, dst, rate in pairs)


@pytest.mark.parametrize("text_of", [osu, net_sanitizer])
@pytest.mark.parametrize(("readable", "unreadable"), [(1, 2), (2, 3), (1, 9), (20, 21)])
def test_more_unreadable_than_readable_lines(
    tmp_path: Path, text_of: Callable[[int, int], str], readable: int, unreadable: int
) -> None:
    run = written(tmp_path, text_of(readable, unreadable))
    assert run.facts.imported is not None
    assert run.state == "interrupted"
    assert f"{unreadable} of {readable + unreadable} lines" in "; ".join(run.facts.imported.missing)


@pytest.mark.parametrize(("readable", "unreadable"), [(1, 1), (2, 1), (9, 1), (21, 20)])
def test_at_most_as_many_unreadable_lines(tmp_path: Path, readable: int, unreadable: int) -> None:
    assert written(tmp_path, osu(readable, unreadable)).state == "complete"


@pytest.mark.parametrize(
    ("line", "is_row"),
    [
        ("1024   1.50", True),
        ("  n1-0   n2-1 Und 4194304  0.1 5911 67.67 1478", True),
        ("   8   2   float   sum   -1   10.5  0.0  0.0   0", True),
        (" 0       N/A    276.07", True),
        ("# [ pairs: 1 ] [ window size: 64 ]", False),
        (" TX depth        : 128", False),
        ("", False),
        ("             3.45", True),
    ],
)
def test_lines_with_figures(line: str, is_row: bool) -> None:
    assert is_mostly_figures(line) is is_row

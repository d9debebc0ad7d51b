"""CSV as people and spreadsheets write it: separators, marks of thousands, prefixes of sizes, several units."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import times_of, written

from fablint.errors import UsageError
from fablint.store import import_run

US = pytest.approx([1.25e-6, 1.5e-6])


@pytest.mark.parametrize(
    "text",
    [
        "src dst size lat_us\nn1 n2 8 1.25\nn2 n1 8 1.5\n",
        "src   dst     size   latency_us\nn1    n2    8   1.25\nn2    n1    8   1.5\n",
        "sep=;\nsrc;dst;size;lat_us\nn1;n2;8;1,25\nn2;n1;8;1,5\n",
        "sep=,\r\nsrc,dst,size,lat_us\r\nn1,n2,8,1.25\r\nn2,n1,8,1.5\r\n",
        ",src,dst,size,lat_us\n0,n1,n2,8,1.25\n1,n2,n1,8,1.5\n",
        "src,dst,size,lat_us,\nn1,n2,8,1.25,\nn2,n1,8,1.5,\n",
        ";src;dst;size;lat_us;\n0;n1;n2;8;1,25;\n1;n2;n1;8;1,5;\n",
        "src\tdst\tsize\tlat_us\nn1\tn2\t8\t1,25\nn2\tn1\t8\t1,5\n",
        'src,dst,size,lat_ns\nn1,n2,8,"1,250"\nn2,n1,8,"1,500.0"\n',
        "src;dst;size;lat_ns\nn1;n2;8;1.250,0\nn2;n1;8;1,500.0\n",
    ],
)
def test_forms_of_the_same_figures(tmp_path: Path, text: str) -> None:
    run = written(tmp_path, text)
    assert (run.state, run.hosts) == ("complete", ["n1", "n2"])
    assert times_of(run.rows[0]) == US


def test_a_micro_sign_of_a_code_page(tmp_path: Path) -> None:
    path = tmp_path / "output.csv"
    path.write_bytes("src,dst,size,latency (\xb5s)\nn1,n2,8,1.25\nn2,n1,8,1.5\n".encode("latin-1"))
    assert times_of(import_run([path], []).rows[0]) == US


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [
        ("8", 8),
        ("4K", 4096),
        ("4k", 4096),
        ("1M", 1 << 20),
        ("1 MiB", 1 << 20),
        ("2GiB", 2 << 30),
        ('"1,048,576"', 1 << 20),
    ],
)
def test_sizes_may_have_a_prefix(tmp_path: Path, size: str, bytes_: int) -> None:
    (row,) = written(tmp_path, f"src,dst,size,lat_us\nn1,n2,{size},1.25\nn2,n1,{size},1.5\n").rows
    assert row.sizes == (bytes_,)


@pytest.mark.parametrize("size", ["4KB", "1MB", "1.5M", "4 K B", "999999999999G", '"1,04"'])
def test_a_size_that_may_be_either_is_refused(tmp_path: Path, size: str) -> None:
    with pytest.raises(UsageError, match="size is not a number of bytes"):
        written(tmp_path, f"src,dst,size,lat_us\nn1,n2,{size},1.25\nn2,n1,{size},1.5\n")


@pytest.mark.parametrize("heading", ["bandwidth_MBps,bandwidth_gbps", "bandwidth_gbps,bw (MB/s)"])
def test_the_column_with_the_most_digits_counts(tmp_path: Path, heading: str) -> None:
    first, second = ("1234.56", "9.9") if heading.startswith("bandwidth_M") else ("9.9", "1234.56")
    (row,) = written(
        tmp_path, f"src,dst,size,{heading}\nn1,n2,1048576,{first},{second}\nn2,n1,1048576,{first},{second}\n"
    ).rows
    assert times_of(row) == pytest.approx([1048576 / 1234.56e6] * 2)


def test_columns_of_one_quantity_that_differ_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the columns 'lat_us' and 'avg_latency_us' have different figures"):
        written(tmp_path, "src,dst,size,lat_us,avg_latency_us\nn1,n2,8,1.25,1.45\nn2,n1,8,1.5,1.5\n")


@pytest.mark.parametrize(
    "line", ["copied from n1 to n2", "from to size", "src dst size time and more", "messages from rank to rank"]
)
def test_a_sentence_is_no_heading(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError, match="not the output of a known benchmark"):
        written(tmp_path, f"{line}\nn1 n2 8 1.25\n")


TABLE = "src,dst,size,lat_us\nn1,n2,8,1.25\nn2,n1,8,1.5\n"


@pytest.mark.parametrize("second", [TABLE, TABLE.replace(",", ", "), TABLE.replace("n2", "n3")])
def test_a_heading_that_is_repeated_is_no_pair(tmp_path: Path, second: str) -> None:
    run = written(tmp_path, TABLE + second)
    assert run.hosts == sorted({"n1", "n2", *(["n3"] if "n3" in second else [])})
    assert len(times_of(run.rows[0])) == 4


@pytest.mark.parametrize(
    "heading", ["src,dst,size,bandwidth", "size,src,dst,lat_us", "host1,host2,bytes,lat_ns", "dst,src,size,lat_us"]
)
def test_another_heading_is_refused(tmp_path: Path, heading: str) -> None:
    with pytest.raises(UsageError, match="line 4: another heading"):
        written(tmp_path, f"{TABLE}{heading}\nn1,n3,8,1.25\n")


@pytest.mark.parametrize("line", ["average,,8,1.375", "Mean,-,8,1.375", "total,,,2.75", ",max,8,1.5"])
def test_a_statistic_is_no_host(tmp_path: Path, line: str) -> None:
    run = written(tmp_path, f"{TABLE}{line}\n")
    assert (run.state, run.hosts) == ("complete", ["n1", "n2"])
    assert run.facts.imported is not None
    assert len(run.facts.imported.lines_left_out) == 1

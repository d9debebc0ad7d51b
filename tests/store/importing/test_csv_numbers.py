"""CSV: decimal marks that other figures of the file show, rules of tables, and names of columns with their unit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from import_cases import times_of, written

from fablint.errors import UsageError
from fablint.store import import_run
from fablint.store.importing.csv_numbers import decimal_mark, plain_figure


@pytest.mark.parametrize(
    ("figures", "mark"),
    [
        (["1.234", "12.345,6"], ","),
        (["1.234", "0,5"], ","),
        (["1.234", "1234,567"], ","),
        (["1.234", "1.234.567"], ","),
        (["1,234", "12,345.6"], "."),
        (["1,234", "0.5"], "."),
        (["1,234", "1,234,567"], "."),
        (["1,234", "1.5e3"], "."),
        (["1,234", "1.234"], ""),
        (["0,5", "0.5"], ""),
        (["10.0.0.1:3", "n1,5", "-", "nan", ""], ""),
        ([], ""),
    ],
)
def test_a_figure_of_one_reading_decides_for_its_file(figures: list[str], mark: str) -> None:
    assert decimal_mark(figures) == mark


@pytest.mark.parametrize(
    ("text", "mark", "between_commas", "plain"),
    [
        ("1.234", ",", False, "1234"),
        ("1.234", ".", False, "1.234"),
        ("1.234", "", False, "1.234"),
        ("1,234", ".", False, "1234"),
        ("1,234", ",", False, "1.234"),
        ("1,234", "", False, "1.234"),
        ("1,234", "", True, "1234"),
        ("12,345", ",", True, "12.345"),
        ("-1.234.567,5", "", False, "-1234567.5"),
        ("1,5e3", "", False, "1.5e3"),
        ("12345.6", ",", False, "12345.6"),  # it has one reading
        ("1,23,4", "", False, "1,23,4"),
        ("1.23,456,7", "", False, "1.23,456,7"),
        ("nan", ",", False, "nan"),
    ],
)
def test_marks_of_a_figure(text: str, mark: str, between_commas: bool, plain: str) -> None:
    assert plain_figure(text, mark, between_commas=between_commas) == plain


@pytest.mark.parametrize(
    ("heading", "lines", "seconds"),
    [
        ("src;dst;size;lat_ns", ["n1;n2;8;1.250", "n2;n1;8;12.500,5"], [1.25e-6, 12.5005e-6]),
        ("src\tdst\tsize\tlat_ns", ["n1\tn2\t8\t1,250", "n2\tn1\t8\t1500.5"], [1.25e-6, 1.5005e-6]),
        ("src,dst,size,lat_us", ['n1,n2,8,"1,250"', 'n2,n1,8,"1,5"'], [1.25e-6, 1.5e-6]),
        ("src|dst|size|lat_ns", ["n1|n2|8|1.250", "n2|n1|8|1.500,0"], [1.25e-6, 1.5e-6]),
    ],
)
def test_all_figures_of_a_file_have_its_mark(
    tmp_path: Path, heading: str, lines: list[str], seconds: list[float]
) -> None:
    run = written(tmp_path, "\n".join([heading, *lines, ""]))
    assert (run.state, times_of(run.rows[0])) == ("complete", pytest.approx(seconds))


@pytest.mark.parametrize(
    "text",
    [
        "| src | dst | size | lat_us |\n|-----|:---:|-----:|--------|\n| n1 | n2 | 8 | 1.25 |\n| n2 | n1 | 8 | 1.5 |\n",
        " src | dst | size | lat_us\n-----+-----+------+--------\n n1 | n2 | 8 | 1.25\n n2 | n1 | 8 | 1.5\n(2 rows)\n",
        "+----+----+\n|src|dst|size|lat_us|\n+----+----+\n|n1|n2|8|1.25|\n|n2|n1|8|1.5|\n+----+----+\n",
        "src dst size lat_us\n=== === ==== ======\nn1 n2 8 1.25\nn2 n1 8 1.5\n",
        "src  dst  size  lat_us\n----------------------\nn1  n2  8  1.25\nn2  n1  8  1.5\n",
    ],
)
def test_rules_of_a_table_are_no_lines_of_it(tmp_path: Path, text: str) -> None:
    run = written(tmp_path, text)
    assert (run.state, run.hosts, times_of(run.rows[0])) == ("complete", ["n1", "n2"], pytest.approx([1.25e-6, 1.5e-6]))


@pytest.mark.parametrize("size", ["SIZE(B)", "size_b", "Size [bytes]", "Message Size (B)", "msg_size_bytes"])
@pytest.mark.parametrize("time", ["lat_avg_us", "Latency mean (us)", "latency_average_us", "avg_time_us"])
def test_names_of_sizes_and_means(tmp_path: Path, size: str, time: str) -> None:
    head = f"src,dst,{size},lat_min_us,{time},lat_max_us"
    run = written(tmp_path, f"{head}\nn1,n2,8,0.5,1.25,9.5\nn2,n1,8,0.5,1.5,9.5\n")
    assert times_of(run.rows[0]) == pytest.approx([1.25e-6, 1.5e-6])


@pytest.mark.parametrize(
    ("key", "seconds"),
    [
        ("Bandwidth (GB/s)", 2 * 4096 / 48.5e9),
        ("bandwidth_gbps", 2 * 4096 / (48.5e9 / 8)),
        ("avg bandwidth [GiB/s]", 2 * 4096 / (48.5 * 2**30)),
        ("bandwidth", 2 * 4096 / 48.5e6),
        ("latency_ns", 48.5e-9),
        ("Latency (ms)", 48.5e-3),
        ("latency matrix", 48.5e-6),
    ],
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_the_name_of_a_table_of_clusterkit_states_its_unit(
    tmp_path: Path, key: str, seconds: float, is_nested: bool
) -> None:
    table = [[0, 48.5], [48.5, 0]]
    document = {"nodes": ["n1", "n2"], "msg_size": 4096, key: {"data": table} if is_nested else table}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    assert times_of(import_run([path]).rows[0]) == pytest.approx([seconds] * 2)


@pytest.mark.parametrize("key", ["bandwidth_GBs", "bandwidth (us)", "bandwidth (gb/s)", "latency (cycles)"])
def test_a_unit_in_the_name_of_a_table_that_is_not_known_is_refused(tmp_path: Path, key: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"nodes": ["n1", "n2"], key: [[0, 48.5], [48.5, 0]]}))
    with pytest.raises(UsageError, match=r"the unit '.*' of .* is not known"):
        import_run([path])


@pytest.mark.parametrize(("size", "bytes_"), [("1048576.0", 1 << 20), ("8.00", 8), ("4096.", None), ("8.5", None)])
def test_sizes_of_a_column_of_floats(tmp_path: Path, size: str, bytes_: int | None) -> None:
    text = f"src,dst,size,lat_us\nn1,n2,{size},1.25\nn2,n1,{size},1.5\n"
    if bytes_ is None:
        with pytest.raises(UsageError, match="size is not a number of bytes"):
            written(tmp_path, text)
    else:
        assert written(tmp_path, text).rows[0].sizes == (bytes_,)


@pytest.mark.parametrize(
    ("lines", "hosts", "times"),
    [
        (["n1.site.org,n2.site.org,8,1.25", "n2,n1,8,1.5"], ["n1.site.org", "n2.site.org"], [1.25e-6, 1.5e-6]),
        (["n1,n2.site.org,8,1.25", "N2,N1.site.org,8,1.5"], ["n1", "n2.site.org"], [1.25e-6, 1.5e-6]),
        (["n1,n2,8,1.25", "n2,n1.site.org,8,1.5", "n1,n1.site.org,8,9"], ["n1", "n2"], [1.25e-6, 1.5e-6]),
        (["n1.a,n1.b,8,1.25", "n1.b,n1.a,8,1.5"], ["n1.a", "n1.b"], [1.25e-6, 1.5e-6]),
        (["10.0.0.1,10.0.0.2,8,1.25", "10.0.0.2,10.0.0.1,8,1.5"], ["10.0.0.1", "10.0.0.2"], [1.25e-6, 1.5e-6]),
    ],
)
def test_a_host_in_two_spellings_is_not_two_hosts(
    tmp_path: Path, lines: list[str], hosts: list[str], times: list[float]
) -> None:
    run = written(tmp_path, "\n".join(["src,dst,size,lat_us", *lines, ""]))
    assert (run.state, run.hosts, times_of(run.rows[0])) == ("complete", hosts, pytest.approx(times))


def test_a_host_in_two_spellings_is_one_host_of_several_files(tmp_path: Path) -> None:
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for path, other in zip(files, ("n1", "n1.site.org"), strict=True):
        path.write_text(f"src,dst,size,lat_us\n{other},n2,8,1.25\nn2,{other},8,1.5\n")
    run = import_run(files)
    assert (run.hosts, len(times_of(run.rows[0]))) == (["n1", "n2"], 4)


def test_the_size_of_a_message_is_not_the_sum_of_its_bytes(tmp_path: Path) -> None:
    (row,) = written(tmp_path, "src,dst,bytes,size,lat_us\nn1,n2,8000,8,1.25\nn2,n1,8000,8,1.5\n").rows
    assert row.sizes == (8,)

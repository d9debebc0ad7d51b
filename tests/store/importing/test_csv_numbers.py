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

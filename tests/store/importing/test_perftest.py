"""Output of perftest, as text and as the JSON that its source writes (perftest_parameters.c)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fablint.errors import UsageError
from fablint.model import Row, Run
from fablint.store import import_run

OUTSIDE = Path(__file__).parents[2] / "fixtures" / "outside"
MIB = 2.0**20


def run_of(number: str, hosts: list[str] | None = None) -> Run:
    (path,) = OUTSIDE.glob(f"{number}-*")
    return import_run([path], hosts or [])


def written(folder: Path, text: str) -> Run:
    path = folder / "output.txt"
    path.write_text(text)
    return import_run([path])


def means(row: Row) -> list[float]:
    times = np.asarray(row.arrays["time_mean"]).ravel()
    return [float(time) for time in times if np.isfinite(time)]


def test_the_table_of_perftest() -> None:
    (row,) = run_of("56", ["n1", "n2"]).rows
    assert (row.kernel, row.sizes) == ("put_bandwidth", (65536,))
    assert means(row) == pytest.approx([65536 / (46885.43 * MIB)])


BW = (
    " #bytes     #iterations    BW peak[{0}]    BW average[{0}]   MsgRate[Mpps]\n 65536      5000  {1}  {1}  0.190735\n"
)
LAT = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec]\n 2  1000  1.59  4.57  1.62  1.63  0.05  1.75  4.57\n"
)
PERFTEST = {
    "gigabits": ("Send BW", BW.format("Gb/sec", "100.00"), "bandwidth", 65536 / 12.5e9),
    "mebibytes": ("RDMA_Read BW", BW.format("MiB/sec", "11920.93"), "get_bandwidth", 65536 / 12.5e9),
    "both directions": ("Send Bidirectional BW", BW.format("MB/sec", "23841.86"), "bibandwidth", 65536 / 12.5e9),
    "half a round trip": ("RDMA_Write Latency", LAT, "put_latency", 1.63e-6),
    "a list of requests": ("RDMA_Write Post List BW", BW.format("Gb/sec", "100.00"), "put_bandwidth", 65536 / 12.5e9),
}


@pytest.mark.parametrize(("title", "table", "kernel", "seconds"), PERFTEST.values(), ids=PERFTEST)
def test_units_of_perftest(tmp_path: Path, title: str, table: str, kernel: str, seconds: float) -> None:
    (row,) = written(tmp_path, f"                    {title} Test\n Mtu             : 4096[B]\n{table}").rows
    assert (row.kernel, means(row)) == (kernel, pytest.approx([seconds], rel=1e-5))


@pytest.mark.parametrize("rate", [100.0, 12.5e9 / MIB])
def test_json_of_perftest(tmp_path: Path, rate: float) -> None:
    results = (
        f'"MsgSize": 65536,\n"n_iterations": 5000,\n"BW_peak": {rate},\n"BW_average": {rate},\n"MsgRate": 0.190735'
    )
    run = written(
        tmp_path, f'{{\n"test_info": {{\n"test": "RDMA_Write_BW_Test"\n}},\n"results": {{\n{results}\n}}\n}}\n'
    )
    assert means(run.rows[0]) == pytest.approx([65536 / 12.5e9], rel=1e-5)


@pytest.mark.parametrize(
    ("title", "kernel"),
    [
        ("Send_Latency_Test", "latency"),
        ("RDMA_Read_Latency_Test", "get_latency"),
        ("RDMA_Write_Post_List_BW_Test", "put_bandwidth"),
        ("Send_Bidirectional_Post_List_BW_Test", "bibandwidth"),
    ],
)
def test_titles_of_perftest_in_json(tmp_path: Path, title: str, kernel: str) -> None:
    figures = {"MsgSize": 2, "n_iterations": 1000, "t_avg": 1.63, "BW_average": 10.0, "MsgRate": 5.24288}
    (row,) = written(tmp_path, json.dumps({"test_info": {"test": title}, "results": figures}, indent=0)).rows
    assert row.kernel == kernel


@pytest.mark.parametrize("title", ["RDMA_Write_imm_BW_Test", "Send_imm_Latency_Test", "Atomic_FETCH_AND_ADD_BW_Test"])
def test_tests_of_perftest_without_a_kernel_are_refused(tmp_path: Path, title: str) -> None:
    text = json.dumps({"test_info": {"test": title}, "results": {"MsgSize": 2, "t_avg": 1.63}}, indent=0)
    with pytest.raises(UsageError, match="not a supported test"):
        written(tmp_path, text)


def report_both(local: float, remote: float, unit_rate: float) -> str:
    """JSON of `-b --report-both`: a report of each direction, in place of that of both."""
    reports = {
        key: {"MsgSize": 8388608, "n_iterations": 1000, "BW_peak": 0.0, "BW_average": rate, "MsgRate": rate * unit_rate}
        for key, rate in (("results_local", local), ("results_remote", remote))
    }
    return json.dumps({"test_info": {"test": "Send_Bidirectional_BW_Test"}, **reports}, indent=0)


@pytest.mark.parametrize(
    ("local", "remote", "unit"), [(180.0, 184.0, 1e9 / 8), (21457.0, 21934.0, MIB), (0.18, 0.184, 1e9 / 8)]
)
def test_both_directions_of_perftest_are_added(tmp_path: Path, local: float, remote: float, unit: float) -> None:
    (row,) = written(tmp_path, report_both(local, remote, unit / 8388608 / 1e6)).rows
    assert (row.kernel, means(row)) == ("bibandwidth", pytest.approx([2 * 8388608 / ((local + remote) * unit)]))


@pytest.mark.parametrize("missing", ["results_local", "results_remote"])
def test_one_direction_of_perftest_alone_is_refused(tmp_path: Path, missing: str) -> None:
    document = json.loads(report_both(180.0, 184.0, 1.0))
    del document[missing]
    with pytest.raises(UsageError, match="JSON without the results of perftest"):
        written(tmp_path, json.dumps(document, indent=0))


@pytest.mark.parametrize("rows", [(80.0, 160.0, 40.0), (80.0, 80.0), (160.0,)])
def test_each_line_of_a_size_is_a_measurement(tmp_path: Path, rows: tuple[float, ...]) -> None:
    """`--run_infinitely` prints a line of the same size at every interval."""
    lines = "".join(f" 65536      90000          0.00        {rate:.2f}         0.1\n" for rate in rows)
    text = "      Send BW Test\n #bytes  #iterations  BW peak[Gb/sec]  BW average[Gb/sec]  MsgRate[Mpps]\n"
    run = written(tmp_path, text + lines)
    assert (run.state, means(run.rows[0])) == ("complete", pytest.approx([65536 * 8 / rate * 1e-9 for rate in rows]))

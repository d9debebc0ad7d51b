"""The benchmarks of transports read what the programs print, and measure rows that the engine knows."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fablint.plan import parse_plan

ROOT = Path(__file__).parents[2]

# Lines printed by the programs of Debian 12: sockperf 3.7, iperf3 3.12, ucx_perftest 1.13, fi_pingpong 1.17.
SOCKPERF = "sockperf: ====> avg-latency=17.823 (std-dev=222.142)\nsockperf: Summary: Latency is 17.823 usec\n"
IPERF3 = '{"end": {"sum_sent": {"bits_per_second": 9e9}, "sum_received": {"bits_per_second": 8e9}}}'
UCX = "  50000   5.653   5.173   5.173   1.47   1.47   193320   193320\n"
PINGPONG = (
    "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    "8       20k     =20k     312k        1.07s      0.30      {:.2f}       {:.2f}\n"
)
# perftest 4.5 in the virtual machine.
SEND_LAT = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]\n"
    " 8       1000          51.72          1071.65      61.38             68.04            37.88\n"
)
WRITE_BW = (
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    " 65536      400              79.06              77.12              0.001234\n"
)


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_the_figure_of_each_program_is_read():
    programs = importlib.import_module("comparison.peer_programs")
    assert programs.read_sockperf(SOCKPERF, 64) == 17.823
    assert programs.read_iperf3(IPERF3, 1 << 20) == 1000
    assert programs.read_ucx(UCX, 8) == pytest.approx(1e6 / 193320)
    assert programs.read_ucx_rate(UCX, 1000) == pytest.approx(193.32)
    assert programs.read_pingpong(PINGPONG.format(26.85, 0.04), 8) == 26.85
    assert programs.read_pingpong(PINGPONG.format(0.35, 2.85), 8) == pytest.approx(1 / 2.85)
    assert programs.read_perftest_latency(SEND_LAT, 8) == 61.38
    assert programs.read_perftest_rate(WRITE_BW, 65536) == pytest.approx(80.866, abs=0.001)


@pytest.mark.parametrize("module", ["transport_peers", "rdma_peers"])
def test_every_comparison_has_a_row_of_the_plan_s_grammar(module):
    for one in importlib.import_module(module).COMPARISONS:
        assert len(one.sizes) == len(one.counts)
        parse_plan(one.row.format(count=100, windows=10, window=8) + f" --sizes {one.sizes[0]}", 2, "row")

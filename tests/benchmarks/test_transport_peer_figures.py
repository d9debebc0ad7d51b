"""benchmarks/transport_peers.py reads what the programs of the transports' libraries print."""

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


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("transport_peers")


def test_the_figure_of_each_program_is_read(peers):
    assert peers.read_sockperf(SOCKPERF, 64) == 17.823
    assert peers.read_iperf3(IPERF3, 1 << 20) == 1000
    assert peers.read_ucx(UCX, 8) == pytest.approx(1e6 / 193320)
    assert peers.read_ucx_rate(UCX, 1000) == pytest.approx(193.32)
    assert peers.read_pingpong(PINGPONG.format(26.85, 0.04), 8) == 26.85
    assert peers.read_pingpong(PINGPONG.format(0.35, 2.85), 8) == pytest.approx(1 / 2.85)


def test_every_comparison_has_a_row_of_the_plan_s_grammar(peers):
    for one in peers.COMPARISONS:
        assert len(one.sizes) == len(one.counts)
        parse_plan(one.row.format(count=100, windows=10, window=8) + f" --sizes {one.sizes[0]}", 2, "row")

"""net_sanitizer, bisec_bw, congestion, counters, latency_test: figures worked out by hand; tables without a figure."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from table_cases import both_ways, row, run_of, stored

from fablint.errors import UsageError
from fablint.report import Options, render_table
from fablint.report.tables.counters import packets
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

FIXTURES = Path(__file__).parents[2] / "fixtures"
US = 1e-6
MIB = 1 << 20


def table(run, name, **options):
    return render_table(run, name, Options(**options))


def words(found):
    return [line.split() for line in found.text.splitlines() if not line.startswith("#")]


# ------------------------------------------------------------------------------------------------ net_sanitizer

# Two servers, two clients, two rounds: client 2 takes 1 and 3 us an operation, client 3 takes 2 and 2 us.
CLIENTS = {(2, 0, 0): [1 * US], (3, 1, 0): [2 * US], (2, 1, 1): [3 * US], (3, 0, 1): [2 * US]}


def clients_row(kernel="rpc_put", **attributes):
    known = {
        "ranks": 4,
        "rounds": 2,
        "sizes": (1000,),
        "servers": 2,
        "windows": [12],
        "iterations": [10],
        "directions": "one",
    }
    return row(kernel, "clients-servers", CLIENTS, **{**known, **attributes})


def test_sums_minima_and_maxima_over_the_clients(tmp_path):
    found = table(stored(run_of(clients_row()), tmp_path), "net_sanitizer")
    (entry,) = found.as_dict()["rows"][0]["sizes"]
    # 120 operations to each of two servers: client 2 needs 480 us, client 3 as well
    assert entry["sum"] == pytest.approx({"time": 960 * US, "rate": 1e9, "latency": 2 * US, "iops": 1e6})
    assert entry["min"] == pytest.approx({"time": 480 * US, "rate": 5e8, "latency": 2 * US, "iops": 5e5})


def test_minimum_and_maximum_are_each_figures_own():
    cells = {(1, 0, 0): [1 * US], (2, 0, 0): [4 * US]}
    made = row("rpc_get", "clients-servers", cells, ranks=3, sizes=(1000,), iterations=[10], directions="one")
    (entry,) = table(run_of(made), "net_sanitizer").as_dict()["rows"][0]["sizes"]
    assert entry["min"] == pytest.approx({"time": 10 * US, "rate": 2.5e8, "latency": 1 * US, "iops": 2.5e5})
    assert entry["max"] == pytest.approx({"time": 40 * US, "rate": 1e9, "latency": 4 * US, "iops": 1e6})
    assert entry["sum"] == pytest.approx({"time": 50 * US, "rate": 1.25e9, "latency": 2.5 * US, "iops": 1.25e6})


def test_header_and_columns_are_the_references():
    reference = (FIXTURES / "net_sanitizer" / "net_sanitizer-c30b104-clientserver-openmpi4.1.4-np2.txt").read_text()
    ours = [
        line for line in table(run_of(clients_row()), "net_sanitizer").text.splitlines() if not line.startswith("# ")
    ]
    assert ours[0] == PINNED["nservers=2 nclients=2 niters=120"]
    peer = reference.splitlines()
    assert ours[1].rstrip() == peer[1].rstrip()
    assert ours[2] == peer[2]
    assert len(ours[3]) == len(peer[3])
    assert PINNED["Put 1000 0.000960 1000.00"].begins(ours[3])


def test_put_and_get_share_a_header_where_it_is_the_same():
    found = table(run_of(clients_row(), clients_row("rpc_get")), "net_sanitizer")
    assert found.text.count("#nservers=") == 1
    assert [line[:3] for line in found.text.splitlines()[3:] if line[:3] in ("Put", "Get")] == ["Put", "Get"]
    assert [entry["direction"] for entry in found.as_dict()["rows"]] == ["Put", "Get"]


@pytest.mark.parametrize(("kernel", "first"), [("rpc_put", ["n0-0", "n2-2"]), ("rpc_get", ["n2-2", "n0-0"])])
def test_connections_name_the_first_sender(kernel, first):
    found = table(run_of(clients_row(kernel)), "net_sanitizer", full=True)
    lines = [line for line in words(found) if len(line) == 8]
    assert lines[0][:4] == [*first, {"rpc_put": "Put", "rpc_get": "Get"}[kernel], "1000"]
    assert [float(word) for word in lines[0][4:]] == pytest.approx([120 * US, 1000, 1.0, 1e6])


def test_connections_of_any_name_stand_apart():
    hosts = ["x1000c0s0b0n0-with-a-long-name", "b", "c", "d"]
    found = table(run_of(clients_row(), hosts=hosts), "net_sanitizer", full=True)
    names = [line[:2] for line in words(found) if len(line) == 8]
    assert [f"{hosts[0]}-0", "c-2"] in names
    reference = (FIXTURES / "net_sanitizer" / "net_sanitizer-readme-verbose.txt").read_text().splitlines()
    plain = table(run_of(clients_row()), "net_sanitizer", full=True).text.splitlines()
    assert reference[3] in plain  # the heading of the columns


def test_the_slowest_connections_alone():
    found = table(run_of(clients_row()), "net_sanitizer", slowest=1).as_dict()["rows"][0]["connections"]
    assert [(one["src"], one["dest"]) for one in found] == [("n1-1", "n2-2")]


def test_all_to_all_counts_every_byte_once():
    cells = both_ways({(0, 1): [1 * US], (1, 0): [2 * US]})
    made = row("bandwidth", "all-pairs", cells, sizes=(1000,), iterations=[10])
    found = table(run_of(made), "net_sanitizer")
    assert found.as_dict()["rows"][0]["sizes"][0]["sum"]["rate"] == pytest.approx(1.5e9)
    assert "#nservers=0 nclients=2" in found.text
    assert "\nUnd    1000" in found.text


def test_without_a_fixed_count_the_least_is_said():
    made = clients_row(iterations=None, count=7)
    found = table(run_of(made), "net_sanitizer")
    assert "niters=84" in found.text  # seven windows of twelve
    assert PINNED["niters and time(s)"] in found.text


# ------------------------------------------------------------------------------------------------ bisec_bw

EXCHANGE = both_ways({(0, 2): [1e-3], (2, 0): [1e-3], (1, 3): [2e-3], (3, 1): [4e-3]})


def exchange_run(**attributes):
    made = row("exchange", "pairs", EXCHANGE, ranks=4, sizes=(MIB,), iterations=[20], **attributes)
    return run_of(made, hosts=["a", "a", "b", "b"])


def test_bandwidth_of_all_of_a_host_and_of_a_pair(tmp_path):
    facts = table(stored(exchange_run(), tmp_path), "bisec_bw").as_dict()
    (one,) = facts["sizes"]
    total = MIB * (1000 + 1000 + 500 + 250)
    assert one["bytes_per_s"] == pytest.approx(total)
    assert one["bytes_per_s_per_host"] == pytest.approx(total / 2)
    assert one["hosts"] == pytest.approx({"a": MIB * 1500, "b": MIB * 1250})
    assert [pair["bytes_per_s"] for pair in one["pairs"]] == pytest.approx([MIB * 2000, MIB * 750])
    assert [pair["seconds"] for pair in one["pairs"]] == pytest.approx([20e-3, 2 * 20 / 750])


def test_lines_are_the_references():
    reference = (FIXTURES / "bisec_bw" / "bisec_bw-2021-openmpi4.1.4-np4.txt").read_text().splitlines()
    peer = next(line for line in reference if "1048576 bytes" in line)
    lines = table(exchange_run(), "bisec_bw").text.splitlines()
    assert lines[2:4] == [" Number of Process 4", PINNED["PPN: 2, Number of nodes"]]
    assert lines[4] == PINNED["4 Ranks, Msg Size: 1048576"]
    assert [lines[4].index(part) for part in ("Msg", "Node", "Aggregate", "GB/sec")] == [
        peer.index(part) for part in ("Msg", "Node", "Aggregate", "GB/sec")
    ]
    assert lines[5] == PINNED["Pair (0 2) Elapsed time 0.0200"]


def test_the_slowest_pair_first_and_the_hosts_in_full():
    lines = table(exchange_run(), "bisec_bw", slowest=1, full=True).text.splitlines()
    assert next(line for line in lines if line.startswith("Pair")).startswith("Pair (1<->3)")
    assert [line.split()[1] for line in lines if line.startswith("Host")] == ["b", "a"]


def test_rows_of_streams_are_no_bisection():
    made = row("bandwidth", "pairs", EXCHANGE, ranks=4, sizes=(MIB,))
    with pytest.raises(UsageError, match="bisec_bw needs a row of exchange or bibandwidth"):
        table(run_of(made), "bisec_bw")


# ------------------------------------------------------------------------------------------------ congestion

VICTIMS = {
    **{(0, 1, 0): [1 * US], (1, 0, 0): [2 * US], (2, 3, 0): [1 * US], (3, 2, 0): [1 * US]},
    **{(0, 1, 1): [3 * US], (1, 0, 1): [2 * US], (2, 3, 1): [10 * US], (3, 2, 1): [1 * US]},
}


def victims_run(kernel="latency", **attributes):
    known = {"aggressor": "incast", "aggressors": [4, 5]}
    return run_of(row(kernel, "victim-aggressor", VICTIMS, ranks=6, rounds=2, sizes=(1000,), **known, **attributes))


def test_impact_of_every_pair_and_of_all(tmp_path):
    (size,) = table(stored(victims_run(), tmp_path), "congestion").as_dict()["sizes"]
    impact = {(one["src"], one["dst"]): one["impact"]["mean"] for one in size["pairs"]}
    assert impact == pytest.approx({(0, 1): 3, (1, 0): 1, (2, 3): 10, (3, 2): 1})
    assert size["alone"]["mean"] == pytest.approx(1.25 * US)
    assert size["loaded"]["mean"] == pytest.approx(4 * US)
    assert size["impact"]["mean"] == pytest.approx(3.2)
    # of the stored percentiles, 1.5 times the mean each; no histogram, so nothing is known of P99.9
    assert size["alone"]["p99"] == pytest.approx(1.5 * 1.25 * US)
    assert size["alone"]["p999"] is None and size["impact"]["p999"] is None


def test_percentiles_come_from_the_histograms_of_both_conditions():
    samples = {key: [values[0]] * 990 + [values[0] * (4 if key[2] else 2)] * 10 for key, values in VICTIMS.items()}
    (size,) = table(victims_run(samples=samples), "congestion").as_dict()["sizes"]
    one = next(pair for pair in size["pairs"] if (pair["src"], pair["dst"]) == (2, 3))
    assert one["alone"]["p999"] == pytest.approx(2 * US, rel=6e-3)
    assert one["loaded"]["p999"] == pytest.approx(40 * US, rel=6e-3)
    assert one["impact"]["p999"] == pytest.approx(20, rel=0.012)


def test_a_bandwidth_that_halves_has_an_impact_of_two():
    cells = {(0, 1, 0): [1 * US], (0, 1, 1): [2 * US]}
    made = row("bandwidth", "victim-aggressor", cells, rounds=2, sizes=(1000,))
    found = table(run_of(made), "congestion")
    (size,) = found.as_dict()["sizes"]
    assert size["impact"]["mean"] == pytest.approx(2)
    assert "1000" in found.text and "500.00" in found.text and "2.00X" in found.text
    assert "MB/s/pair" in found.text


def test_the_frame_is_gpcnets():
    lines = table(victims_run(), "congestion").text.splitlines()
    frame = [line for line in lines if line[:1] in "+|"]
    assert len({len(line) for line in frame if line.count("|") == 6}) == 1
    assert any("Congestion Impact Factor" in line for line in frame)
    assert any("latency (1000 B) |" in line and "3.20X |" in line for line in frame)
    assert lines[0].endswith("beside 2 aggressors (incast)")


def test_most_affected_pairs_first():
    lines = table(victims_run(), "congestion", slowest=2).text.splitlines()
    assert [line.split()[:4] for line in lines[-2:]] == [["2", "n2", "3", "n3"], ["0", "n0", "1", "n1"]]


def test_pairs_of_one_condition_alone_are_left_out():
    cells = {key: value for key, value in VICTIMS.items() if key != (2, 3, 1)}
    made = row("latency", "victim-aggressor", cells, ranks=6, rounds=2)
    (size,) = table(run_of(made), "congestion").as_dict()["sizes"]
    assert (2, 3) not in [(one["src"], one["dst"]) for one in size["pairs"]]


# ------------------------------------------------------------------------------------------------ counters

BEFORE = {
    "n1": {
        "cxi0": {"hni_tx_ok_opt": 100, "hni_tx_ok_ieee": 5, "hni_rx_ok_opt": 50, "tx_packets": 7, "hni_rx_bad_opt": 3}
    },
    "n0": {
        "mlx5_0/1": {"port_xmit_packets": 10, "port_rcv_packets": 20, "symbol_error": 0, "port_xmit_wait": 1},
        "eth10": {"tx_packets": 1, "rx_packets": 2, "rx_errors": 0},
        "eth9": {"tx_packets": 100, "rx_packets": 2},
    },
}
AFTER = {
    "n1": {
        "cxi0": {"hni_tx_ok_opt": 300, "hni_tx_ok_ieee": 6, "hni_rx_ok_opt": 90, "tx_packets": 8, "hni_rx_bad_opt": 3}
    },
    "n0": {
        "mlx5_0/1": {"port_xmit_packets": 1010, "port_rcv_packets": 2020, "symbol_error": 4, "port_xmit_wait": 9},
        "eth10": {"tx_packets": 3, "rx_packets": 5, "rx_errors": 0},
        "eth9": {"tx_packets": 4, "rx_packets": 2},
    },
}


def counted(**attributes):
    return row("latency", "pair", {(0, 1, 0): [US]}, counters={"before": BEFORE, "after": AFTER}, **attributes)


def test_packets_of_every_kind_of_nic_and_errors_that_moved(tmp_path):
    found = table(stored(run_of(counted()), tmp_path), "counters")
    assert found.text.splitlines()[1:] == [
        "# host n0",
        "eth9 tx unknown",
        "eth9 rx 0",
        "eth9 reset or overflow tx_packets -96",
        "eth10 tx 2",
        "eth10 rx 3",
        "mlx5_0/1 tx 1000",
        "mlx5_0/1 rx 2000",
        "mlx5_0/1 ERROR symbol_error +4",
        "mlx5_0/1 congestion port_xmit_wait +8",
        "# host n1",
        "cxi0 tx 201",
        "cxi0 rx 40",
    ]
    facts = found.as_dict()["hosts"]
    assert facts["n0"]["mlx5_0/1"] == {
        "tx": 1000,
        "rx": 2000,
        "errors": {"symbol_error": 4},
        "congestion": {"port_xmit_wait": 8},
        "reset": {},
    }
    json.dumps(facts)


def test_counters_of_the_whole_run_where_no_row_has_its_own():
    made = row("latency", "pair", {(0, 1, 0): [US]})
    assert "during the whole run" in table(run_of(made, counters={"before": BEFORE, "after": AFTER}), "counters").text
    with pytest.raises(UsageError, match=r"port counters from before and after, .*: measure it with --counters"):
        table(run_of(made, counters={"before": BEFORE}), "counters")


def test_a_benchmark_measured_with_counters_shows_them():
    from fablint.report import benchmark_table

    text = benchmark_table(run_of(counted()), "osu_latency").text
    assert "# OSU MPI Latency Test v7.4" in text
    assert "\ncxi0 tx 201\n" in text


@pytest.mark.parametrize(
    "harmless", ["hni_pcs_corrected_cw", "hni_pcs_good_cw", "rx_bytes", "port_xmit_data", "multicast_rcv_packets"]
)
def test_counters_of_normal_traffic_are_no_errors(harmless):
    counters = {"before": {"a": {"x": {harmless: 1}}}, "after": {"a": {"x": {harmless: 100}}}}
    text = table(run_of(row("latency", "pair", {(0, 1, 0): [US]}, counters=counters)), "counters").text
    assert "ERROR" not in text and "congestion" not in text


def test_a_nic_that_counts_nothing_says_unknown():
    assert packets({"speed": 1}, 0) is None


# ------------------------------------------------------------------------------------------------ latency_test


def test_a_table_per_pair_under_the_names_of_its_hosts(tmp_path):
    cells = {(0, 1, 0): [1 * US, 3 * US], (0, 2, 1): [2 * US, 4 * US]}
    made = row("latency", "all-pairs", cells, ranks=3, rounds=2, sizes=(0, 8), directions="single")
    found = table(stored(run_of(made, hosts=["c-01", "c-02", "c-03"]), tmp_path), "latency_test")
    assert found.text.splitlines()[1:] == [
        "c-01,c-02",
        "# OSU MPI Latency Test v7.4",
        "# Size          Latency (us)",
        "0                       1.00",
        "8                       3.00",
        "c-01,c-03",
        "# OSU MPI Latency Test v7.4",
        "# Size          Latency (us)",
        "0                       2.00",
        "8                       4.00",
    ]
    (worst,) = table(run_of(made), "latency_test", slowest=1).as_dict()["pairs"]
    assert (worst["dst"], [one["seconds"] for one in worst["sizes"]]) == (2, pytest.approx([2 * US, 4 * US]))


def test_figures_of_a_table_are_json(tmp_path):
    """NaN and infinities are not: the null transport takes no time at all."""
    cells = {key: [0.0] for key in EXCHANGE}
    made = row("exchange", "pairs", cells, ranks=4, sizes=(MIB,), transport="null", iterations=[3])
    for name in ("bisec_bw", "pairs", "osu", "linktest"):
        json.dumps(
            table(run_of(made), name, **({"full": True} if name == "bisec_bw" else {})).as_dict(), allow_nan=False
        )


# ---------------------------------------------------------------------------------------------------- osu


@pytest.mark.parametrize(
    ("kernel", "pattern", "cells"),
    [("alltoall", "world", [(0, -1, 0), (1, -1, 0)]), ("bandwidth", "pairs", [(0, 1, 0)])],
)
def test_a_table_that_was_ended_before_its_first_size_names_no_number_of_ranks(kernel, pattern, cells):
    made = row(kernel, pattern, {cell: [math.nan] for cell in cells}, ranks=2, sizes=(8,))
    lines = table(run_of(made), "osu").text.splitlines()
    assert sum(line.endswith("; no size was measured to its end") for line in lines) == 1
    assert not any(" 0 " in line for line in lines)

"""What the engine writes and prints when all goes well."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import xarray
from real_mpi import Mpi

from fablint.store import missing_rounds, read_run
from fact_cases import attributes_of

FAST = ("--samples", "3", "--warmup", "1")


@pytest.mark.parametrize("kernel", ["latency", "bandwidth", "bibandwidth", "exchange"])
def test_a_pair_prints_a_table_in_osu_format_and_nothing_else(mpi: Mpi, kernel: str) -> None:
    ended = mpi.run(2, kernel, "--sizes", "8,1K,100000", *FAST)
    assert ended.status == 0, ended.errors
    title, header, *rows = ended.output.splitlines()
    assert title.startswith("# fablint " if kernel == "exchange" else "# OSU MPI ")  # OSU has no test of an exchange
    assert header.split()[:2] == ["#", "Size"]
    assert [int(row.split()[0]) for row in rows] == [8, 1024, 100000]
    assert all(float(row.split()[1]) > 0 for row in rows)


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("order", ["parallel", "serial"])
def test_all_pairs_measures_every_directed_pair_once(mpi: Mpi, tmp_path: Path, ranks: int, order: str) -> None:
    path = tmp_path / "a.run"
    ended = mpi.run(ranks, "latency", "--pattern", "all-pairs", "--order", order, "--sizes", "8,1K", *FAST, "-o", path)
    assert ended.status == 0, ended.errors
    assert ended.output == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = xarray.open_zarr(path, group="latency", consolidated=False).load()
        tables = xarray.open_zarr(path, group="tables", consolidated=False).load()
        waits = xarray.open_zarr(path, group="latency/tables", consolidated=False).load()
    assert tables.hosts.values[tables.rank_host.values].tolist() == read_run(path).rank_host
    assert row.time_median.dims == ("repeat", "src", "dst", "size")
    assert row.time_median.dtype == "float32"
    off_diagonal = ~np.eye(ranks, dtype=bool)
    for name in ("time_min", "time_median", "time_mean", "time_p99", "time_max"):
        values = row[name].values[0]
        assert np.isnan(values[~off_diagonal]).all()
        assert (values[off_diagonal] > 0).all()
    assert (row["count"].values[0][off_diagonal] == 3).all()
    assert (row["round"].values[0][off_diagonal] >= 0).all()
    # Both directions of a pair are measured in the same round.
    assert (row["round"].values[0] == row["round"].values[0].T).all()
    assert (row.started.values[0][off_diagonal] > 0).all()
    assert row.attrs["state"] == "complete"
    if Path("/proc/self/schedstat").exists():
        assert waits.sizes["rank"] == ranks
        # It is read a little before and after the row's own time.
        assert ((waits.cpu_wait_s >= 0) & (waits.cpu_wait_s <= 1.1 * row.attrs["wall_s"] + 0.1)).all()
    assert missing_rounds(read_run(path).rows[0]) == []


def test_statistics_are_in_order_and_the_histogram_holds_every_sample(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    ended = mpi.run(2, "exchange", "--sizes", "64", "--samples", "200", "--histogram", "-o", path)
    assert ended.status == 0, ended.errors
    row = xarray.open_zarr(path, group="exchange", consolidated=False).load().isel(size=0, round=0)
    assert row.time_median.dims == ("src",)
    ordered = ["time_min", "time_median", "time_p99", "time_max"]
    for low, high in pairwise(ordered):
        assert (row[low] <= row[high]).all()
    assert (row.histogram.sum("bucket") == 200).all()
    assert (row["count"] == 200).all()
    # The stored median lies in the bucket that holds the middle sample.
    cumulative = row.histogram.cumsum("bucket").values
    for rank in (0, 1):
        bucket = int(np.searchsorted(cumulative[rank], 100))
        low, high = row.bucket.values[bucket], row.bucket.values[bucket + 1]
        assert low * (1 - 1e-6) <= row.time_median.values[rank] <= high * (1 + 1e-6)


def test_repeats_are_kept_apart_and_meet_in_another_order(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    line = ("latency", "--pattern", "all-pairs", "--repeats", "2", "--sizes", "8")
    assert mpi.run(4, *line, *FAST, "-o", path).status == 0
    row = xarray.open_zarr(path, group="latency", consolidated=False).load()
    assert row.sizes["repeat"] == 2
    rounds = row["round"].values
    off = ~np.eye(4, dtype=bool)
    assert set(rounds[0][off]) == {0, 1, 2}
    assert set(rounds[1][off]) == {3, 4, 5}


@pytest.mark.parametrize(("pattern", "extra"), [("pairs", ()), ("random", ("--matchings", "3"))])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_sparse_patterns_are_lists_of_rounds(
    mpi: Mpi, tmp_path: Path, ranks: int, pattern: str, extra: tuple[str, ...]
) -> None:
    path = tmp_path / "a.run"
    ended = mpi.run(ranks, "bandwidth", "--pattern", pattern, *extra, "--sizes", "1K", *FAST, "-o", path)
    assert ended.status == 0, ended.errors
    row = xarray.open_zarr(path, group="bandwidth", consolidated=False).load()
    assert row.time_mean.dims == ("src", "round", "size")
    partners = row.dst.values
    busy = ranks - ranks % 2
    assert ((partners >= 0).sum(axis=0) == busy).all()
    for column in range(partners.shape[1]):
        for rank in np.flatnonzero(partners[:, column] >= 0):
            assert partners[partners[rank, column], column] == rank
    assert ((row["count"].values[:, :, 0] > 0) == (partners >= 0)).all()


def test_a_rounds_file_and_a_plan_on_standard_input(mpi: Mpi, tmp_path: Path) -> None:
    rounds = tmp_path / "my.rounds"
    rounds.write_text("0-2\n1-2  # rank 0 looks on\n")
    path = tmp_path / "a.run"
    plan = f"latency --pattern rounds --rounds-file {rounds} --sizes 8 --samples 3\n# big\nbandwidth --samples 3\n"
    ended = mpi.run(3, "--plan", "-", "-o", path, text=plan)
    assert ended.status == 0, ended.errors
    run = read_run(path)
    assert [row.name for row in run.rows] == ["latency", "bandwidth"]
    assert run.rows[0].arrays["dst"][:].tolist() == [[2, -1], [-1, 2], [0, 1]]


def test_bisection_measures_between_the_halves_only(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    assert mpi.run(5, "latency", "--pattern", "bisection", "--sizes", "8", *FAST, "-o", path).status == 0
    counts = xarray.open_zarr(path, group="latency", consolidated=False).load()["count"].values[0, :, :, 0]
    half = np.arange(5) < 2
    assert ((counts > 0) == (half[:, None] != half[None, :])).all()


def test_every_byte_is_checked_and_damage_is_named(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    line = ("latency", "--pattern", "all-pairs", "--sizes", "64,5000", "--samples", "20")
    sound = mpi.run(3, *line, "--validate")
    assert sound.status == 0, sound.errors
    damaged = mpi.run(3, *line, "--validate", "--transport", "corrupt", "-o", path)
    assert damaged.status == 1
    assert "received a wrong byte at offset" in damaged.errors
    row = read_run(path).rows[0]
    assert row.facts.sampling.validate is True
    first = row.facts.result.corrupt[0]
    assert first.message is not None and first.offset < first.size


def test_the_root_names_ranks_hosts_and_rows(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    assert mpi.run(3, "latency", "--sizes", "8", *FAST, "-o", path).status == 0
    root = attributes_of(read_run(path))
    assert root["format"] == 1
    assert root["state"] == "complete"
    assert root["ranks"] == 3 == len(root["rank_host"]) == len(root["rank_cores"]) == len(root["rank_pid"])
    assert len(set(root["rank_pid"])) == 3
    assert root["instrument"]["resolution_s"] > 0
    assert root["instrument"]["overhead_s"] > 0
    assert set(root["counters"]) == {"before", "after"}
    assert mpi.name in root["mpi"]["library"].lower().replace(" ", "") or mpi.name == "default"


def test_ranks_without_a_common_file_system_write_through_rank_0(mpi: Mpi, tmp_path: Path) -> None:
    line = ("latency", "--pattern", "all-pairs", "--sizes", "8,1K", *FAST, "-o")
    assert mpi.run(4, *line, tmp_path / "shared.run").status == 0
    assert mpi.run(4, "--private-files", *line, tmp_path / "private.run").status == 0
    shared, private = (
        xarray.open_zarr(tmp_path / f"{name}.run", group="latency", consolidated=False).load()
        for name in ("shared", "private")
    )
    assert read_run(tmp_path / "shared.run").facts.launch.shared_files is True
    assert read_run(tmp_path / "private.run").facts.launch.shared_files is False
    for name in ("count", "round"):
        assert (shared[name] == private[name]).all()
    assert (private.time_median.notnull() == shared.time_median.notnull()).all()


def test_the_same_seed_gives_the_same_schedule(mpi: Mpi, tmp_path: Path) -> None:
    rounds = {}
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        path = tmp_path / f"{name}.run"
        line = ("latency", "--pattern", "all-pairs", "--sizes", "8", "--seed", seed, *FAST)
        assert mpi.run(6, *line, "-o", path).status == 0
        rounds[name] = read_run(path).rows[0].arrays["round"][:]
    assert (rounds["a"] == rounds["b"]).all()
    assert (rounds["a"] != rounds["c"]).any()


@pytest.mark.parametrize("row", ["allreduce", "bandwidth --pattern fan-in", "latency --pattern victim-aggressor"])
def test_a_complete_row_of_any_shape_misses_no_round(mpi: Mpi, tmp_path: Path, row: str) -> None:
    path = tmp_path / "a.run"
    ended = mpi.run(4, *row.split(), "--sizes", "8,1K", "--samples", "3", "--repeats", "2", "-o", path)
    assert ended.status == 0, ended.errors
    assert missing_rounds(read_run(path).rows[0]) == []


def opened_connections() -> int:
    """TCP connections that processes of this network namespace have opened since it exists."""
    names, values = re.findall(r"^Tcp: (.*)$", Path("/proc/net/snmp").read_text(), re.M)
    return int(dict(zip(names.split(), values.split(), strict=True))["ActiveOpens"])


def test_every_two_passes_have_connections_of_their_own(mpi: Mpi, tmp_path: Path) -> None:
    streams, repeats = 40, 10
    row = f"latency --transport tcp --device lo --streams {streams} --repeats {repeats} --sizes 8 --samples 3"
    before = opened_connections()
    plan = f"{row} --name anew --pattern all-pairs --reconnect --validate\n{row} --name kept"
    ended = mpi.run(2, "--plan", "-", "-q", "-o", tmp_path / "a.run", text=plan)
    assert ended.status == 0, ended.errors
    # Other programs open connections as well.
    assert opened_connections() - before >= streams * (repeats // 2 + 1)
    run = read_run(tmp_path / "a.run")
    assert {row.name: row.facts.carrier.reconnect for row in run.rows} == {"anew": 2, "kept": 0}
    counts = run.row("anew").arrays["count"][:]
    assert counts.shape == (repeats, 2, 2, 1)
    assert (counts[:, [0, 1], [1, 0]] == 3).all()


@pytest.mark.parametrize(
    ("transport", "library", "refusal"),
    [
        ("ucx", "libucp.so.0", "UCX has no device nope0 on this host: ucx_info -d lists its devices"),
        ("ofi", "libfabric.so.1", "libfabric has no --device nope0 on this host; there are: "),
    ],
)
def test_a_device_that_a_library_does_not_have_is_refused(
    mpi: Mpi, tmp_path: Path, transport: str, library: str, refusal: str
) -> None:
    """The libraries themselves would go on with another device, or with shared memory only."""
    provider = ("--ofi-provider", "tcp") if transport == "ofi" else ()
    row = ("latency", "--transport", transport, *provider, "--sizes", "8", *FAST, "-q")
    ended = mpi.run(2, *row, "--device", "nope0")
    if library in ended.errors:
        pytest.skip(f"{library} is not installed")
    assert (ended.status, refusal in ended.errors) == (2, True), ended.errors
    ended = mpi.run(2, *row, "--device", "lo", "-o", tmp_path / "a.run")
    assert ended.status == 0, ended.errors
    devices = set(read_run(tmp_path / "a.run").rows[0].facts.carrier.devices)
    assert transport == "ucx" or devices == {"tcp;ofi_rxm/lo"}

"""What the engine does when something goes wrong: one line, the right exit status, nothing lost."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from real_mpi import LIMIT_S, Mpi, Ranks, Start, one_line, ranks_of, wait_until, with_signal

from fablint.store import missing_rounds, read_run
from pinned import pinned_by

PINNED = pinned_by("engine.toml", __file__)

LONG = ("latency", "--pattern", "all-pairs", "--repeats", "200", "--sizes", "8", "--budget", "0.02")


@pytest.mark.parametrize(
    ("ranks", "arguments", "message"),
    [
        (2, ["latncy"], "unknown kernel 'latncy': see fablint-engine --list"),
        (2, ["latency", "--sizes", "-8"], "size '-8': give bytes such as 8, 64K or 1M (powers of 1024)"),
        (2, ["bandwidth", "--sizes", "0"], "--sizes 0 does not apply to bandwidth: start at 1"),
        (1, ["latency"], "pattern pair needs at least 2 ranks, this run has 1: start it with mpiexec -n 2"),
        (2, ["--plan", "/nowhere/plan.txt"], "cannot read /nowhere/plan.txt: no such file, or no permission"),
        (3, ["latency", "--frob"], "unknown option --frob: see fablint-engine --help"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(mpi: Mpi, ranks: int, arguments: list[str], message: str) -> None:
    ended = mpi.run(ranks, *arguments)
    assert ended.status == 2
    assert ended.output == ""
    assert one_line(ended.error_lines) == message


def test_a_line_on_stderr_is_one_write(mpi: Mpi) -> None:
    """A launcher mixes what it reads from its ranks: lines in parts could not be read. A long line fills any buffer."""
    reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # it keeps the writes apart
    place = "x" * 20_000
    with reader, writer:
        argv = [mpi.engine, "--rendezvous", place, "--ranks", "2", "--rank", "0"]
        subprocess.run(argv, stderr=writer, check=False, timeout=LIMIT_S)
        written = reader.recv(1 << 16)
    assert written.startswith(f"fablint-engine: error: --rendezvous {place}: ".encode())
    assert written.endswith(b"\n")


def test_the_watchdog_wakes_seldom_beside_a_long_window(mpi: Mpi) -> None:
    """The CPU belongs to what is measured: the network stack of a host with few CPUs, say."""
    row = "bandwidth --transport tcp --directions single --sizes 1M --buffers single --window 1000000 --iterations 1"

    def wakes(pid: int) -> int:
        """How often the threads beside the measuring one have waited."""
        threads = (path for path in Path(f"/proc/{pid}/task").iterdir() if int(path.name) != pid)
        fields = (
            re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (path / "status").read_text(), re.M) for path in threads
        )
        return sum(int(field[1]) for field in fields if field)

    def has_measured(pid: int) -> bool:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]) > os.sysconf("SC_CLK_TCK")  # 1 s of CPU time

    with Ranks(mpi.engine) as both:
        both.start(row=row)
        both.start()
        for rank in both.processes:
            wait_until(functools.partial(has_measured, rank.pid), "the window")
        begin, before = time.monotonic(), [wakes(rank.pid) for rank in both.processes]
        time.sleep(3)
        assert [rank.poll() for rank in both.processes] == [None, None]
        after, duration_s = [wakes(rank.pid) for rank in both.processes], time.monotonic() - begin
    per_second = [(later - earlier) / duration_s for later, earlier in zip(after, before, strict=True)]
    # At its shortest interval it wakes 20 times a second. Threads of a busy machine wait for memory as well.
    assert all(one < 15 for one in per_second), per_second


def test_another_number_of_ranks_than_expected_is_refused(mpi: Mpi) -> None:
    """What a launcher does whose PMI is not that of the library: every rank is alone."""
    for ranks, counted in ((1, "1 rank of 3 was started: "), (2, "2 ranks of 3 were started: ")):
        ended = mpi.run(ranks, "latency", "--expect-ranks", "3")
        assert (ended.status, ended.output) == (2, "")
        assert one_line(ended.error_lines).startswith(counted + "the launcher's PMI is not that of this MPI library")
    assert mpi.run(2, "--expect-ranks", "2", "--version").output.startswith("fablint-engine ")


def test_a_plan_names_its_wrong_line_and_measures_nothing(mpi: Mpi, tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text("latency\n" * 6 + "latency --sizs 8\n")
    ended = mpi.run(2, "--plan", plan, "-o", tmp_path / "a.run")
    assert ended.status == 2
    assert one_line(ended.error_lines) == PINNED["plan :7: unknown option --sizs"].filled(plan=plan)
    assert not (tmp_path / "a.run").exists()


def test_an_output_that_exists_or_cannot_be_made_is_refused(mpi: Mpi, tmp_path: Path) -> None:
    (tmp_path / "a.run").mkdir()
    ended = mpi.run(2, "latency", "--sizes", "8", "-o", tmp_path / "a.run")
    assert ended.status == 2
    assert "exists: choose another -o" in one_line(ended.error_lines)
    ended = mpi.run(2, "latency", "--sizes", "8", "-o", tmp_path / "none" / "a.run")
    assert ended.status == 2
    assert "No such file or directory" in one_line(ended.error_lines)


@pytest.fixture
def small_disk(tmp_path: Path) -> object:
    """A tmpfs of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True
    ).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_ends_the_run_in_one_line_and_keeps_what_fits(mpi: Mpi, small_disk: Path) -> None:
    ended = mpi.run(8, *LONG, "--budget", "0.5", "-o", small_disk / "a.run")
    assert ended.status == 3
    line = one_line(ended.error_lines)
    assert line.startswith(f"cannot write {small_disk}")
    assert PINNED["No space left on device"] in line
    assert PINNED["fablint-engine: ended: status"] in ended.errors.splitlines()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGUSR2])
def test_a_stop_signal_finishes_the_round_and_says_interrupted(started: Start, tmp_path: Path, stop: int) -> None:
    path = tmp_path / "a.run"
    process = started(4, *LONG, "-o", path)
    wait_until(lambda: len(ranks_of(process)) == 4 and (path / "latency" / "count" / "c.0.0.0.0").exists(), "measuring")
    for pid in ranks_of(process):
        with_signal(pid, stop)
    assert process.wait(60) == 3
    run = read_run(path)
    assert run.state == "interrupted"
    assert run.rows[0].facts.state == "interrupted"
    assert 0 < len(missing_rounds(run.rows[0])) < run.rows[0].facts.schedule.rounds


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used: how far it is, however busy the machine is."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cells(path: Path, name: str) -> np.ndarray:
    return np.asarray(read_run(path).rows[0].arrays[name][:])


def test_killing_all_ranks_leaves_a_run_that_resumes_exactly(mpi: Mpi, started: Start, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    line = ("latency", "--pattern", "all-pairs", "--repeats", "20", "--sizes", "8,64", "--budget", "0.05")
    process = started(4, *line, "-o", path)
    chunks = [path / "latency" / "count" / f"c.0.{rank}.0.0" for rank in range(4)]
    wait_until(lambda: all(chunk.exists() for chunk in chunks), "the first flush")
    wait_until(lambda: len(missing_rounds(read_run(path).rows[0])) < 60, "the first complete round")
    for pid in ranks_of(process):
        with_signal(pid, signal.SIGKILL)
    process.wait(60)

    row = read_run(path).rows[0]
    before = {name: cells(path, name) for name in ("count", "time_median", "time_min", "time_max", "round", "started")}
    measured = before["count"][..., 0] > 0
    assert measured.any()
    missing = missing_rounds(row)
    assert 0 < len(missing) < 60
    # What is there is right. A cell that was being written when the ranks were killed has a time and no count, which
    # is written last; all others that were not measured are NaN.
    times = before["time_median"]
    assert (times[measured] > 0).all()
    assert (before["time_min"][measured] <= times[measured]).all()
    assert (times[measured] <= before["time_max"][measured]).all()
    others = times[~measured]
    assert (np.isnan(others) | (others > 0)).all()

    only = ",".join(map(str, missing))
    ended = mpi.run(4, *line, "--only-rounds", only, "--resume", "--epoch", "1000", "-o", path)
    assert ended.status == 0, ended.errors
    assert missing_rounds(read_run(path).rows[0]) == []
    assert read_run(path).state == "complete"
    assert (path / "launch-1" / "zarr.json").exists()
    # The rounds that were complete were left alone.
    kept = measured & ~np.isin(before["round"], missing)
    for name in ("count", "time_median"):
        assert (cells(path, name)[kept] == before[name][kept]).all()
    # `started` goes on from the given epoch.
    fresh = np.isin(cells(path, "round"), missing)
    assert (cells(path, "started")[fresh] > 1e9).all()


def test_lost_chunks_are_missing_rounds_and_come_back_by_a_resume(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    line = ("latency", "--pattern", "all-pairs", "--sizes", "8", "--samples", "3")
    assert mpi.run(5, *line, "-o", path).status == 0
    for name in ("count", "time_median", "round"):
        for chunk in (path / "latency" / name).glob("c.0.2.*"):
            chunk.unlink()
    missing = missing_rounds(read_run(path).rows[0])
    assert missing
    # The clock of the host that began the run is an hour ahead of the one here.
    ahead = ("--epoch", repr(time.time() + 3600))
    ended = mpi.run(5, *line, "--only-rounds", ",".join(map(str, missing)), "--resume", *ahead, "-o", path)
    assert ended.status == 0, ended.errors
    assert missing_rounds(read_run(path).rows[0]) == []
    assert np.nanmin(cells(path, "started")) >= 0


def test_a_truncated_chunk_is_made_anew_by_a_resume(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    line = ("latency", "--pattern", "all-pairs", "--sizes", "8", "--samples", "3")
    assert mpi.run(4, *line, "-o", path).status == 0
    chunk = path / "latency" / "time_median" / "c.0.1.0.0"
    whole = chunk.stat().st_size
    os.truncate(chunk, 6)
    missing = missing_rounds(read_run(path).rows[0])
    assert missing == [0, 1, 2]
    ended = mpi.run(4, *line, "--only-rounds", "0-2", "--resume", "-o", path)
    assert ended.status == 0, ended.errors
    assert chunk.stat().st_size == whole
    assert missing_rounds(read_run(path).rows[0]) == []
    assert not read_run(path).notes


def test_resume_needs_a_run(mpi: Mpi, tmp_path: Path) -> None:
    ended = mpi.run(2, "latency", "--resume", "-o", tmp_path / "a.run")
    assert ended.status == 2
    assert "is not a run directory" in one_line(ended.error_lines)


@pytest.mark.parametrize("order", ["parallel", "serial"])
def test_a_rank_that_stalls_is_named_and_the_run_ends(mpi: Mpi, started: Start, tmp_path: Path, order: str) -> None:
    path = tmp_path / "a.run"
    # Longer than a round takes on CPUs that other processes use too.
    process = started(4, *LONG, "--order", order, "--watchdog", "10", "-o", path)
    wait_until(lambda: (path / "latency" / "count" / "c.0.0.0.0").exists(), "the first flush")
    pids = read_run(path).facts.rank_pid
    with_signal(pids[2], signal.SIGSTOP)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    lost = [line for line in errors.splitlines() if line.startswith("fablint-engine: failed: ")]
    assert lost, errors
    host = read_run(path).facts.hosts[0]
    assert PINNED["fablint-engine: failed: rank"].filled(host=host).begins(lost[0]), lost
    assert not any(", partner none: " in line for line in lost), lost  # the rank that waited, also between rounds
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the end of all ranks")
    # Measurements before the stall are kept.
    assert (cells(path, "count") > 0).any()


def test_a_rank_that_stalls_in_a_collective_is_the_one_that_does_not_say_that_it_waits(
    started: Start, tmp_path: Path
) -> None:
    path = tmp_path / "a.run"
    process = started(4, "allreduce", "--sizes", "8", "--samples", "100000000", "--watchdog", "5", "-o", path)
    wait_until(lambda: (path / "allreduce" / "zarr.json").exists(), "the row's beginning")
    pids = read_run(path).facts.rank_pid
    begun = {pid: cpu_seconds(pid) for pid in pids}
    # By then the ranks have met for the round, and the collectives go on.
    wait_until(lambda: all(cpu_seconds(pid) > begun[pid] + 0.7 for pid in pids), "a while of collectives")
    with_signal(pids[2], signal.SIGSTOP)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    stuck = {int(rank) for rank in re.findall(r"fablint-engine: stalled: rank (\d+) ", errors)}
    assert stuck == {0, 1, 3}, errors
    assert "fablint-engine: failed: " not in errors


def test_hosts_that_really_share_no_file_system(mpi: Mpi, tmp_path: Path) -> None:
    """Every rank but 0 gets a mount name space of its own, in which the output folder is another file system."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "true"], capture_output=True).returncode:
        pytest.skip("mount name spaces need root and unshare")
    folder = tmp_path / "results"
    folder.mkdir()
    wrapper = tmp_path / "private.sh"
    rank = '"${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"'
    wrapper.write_text(
        f'#!/bin/sh\nif [ {rank} = 0 ]; then exec "$@"; fi\n'
        f'exec unshare -m sh -c \'mount -t tmpfs tmpfs {folder} && exec "$@"\' sh "$@"\n'
    )
    wrapper.chmod(0o755)
    private = Mpi(mpi.name, wrapper, mpi.mpiexec)
    line = ("latency", "--pattern", "all-pairs", "--sizes", "8", "--samples", "3")
    ended = private.run(4, mpi.engine, *line, "-o", folder / "a.run")
    assert ended.status == 0, ended.errors
    run = read_run(folder / "a.run")
    assert run.facts.launch.shared_files is False
    assert missing_rounds(run.rows[0]) == []

"""Ranks without MPI: `fablint-engine --rendezvous`, with one process for each rank or for several ranks."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fablint.errors import UsageError
from fablint.measure import (
    EngineOptions,
    EngineOutcome,
    NoProgress,
    ServedLaunch,
    find_rendezvous,
    run_engine,
    run_on_first,
    session,
)
from fablint.measure.engine_messages import WaitingRank, parse
from fablint.measure.launch_watch import Watch
from fablint.measure.launchers import direct, process_group
from fablint.measure.launchers.direct import Direct
from fablint.measure.launchers.launcher import Death
from fablint.measure.launchers.rendezvous import Joining, name_missing
from fablint.model import Plan, PlanRow, Slots
from fablint.plan.rows.row_text import parse_row
from fablint.store import read_run
from fablint.system import System
from fact_cases import attributes_of
from pinned import pinned_by
from tested_mpis import built_engine, tested_mpis as selected_mpis

PINNED = pinned_by("measure.toml", __file__)

TOKEN = "0123456789abcdef"
LIMIT_S = 60

Join = Callable[..., subprocess.Popen[str]]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def join() -> Iterator[Join]:
    """Starts processes of one run; each is given its ranks and options."""
    engine = built_engine(selected_mpis()[0]).path
    place = f"127.0.0.1:{free_port()}"
    processes: list[subprocess.Popen[str]] = []

    def start(ranks: str, *options: str | Path, count: int = 2, token: str = TOKEN) -> subprocess.Popen[str]:
        argv = [str(engine), "--rendezvous", place, "--rank", ranks, "--ranks", str(count), *map(str, options)]
        environ = {**System().environ, "FABLINT_TOKEN": token}
        pipe = subprocess.PIPE
        processes.append(
            subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environ)
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def skip_if_not_installed(engine: subprocess.Popen[str]) -> None:
    """Skip the test if the engine was refused for want of a library, its headers or a provider."""
    errors = engine.communicate(timeout=LIMIT_S)[1]
    if re.search("headers of|load the .* module|has no provider", errors):
        pytest.skip(errors.strip().splitlines()[-1])
    pytest.fail(errors)


def test_two_processes_measure_over_tcp_without_mpi(join: Join, tmp_path: Path) -> None:
    row = ("latency", "--transport", "tcp", "--sizes", "8", "--samples", "20")
    first = join("0", *row, "-o", tmp_path / "a.run")
    stranger = join("1", token="another token"[:7] + "0123456789")
    assert stranger.wait(LIMIT_S) == 2
    assert stranger.stderr is not None
    refusal = stranger.stderr.read()
    assert refusal.endswith(f"refuses rank 1 ({HERE}): it has another token\n")
    assert TOKEN not in refusal
    second = join("1")
    output, errors = first.communicate(timeout=LIMIT_S)
    assert (first.returncode, second.wait(LIMIT_S)) == (0, 0), errors
    assert output.startswith("# OSU MPI Latency Test")
    attributes = json.loads((tmp_path / "a.run/zarr.json").read_text())["attributes"]
    assert (attributes["mpi"], attributes["state"], attributes["ranks"]) == (None, "complete", 2)
    assert TOKEN not in json.dumps(attributes)
    row_attributes = json.loads((tmp_path / "a.run/latency/zarr.json").read_text())["attributes"]
    assert [(devices[:5], ranks) for devices, ranks in row_attributes["devices"].items()] == [("ipv4/", "0-1")]


@pytest.mark.parametrize(
    "carrier",
    ["tcp", *(pytest.param(carrier, marks=pytest.mark.long) for carrier in ("ucx", "ofi:tcp", "ofi:shm", "ofi:udp"))],
)
def test_a_rank_that_is_killed_ends_the_run_with_its_name(join: Join, tmp_path: Path, carrier: str) -> None:
    run = tmp_path / "a.run"
    transport, _, provider = carrier.partition(":")
    row = ["latency", "--transport", transport, "--pattern", "all-pairs", "--repeats", "1000", "--sizes", "8"]
    if provider:
        row += ["--ofi-provider", provider]
    first = join("0-1", *row, "--budget", "0.02", "-o", run, count=3)
    victim = join("2", count=3)
    deadline = time.monotonic() + LIMIT_S
    while not any(run.glob("latency/count/c.*")):  # cells are on the disk
        if first.poll() == 2:
            skip_if_not_installed(first)
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(victim.pid, signal.SIGKILL)
    _, errors = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 3, errors
    failed = [line for line in errors.splitlines() if line.startswith("fablint-engine: failed: ")]
    assert failed
    assert all(line.startswith("fablint-engine: failed: rank 2 (") for line in failed)


def test_mpi_transport_is_refused_without_mpi(join: Join) -> None:
    engine = join("0-1", "latency", "--sizes", "8")
    _, errors = engine.communicate(timeout=LIMIT_S)
    assert engine.returncode == 2
    assert PINNED["fablint-engine: error: MPI"].begins(errors.splitlines()[-1])


# Stands in for ssh: a host is this machine under another name, and sees nothing of the caller's session. One of its
# hosts refuses connections, one has no engine.
FAKE_SSH = """\
#!/bin/sh
echo "$@" >> {log}
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in
    refused) echo "ssh: connect to host $1 port 22: Connection refused" >&2; exit 255 ;;
    bare) exec /nowhere/fablint-engine ;;
esac
shift
exec setsid -w sh -c "$1"
"""
HERE = os.uname().nodename
SHORT = "latency --transport tcp --sizes 8 --samples 20"


@dataclass(frozen=True)
class FakeHosts:
    """Launches over the fake ssh."""

    folder: Path

    def measure(
        self, hosts: str, row: str = SHORT, run: Path | None = None, served: ServedLaunch | None = None
    ) -> EngineOutcome:
        """Measure a row with a rank on each host."""
        slots = tuple(Slots(host, 1) for host in hosts.split())
        plan = Plan(len(slots), (PlanRow(parse_row(row.split()), 1, 1.0),), slots)
        engine, system = built_engine(selected_mpis()[0]), System()
        launchers, options = find_rendezvous(system, "ssh").launchers, EngineOptions(served=served)
        return run_on_first(system, NoProgress(), launchers, engine, plan, run or self.run, options=options)

    @property
    def run(self) -> Path:
        return self.folder / "a.run"

    @property
    def attributes(self) -> dict[str, Any]:
        return attributes_of(read_run(self.run))


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHosts:
    program = tmp_path / "ssh"
    program.write_text(FAKE_SSH.format(log=tmp_path / "log"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(session, "UNREACHED_S", 0.3)
    monkeypatch.setattr(process_group, "STOP_S", 0.3)
    return FakeHosts(tmp_path)


def test_front_end_measures_without_an_mpi_launcher(tmp_path: Path) -> None:
    engine = built_engine(selected_mpis()[0])
    (launcher,) = find_rendezvous(System(), "direct").launchers
    row = PlanRow(parse_row(SHORT.split()), 1, 1.0)
    outcome = run_engine(System(), NoProgress(), launcher, engine, Plan(2, (row,)), tmp_path / "a.run")
    assert (outcome.status, outcome.error) == (0, "")


def test_ssh_starts_the_ranks_of_other_hosts(hosts: FakeHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UCX_TLS", "a value; with a blank")
    outcome = hosts.measure(f"{HERE} n2 n3", f"{SHORT} --pattern all-pairs")
    assert (outcome.status, outcome.error) == (0, "")
    assert (hosts.attributes["state"], hosts.attributes["ranks"], hosts.attributes["mpi"]) == ("complete", 3, None)
    arguments = (hosts.folder / "log").read_text()
    assert arguments.count("--rendezvous") == 2  # this machine needs no ssh
    assert "UCX_TLS=a value; with a blank" in arguments
    assert not re.search(r"TOKEN|[0-9a-f]{32}", arguments)


def test_ranks_over_ssh_stay_for_further_plans(hosts: FakeHosts) -> None:
    served, row = ServedLaunch(), f"{SHORT} --pattern all-pairs"
    for number, names in enumerate((f"{HERE} n2 n3", f"{HERE} n2 n3", f"{HERE} n3")):
        outcome = hosts.measure(names, row, hosts.folder / f"{number}.run", served)
        assert (outcome.status, outcome.error, outcome.is_new) == (0, "", number == 0)
    assert served.close()
    assert (hosts.folder / "log").read_text().count("--rendezvous") == 2


@pytest.mark.parametrize(
    ("host", "error"),
    [
        ("refused", "the ranks did not start: ssh: connect to host refused port 22: Connection refused"),
        ("bare", "bare: .*/nowhere/fablint-engine.* not found"),
    ],
)
def test_a_host_that_does_not_start_is_named(hosts: FakeHosts, host: str, error: str) -> None:
    outcome = hosts.measure(f"{HERE} {host}")
    assert outcome.status == 3
    assert re.search(error, outcome.error), outcome.error
    assert not hosts.run.exists()


def test_a_process_that_waits_for_its_host_is_ended_when_rank_0_has_failed(hosts: FakeHosts) -> None:
    failed, waiting = (System().spawn(argv) for argv in (["sh", "-c", "echo late; exit 3"], ["sleep", "60"]))
    group = process_group.ProcessGroup(
        [process_group.HostProcess("", failed), process_group.HostProcess("n2", waiting)]
    )
    assert group.read_line(10) == "late"
    with pytest.raises(EOFError):
        group.read_line(10)
    assert group.wait(0) == 3


def test_ranks_that_do_not_join_are_named_with_their_hosts() -> None:
    slots = (Slots("n1", 2), Slots("n2", 2), Slots("n3", 1))
    message = "ranks 2-3,4 of 5 did not join at n1:20000 within 55 s"
    assert name_missing(message, slots) == f"{message} (on n[2-3])"
    assert name_missing("the disk is full", slots) == "the disk is full"


def joining_of(*reports: tuple[float, int, str]) -> Joining:
    """Reports of ranks on hosts n0, n1, ...: time, rank, reason."""
    joining = Joining()
    for now, rank, reason in reports:
        joining.take(WaitingRank(rank, f"n{rank}", reason), now)
    return joining


LISTENS = "ranks 2-3 of 4 did not join at n0:20000"
REFUSED = "no connection to rank 0 at n0:20000 (10.0.0.1: Connection refused)"
SILENT = "no connection to rank 0 at n0:20000 (10.0.0.1: no answer)"


def test_hosts_that_do_not_reach_rank_0_are_named_before_the_time_is_over() -> None:
    refused = joining_of((1, 0, LISTENS), (3, 2, REFUSED), (3.5, 3, REFUSED))
    assert refused.failure(3.9) == ""  # others may report the same
    assert refused.failure(4.1) == PINNED["n 2-3 refused allow TCP"].filled(refused=REFUSED)
    silent = joining_of((1, 0, LISTENS), (10, 2, SILENT), (20, 2, SILENT))
    assert silent.failure(21.1).startswith(f"n2: {SILENT}: ")


def test_a_rank_0_that_starts_late_or_answers_late_ends_no_start() -> None:
    assert joining_of((1, 2, REFUSED), (16, 2, REFUSED)).failure(60) == ""  # rank 0 does not listen yet
    assert joining_of((1, 0, LISTENS), (2, 2, REFUSED)).failure(60) == ""  # an earlier attempt, delivered late
    assert joining_of((1, 0, LISTENS), (10, 2, SILENT)).failure(60) == ""  # segments may be lost


def test_what_a_rank_waits_for_is_a_message_of_the_start_and_no_start(join: Join) -> None:
    """The engine prints what the front end reads."""
    late, *processes = join("0", count=3), join("1", count=3, token=TOKEN)
    assert late.stderr is not None
    report = parse(late.stderr.readline().strip())
    assert isinstance(report, WaitingRank)
    assert (report.rank, report.host) == (0, HERE)
    assert report.reason.startswith("rank 2 of 3 did not join at 127.0.0.1:")
    watch = Watch([], 3)
    watch.take(f"fablint-engine: waiting: rank 0 ({HERE}): {report.reason}", NoProgress(), 0.0)
    assert not watch.started
    assert watch.absence() == report.reason
    assert all(process.poll() is None for process in processes)


def test_a_blocked_connection_of_mpi_is_why_the_ranks_did_not_start() -> None:
    watch = Watch([], 2)
    reason = "no TCP connection to 10.0.0.1 (n1) for 10 s"
    watch.take(f"fablint-engine: unconnected: n2: {reason}", NoProgress(), 0.0)
    watch.take("some words of the launcher", NoProgress(), 0.0)
    assert not watch.started
    assert watch.absence() == f"n2: {reason}; some words of the launcher"


def connections_that_are_probed(pid: int) -> int:
    """TCP connections of a process for which the kernel's timer of keep-alive probes runs."""
    sockets = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    tables = [Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table.splitlines()[1:]]
    return sum(f"socket:[{words[9]}]" in sockets and words[5].startswith("02:") for words in lines)


def test_a_rank_that_dies_is_named_and_what_was_measured_is_kept(hosts: FakeHosts) -> None:
    """The kernel also probes control connections: the end of a process is not reported if its host is lost."""
    row = "latency --transport tcp --pattern all-pairs --repeats 1000 --sizes 8 --budget 0.02"

    def end() -> None:
        deadline = time.monotonic() + LIMIT_S
        while not any(hosts.run.glob("latency/count/c.*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        probed.append(connections_that_are_probed(hosts.attributes["rank_pid"][2]))
        os.kill(hosts.attributes["rank_pid"][2], signal.SIGKILL)

    probed: list[int] = []
    killer = threading.Thread(target=end)
    killer.start()
    outcome = hosts.measure(f"{HERE} n2 n3", row)
    killer.join()
    named = {failed.rank for failed in outcome.failed} | {death.rank for death in outcome.deaths}
    assert (outcome.status, named) == (3, {2}), outcome
    assert probed[0] >= 2  # to rank 0, which reports ranks that have failed, and from the ranks that send to this one
    assert any(hosts.run.glob("latency/count/c.*"))


def test_a_stop_reaches_the_ranks_behind_ssh(hosts: FakeHosts) -> None:
    row = "latency --transport tcp --pattern all-pairs --repeats 1000 --sizes 8 --budget 0.02"

    def stop() -> None:
        deadline = time.monotonic() + LIMIT_S
        while not any(hosts.run.glob("latency/count/c.*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    stopper = threading.Thread(target=stop)
    stopper.start()
    outcome = hosts.measure(f"{HERE} n2 n3", row)
    stopper.join()
    assert outcome.stopped_by == signal.SIGINT
    assert hosts.attributes["state"] == "interrupted"


def test_a_port_that_is_in_use_is_replaced(hosts: FakeHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        ports = iter([listener.getsockname()[1], free_port()])
        monkeypatch.setattr(direct, "rendezvous_port", lambda: next(ports))
        outcome = hosts.measure(f"{HERE} n2")
    assert (outcome.status, outcome.error) == (0, "")


def test_direct_launcher_refuses_other_hosts() -> None:
    (launcher,) = find_rendezvous(System(), "direct").launchers
    with pytest.raises(UsageError, match=r"starts ranks on this machine only, not on n7"):
        launcher.start(System(), Plan(1, (), (Slots("n7", 1),)), [], {}, 1.0)


def test_direct_launcher_names_a_killed_rank() -> None:
    lines = ["fablint-engine: rank 3 was ended by signal 9 (Killed)"]
    assert Direct().deaths(lines) == [Death(3, reason="was ended by signal 9 (Killed)")]

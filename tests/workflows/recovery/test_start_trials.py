"""Trials of launches: time limits, hosts that are tried first, and what is said of those that are left out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_launches import FakeCluster, Notes

from fablint.errors import IncompleteError, NotStartedError
from fablint.measure import start_limit_s
from fablint.model import Plan, State
from fablint.system import System
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from fablint.workflows import measurement
from fablint.workflows.context import Context
from fablint.workflows.recovery.start_search import Cause, StartResult
from fablint.workflows.recovery.start_trials import LEAST_LIMIT_S, StartTrials, findings_of
from finding_cases import group
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

HOSTS = [f"n{number:02d}" for number in range(12)]
ADDRESSES = {f"10.150.0.{number}": host for number, host in enumerate(HOSTS)}

# Open MPI 4.1.4 on a virtual cluster where frames to n07 are dropped; addresses and names replaced.
OPEN_MPI = """\
--------------------------------------------------------------------------
WARNING: Open MPI failed to TCP connect to a peer MPI process.  This
should not happen.

Your Open MPI job may now hang or fail.

  Local host: n00
  PID:        20160
  Message:    connect() to 10.150.0.7:1035 failed
  Error:      No route to host (113)
--------------------------------------------------------------------------
""".splitlines()


def start_trials_of(cluster: FakeCluster, **known: object) -> tuple[StartTrials, Notes]:
    notes = Notes()
    return StartTrials(Context(cluster.system, notes), **known), notes  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ order of trials


def test_the_host_of_an_address_and_the_names_that_the_launcher_prints_are_suspects(cluster: FakeCluster) -> None:
    trials, _ = start_trials_of(cluster, addresses=ADDRESSES)
    assert trials.suspects(HOSTS, OPEN_MPI) == ["n07", "n00"]
    assert trials.suspects(HOSTS, ["ssh: connect to host n03.site.gov port 22: Connection timed out."]) == ["n03"]


def test_a_launcher_that_lists_its_hosts_suspects_none(cluster: FakeCluster) -> None:
    trials, _ = start_trials_of(cluster, addresses=ADDRESSES)
    assert trials.suspects(HOSTS, [f"launching on {' '.join(HOSTS)}"]) == []
    assert trials.suspects(HOSTS, [f"launching on {' '.join(HOSTS)}", "no route to 10.150.0.4"]) == ["n04"]


def test_a_host_that_pings_without_answer_share_is_a_suspect(cluster: FakeCluster) -> None:
    pairs = {frozenset(("n05", other)) for other in ("n01", "n02", "n09")}
    assert start_trials_of(cluster, unanswered=pairs)[0].suspects(HOSTS, []) == ["n05"]
    assert start_trials_of(cluster, unanswered=pairs)[0].suspects(HOSTS[:5], []) == []
    single = {frozenset(("n05", "n06"))}
    assert start_trials_of(cluster, unanswered=single)[0].suspects(HOSTS, []) == ["n05", "n06"]


def test_a_host_whose_network_preflight_finds_at_fault_is_a_suspect(cluster: FakeCluster) -> None:
    assert start_trials_of(cluster, unfit=["n05", "x1"])[0].suspects(HOSTS, []) == ["n05"]
    assert start_trials_of(cluster, unfit=HOSTS[:6])[0].suspects(HOSTS, []) == []  # half of the hosts


def test_where_all_hosts_start_when_launches_are_repeated_twice_an_unfit_one_is_left_out(cluster: FakeCluster) -> None:
    trials, _ = start_trials_of(cluster, unfit=["n05"])
    assert trials.search(HOSTS, NotStartedError("none")) == StartResult(tuple(HOSTS))
    trials.repeated = True
    result = trials.search(HOSTS, NotStartedError("none"))
    assert result.excluded == ["n05"]
    assert result.starting == tuple(host for host in HOSTS if host != "n05")
    finding = findings_of(result, "none")[0]["n05"]
    assert finding.state is State.SUSPECT
    assert sentences(finding.evidence).startswith("launches with it start at times only")


def test_all_that_is_known_of_the_suspects_is_said(cluster: FakeCluster) -> None:
    cluster.unreached = {"n07"}
    trials, notes = start_trials_of(cluster, addresses=ADDRESSES)
    result = trials.search(HOSTS, NotStartedError("connect() failed", "", tuple(OPEN_MPI)))
    assert [cause.host for cause in result.faulty] == ["n07"]
    assert PINNED["launches of fewer hosts"] in notes.said[0]


# ------------------------------------------------------------------------------------------------ time


def test_the_usual_limit_holds_until_a_launch_has_started(cluster: FakeCluster) -> None:
    trials, _ = start_trials_of(cluster)
    assert trials.limit_s(1000) == start_limit_s(1000)
    trials.known_s = {2: [1.0]}
    assert trials.limit_s(2) == LEAST_LIMIT_S
    assert trials.limit_s(12) == 4.0 * 12 / 2
    assert trials.limit_s(1000) == start_limit_s(1000)  # a start may grow with the hosts
    trials.known_s[500] = [10.0]
    assert (trials.limit_s(250), trials.limit_s(1000)) == (40.0, 80.0)


def test_slow_starts_of_the_host_that_is_searched_for_prolong_no_limit(cluster: FakeCluster) -> None:
    trials, _ = start_trials_of(cluster)
    trials.known_s = {2: [14.0, 1.0, 1.2, 0.9]}
    assert (trials.limit_s(2), trials.limit_s(12)) == (LEAST_LIMIT_S, pytest.approx(4.0 * 1.1 * 12 / 2))
    before = start_trials_of(cluster)[0].most_s(12)
    assert trials.most_s(12) < 0.4 * before


def test_trials_have_the_limit_that_is_known_when_they_are_asked(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, float]] = []

    def measure(
        context: Context, plan: Plan, output: Path, options: Sequence[str] = ()
    ) -> measurement.MeasurementResult:
        assert context.start_s is not None
        limits.append((len(plan.slots), context.start_s()))
        return cluster.measure(context, plan, output, options)

    monkeypatch.setattr(measurement, "measure", measure)
    cluster.unreached = {"n03"}
    trials, _ = start_trials_of(cluster)
    trials.search(HOSTS, NotStartedError("none"))
    assert limits[0] == (2, start_limit_s(2))
    assert min(limit for count, limit in limits if count == 2) < start_limit_s(2)


def test_a_search_ends_when_its_time_is_over(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(
        context: Context, plan: Plan, output: Path, options: Sequence[str] = ()
    ) -> measurement.MeasurementResult:
        cluster.system.now_s += 100
        return cluster.measure(context, plan, output, options)

    monkeypatch.setattr(measurement, "measure", measure)
    cluster.unreached = {"n03", "n08"}
    trials, _ = start_trials_of(cluster)
    result = trials.search(HOSTS, NotStartedError("none"))
    assert {cause.host for cause in result.faulty} <= cluster.unreached
    assert result.unknown
    hosts, _ = findings_of(result, "none")
    assert {finding.state for host, finding in hosts.items() if host in result.unknown} == {State.NOT_JUDGED}
    assert set(result.starting) | set(hosts) == set(HOSTS)


def test_an_interrupt_ends_the_search(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(
        context: Context, plan: Plan, output: Path, options: Sequence[str] = ()
    ) -> measurement.MeasurementResult:
        signal.raise_signal(signal.SIGINT)
        return cluster.measure(context, plan, output, options)

    monkeypatch.setattr(measurement, "measure", measure)
    trials, _ = start_trials_of(cluster)
    with pytest.raises(KeyboardInterrupt):
        trials.search(HOSTS, NotStartedError("none"))


def test_blocks_of_other_threads_share_the_signals_that_the_main_thread_catches() -> None:
    system, seen = System(), list[list[int]]()

    def other() -> None:
        with system.caught_signals() as caught:
            seen.append(caught)

    with system.caught_signals() as caught:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        signal.raise_signal(signal.SIGTERM)
        assert seen == [[signal.SIGTERM]]
        assert seen[0] is caught


# ------------------------------------------------------------------------------------------------ what is said


def test_where_nothing_starts_the_reason_of_the_launcher_is_given_and_no_host(cluster: FakeCluster) -> None:
    cluster.unreached, cluster.refused = set(HOSTS), "libmpi.so.40: cannot open shared object file"
    trials, _ = start_trials_of(cluster)
    with pytest.raises(IncompleteError) as raised:
        trials.search(HOSTS, NotStartedError("none"))
    assert cluster.refused in raised.value.message
    assert PINNED["this is the launcher"] in raised.value.hint


def test_a_host_whose_own_ranks_start_has_a_faulty_network() -> None:
    result = StartResult(("n00", "n01", "n02"), [Cause("n07", ("n00", "n01", "n02"), alone=True)])
    hosts, paths = findings_of(result, "connect() to 10.150.0.7 failed")
    finding = hosts["n07"]
    assert (finding.state, finding.component, paths) == (State.FAULT, "host", {})
    assert sentences(finding.evidence) == PINNED["launches that include"]
    assert group(finding) == ("NIC of n07", "cable of n07", "switch port of n07")


def test_a_host_whose_own_ranks_do_not_start_either_may_have_faulty_software() -> None:
    result = StartResult(("n00", "n01"), [Cause("n07", ("n00",), alone=False)])
    finding = findings_of(result, "")[0]["n07"]
    assert "its own ranks alone do not start either" in sentences(finding.evidence)
    assert group(finding) == ("software of n07", "launcher of n07")
    assert "start a program on n07" in advice(finding.next_step)


def test_a_host_on_several_faulty_paths_is_not_said_to_be_the_only_candidate() -> None:
    result = StartResult(("n00", "n01", "n04"), [Cause("n07", ("n00", "n01"), ("n04",))])
    finding = findings_of(result, "")[0]["n07"]
    assert finding.state is State.FAULT
    assert "one of n00, n01: no, with n04: yes" in sentences(finding.evidence)
    assert group(finding) == ("route n07=n00", "route n07=n01")


def test_a_host_that_only_large_launches_do_not_start_with_is_a_candidate() -> None:
    finding = findings_of(StartResult(("n00", "n01"), [Cause("n07", (), ("n01",), in_company=True)]), "")[0]["n07"]
    assert finding.state is State.SUSPECT
    assert "with n01 alone it starts" in sentences(finding.evidence)


def test_of_a_faulty_path_the_host_that_is_left_out_is_not_judged() -> None:
    hosts, paths = findings_of(StartResult(("n00", "n01"), paths=[("n07", "n01")]), "")
    assert (hosts["n07"].state, hosts["n07"].component) == (State.NOT_JUDGED, "host")
    (route,) = paths.values()
    assert (route.state, route.component, route.name) == (State.FAULT, "route", "n01=n07")

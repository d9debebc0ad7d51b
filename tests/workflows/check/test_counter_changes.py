"""What hosts say after a check is part of its verdict, of every later diagnosis, and of the localisation."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from fake_launches import FakeCluster, FakeSystem, fabric, launches_of, request_of

from fablint.errors import BrokenRunError
from fablint.model import Finding, Run, State
from fablint.plan.check.suites import find_suite
from fablint.store import read_run
from fablint.text import notes as noted
from fablint.text.actions import advice
from fablint.text.evidence_sentences import sentences
from fablint.workflows import analysis, measurement, run_files
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.counter_changes import Recount
from fablint.workflows.check.level_runs import LevelRuns
from finding_cases import component, finding, note_texts

pytestmark = pytest.mark.long  # many checks of simulated clusters

FABRIC = fabric()
HOSTS = list(FABRIC.host_switch)
FAULTY = "h03"
FLAPPED = finding(State.FAULT, "cable", f"{FAULTY}/hsn0", evidence="while the hosts were measured: 32 flaps")
CLEAN = {"rx_crc_errors": 5, "rx_missed_errors": 0, "carrier_changes": 2}


def counters(**grown: int) -> dict[str, object]:
    """Return the counters of the NIC of the faulty host, before and after."""
    after = {name: value + grown.get(name, 0) for name, value in CLEAN.items()}
    return {"before": {FAULTY: {"hsn0": CLEAN}}, "after": {FAULTY: {"hsn0": after}}}


def checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recount: Recount, slow: float = 1.0, failed: Sequence[Finding] = ()
) -> CheckOutcome:
    """Check the fabric, of which the hosts of `failed` are excluded from the start."""
    nics = {host: [{"name": "hsn0", "netdevs": ["hsn0"]}] for host in HOSTS}
    cluster = FakeCluster(FakeSystem(tmp_path / "home"), slow={FAULTY: slow}, attributes={"nics": nics})
    monkeypatch.setattr(measurement, "measure", cluster.measure)
    excluded = {one.name: one for one in failed}
    present = [host for host in HOSTS if host not in excluded]
    launches, _ = launches_of(cluster, request_of(present, FABRIC), tmp_path / "a.run")
    launches.recovery.triage.failed_hosts |= excluded
    asked: list[Collection[str]] = []

    def fake_recount(run: Run, hosts: Collection[str]) -> Recount:
        assert {row.name for row in run.rows} >= {"global-latency"}  # all is measured
        asked.append(hosts)
        return recount

    found = LevelRuns(
        launches, find_suite("quick"), recount=fake_recount, preflight_notes=[noted.message("preflight warns: x")]
    ).check()
    assert asked == [{*present, *(host for host, one in excluded.items() if one.state is State.SUSPECT)}]
    return found


def again(done: CheckOutcome) -> tuple[str, list[Finding], list[str]]:
    """What `fablint analyse` says of the run: verdict, findings but those that are OK, notes."""
    path = done.run.path
    assert path is not None
    run = read_run(path)
    verdict = analysis.diagnose(run, run_files.load_topology(None, run)).verdict
    return verdict.verdict, [one for one in verdict.findings if one.state is not State.OK], note_texts(verdict)


def test_what_grew_is_a_fault_of_a_check_whose_times_are_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = checked(tmp_path, monkeypatch, Recount([FLAPPED], counters(carrier_changes=64)))
    verdict = done.diagnosis.verdict
    assert (verdict.verdict, verdict.exit_code) == ("fault", 1)
    assert [one for one in verdict.findings if one.state is State.FAULT] == [FLAPPED]
    assert again(done)[:2] == ("fault", [FLAPPED])


def test_a_healthy_check_passes_with_the_notes_of_preflight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = checked(tmp_path, monkeypatch, Recount([], counters()))
    assert done.diagnosis.verdict.verdict == "pass"
    assert "preflight warns: x" in note_texts(done.diagnosis.verdict)
    assert "preflight warns: x" in again(done)[2]


def test_that_hosts_could_not_be_asked_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = checked(tmp_path, monkeypatch, Recount(notes=[noted.counters_not_read("no answer")]))
    assert done.diagnosis.verdict.verdict == "pass"
    assert noted.counters_not_read("no answer") in done.diagnosis.verdict.notes


@pytest.mark.parametrize(
    ("grown", "said", "step"),
    [
        ({"rx_crc_errors": 9000}, "the NIC received damaged code words", "swap cable between h03"),
        ({"rx_missed_errors": 9000}, "packets were dropped since the host was late to take them", "loopback"),
    ],
)
def test_counters_of_the_whole_check_tell_the_parts_of_a_slow_host_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grown: dict[str, int], said: str, step: str
) -> None:
    done = checked(tmp_path, monkeypatch, Recount([], counters(**grown)), slow=2.0)
    for findings in (done.diagnosis.verdict.findings, again(done)[1]):
        (one,) = (one for one in findings if one.state is State.FAULT)
        assert (one.component, one.name) == ("host", FAULTY)
        assert said in sentences(one.evidence)
        assert step in advice(one.next_step)


def test_a_cable_that_was_found_at_fault_is_the_first_part_of_a_slow_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = checked(tmp_path, monkeypatch, Recount([FLAPPED]), slow=2.0)
    (one,) = (one for one in done.diagnosis.verdict.findings if one.component == "host" and one.state is State.FAULT)
    assert advice(one.next_step).startswith("swap cable between h03")
    (tmp_path / "b").mkdir()
    other = FLAPPED.model_copy(update={"components": (component("cable", "h04/hsn0"),)})
    done = checked(tmp_path / "b", monkeypatch, Recount([other]), slow=2.0)
    (one,) = (one for one in done.diagnosis.verdict.findings if one.component == "host" and one.state is State.FAULT)
    assert not advice(one.next_step).startswith("swap cable")


def test_a_host_whose_rank_was_killed_is_replaced_by_its_faulty_cable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both hosts are excluded; that whose rank was killed is asked for its counters, which name the cable."""
    killed = finding(State.SUSPECT, "host", FAULTY, evidence="a rank on it was killed in the middle of the measurement")
    dead = finding(State.FAULT, "host", "h05", evidence="no answer within 20 s")
    done = checked(tmp_path, monkeypatch, Recount([FLAPPED], counters(carrier_changes=64)), failed=[killed, dead])
    for findings in (done.diagnosis.verdict.findings, again(done)[1]):
        named = [one for one in findings if one.state in (State.FAULT, State.SUSPECT)]
        assert {(one.state, one.component, one.name) for one in named} == {
            (State.FAULT, "cable", f"{FAULTY}/hsn0"),
            (State.FAULT, "host", "h05"),
        }
    (tmp_path / "b").mkdir()
    done = checked(tmp_path / "b", monkeypatch, Recount([], counters()), failed=[killed])
    assert killed in done.diagnosis.verdict.findings


@pytest.mark.parametrize("text", ["{", "[]", '{"before": {}}', '{"before": 1, "after": {}}'])
def test_a_damaged_table_of_counters_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    done = checked(tmp_path, monkeypatch, Recount([], counters()))
    path = done.run.path
    assert path is not None
    assert set(json.loads((path / "counters.json").read_text())) == {"format", "before", "after"}
    (path / "counters.json").write_text(text)
    with pytest.raises(BrokenRunError, match=r"counters\.json: is not a table of counters"):
        analysis.diagnose(read_run(path))

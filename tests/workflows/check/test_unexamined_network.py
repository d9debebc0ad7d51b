"""What of the network preflight did not look at, and what it warns of, is in every form of a check's verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import Reader, needs_chromium
from fake_launches import FakeCluster, FakeSystem, Notes

from fablint.model import Allocation, Finding
from fablint.model.preflight_results import NETWORK, PING, Fitness, Outcome, Result, Rule, Severity
from fablint.snapshot import CollectedSnapshots
from fablint.system import System
from fablint.workflows import fabric_discovery, host_preflight, measurement, programs
from fablint.workflows.check.check_run import CheckOutcome
from fablint.workflows.check.cluster_check import check_cluster
from fablint.workflows.check.request import CheckRequest
from fablint.workflows.context import Context
from fablint_command import Fablint

HOSTS = tuple(f"h{at:02d}" for at in range(6))
WHY = "no network interface except loopback and virtual ones"
UNSEEN = (f"not examined: h[01-02]: {WHY}", "not pinged: no ping is installed")
WARNED = "preflight warns: cpu.governor: powersave, 5 others performance (h03)"
NOT_UNDERSTOOD = "preflight does not understand: lldp.neighbour: no JSON (h04)"
RESULTS = (
    *(Result(NETWORK, host, "", Outcome.ERROR, WHY) for host in HOSTS[1:3]),
    *(Result(PING, host, "", Outcome.SKIP, "no ping is installed") for host in HOSTS),
    Result("cpu.governor", "h03", "", Outcome.WARN, "powersave, 5 others performance"),
    Result("lldp.neighbour", "h04", "", Outcome.ERROR, "no JSON"),
)
CHECKS = (NETWORK, PING, "cpu.governor", "lldp.neighbour")
RULES = {name: Rule(name, "", "", "", Severity.WARN, "config", False, "") for name in CHECKS}


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckOutcome:
    """A check of hosts of which preflight says RESULTS."""
    fake = FakeCluster(FakeSystem(tmp_path / "home"))

    def fake_hosts(_: System, __: fabric_discovery.FabricRequest, **___: bool) -> tuple[Allocation, list[Finding]]:
        return Allocation(HOSTS, "test"), []

    def fake_look(_: System, allocation: Allocation, **__: bool) -> host_preflight.PreflightResult:
        return host_preflight.PreflightResult(CollectedSnapshots(), Fitness(allocation.hosts, RESULTS, RULES))

    monkeypatch.setattr(measurement, "measure", fake.measure)
    monkeypatch.setattr(programs, "with_programs", lambda context, _: context)  # the fake hosts have none
    monkeypatch.setattr(fabric_discovery, "usable_hosts", fake_hosts)
    monkeypatch.setattr(host_preflight, "preflight_hosts", fake_look)
    monkeypatch.setattr(fabric_discovery, "collect_snapshots", lambda *_: CollectedSnapshots())
    wanted = CheckRequest(",".join(HOSTS))
    return check_cluster(Context(fake.system, Notes()), wanted, tmp_path / "a.run")


def test_verdict_and_every_later_diagnosis_say_it(checked: CheckOutcome, fablint: Fablint) -> None:
    path = checked.run.path
    assert path is not None
    done = fablint("analyse", path, "--json")
    for verdict in (json.loads((path / "report" / "verdict.json").read_text()), json.loads(done.stdout)):
        assert tuple(verdict["network"]) == UNSEEN
        assert {WARNED, NOT_UNDERSTOOD} <= {note["text"] for note in verdict["notes"]}
    assert json.loads((path / "rounds" / "check.json").read_text())["network"] == [*UNSEEN]


def test_the_text_says_it_before_what_was_measured(checked: CheckOutcome, fablint: Fablint) -> None:
    lines = fablint("analyse", str(checked.run.path)).stdout.splitlines()
    first, second = (at for at, line in enumerate(lines) if line.startswith("network "))
    assert " ".join(lines[first].split()).startswith(f"network {UNSEEN[0][:40]}")
    assert " ".join(lines[second].split()) == f"network {UNSEEN[1]}"
    assert first < second < next(at for at, line in enumerate(lines) if line.startswith("coverage "))


@needs_chromium
def test_the_page_shows_it(checked: CheckOutcome, reader: Reader) -> None:
    shown = reader.open(checked.page).locator("p.note").all_inner_texts()
    assert shown[:2] == [f"network {words}" for words in UNSEEN]
    assert {WARNED, NOT_UNDERSTOOD} <= set(shown)

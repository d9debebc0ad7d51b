"""Hosts before and after they were measured: what grew is a finding with host and NIC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest
from preflight_help import NOW, host, nic

from fablint.model import Allocation, ComponentKind, Run, State
from fablint.model.preflight_results import Fitness, Outcome, Result, Rule, Severity
from fablint.preflight import CHECKS
from fablint.preflight.after_measuring import spanning
from fablint.preflight.site.site_file import parse_site
from fablint.snapshot import CollectedSnapshots, Snapshot
from fablint.system import System
from fablint.text.evidence_sentences import sentences
from fablint.workflows import fabric_discovery
from fablint.workflows.check.counter_changes import HostCounters, nic_counters
from fablint.workflows.check.preflight_findings import route_findings, warning_notes, warnings
from fact_cases import run_facts
from finding_cases import texts
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

AT = "/sys/class/net/hsn0"
NAMES = tuple(f"n{number}" for number in range(1, 9))
ALLOCATION = Allocation(NAMES, "test")
LASTED_S = 60.0
RUN = Run(None, run_facts({"nics": {"n1.site.org": [{"name": "hsn0", "netdevs": ["hsn0"]}]}}), ())
BOOT = "/proc/sys/kernel/random/boot_id"


def at_rest(**values: str) -> dict[str, str]:
    statistics = {f"{AT}/statistics/{name}": "1000" for name in ("rx_crc_errors", "rx_errors", "rx_packets")}
    return {**nic(**values), **statistics, BOOT: "one"}


def snapshots(files: Mapping[str, Mapping[str, str]] | None = None, time: float = NOW) -> dict[str, Snapshot]:
    """All hosts at one time, as they should be but for these files."""
    return {
        name: replace(host(name, {**at_rest(), **(files or {}).get(name, {})}, window_s=0.5).snapshot, time=time)
        for name in NAMES
    }


def asked_again(
    monkeypatch: pytest.MonkeyPatch, files: Mapping[str, Mapping[str, str]], silent: Mapping[str, str] | None = None
) -> None:
    """Hosts that say this when they are asked after the measurement."""
    later = snapshots(files, NOW + LASTED_S)

    def fake_ask(_: System, allocation: Allocation, __: str) -> CollectedSnapshots:
        gone = {name: why for name, why in (silent or {}).items() if name in allocation.hosts}
        return CollectedSnapshots({}, {name: later[name] for name in allocation.hosts if name not in gone}, gone)

    monkeypatch.setattr(fabric_discovery, "collect_snapshots", fake_ask)


def test_a_link_that_flapped_while_it_was_measured_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {"n3": {f"{AT}/carrier_changes": "66"}})
    found = HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, NAMES)
    assert [(one.state, one.component, one.name, sentences(one.evidence)) for one in found.findings] == [
        (
            State.FAULT,
            "cable",
            "n3/hsn0",
            PINNED["while the hosts were measured"],
        )
    ]


def test_a_link_that_is_down_afterwards_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {"n3": {f"{AT}/operstate": "down", f"{AT}/carrier": "0", f"{AT}/carrier_changes": "3"}})
    found = HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, NAMES).findings
    assert {(one.state, one.component, one.name) for one in found} >= {(State.FAULT, "nic", "n3/hsn0")}
    assert {one.name for one in found} == {"n3/hsn0"}


def test_damaged_frames_are_a_suspect_cable(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {"n5": {f"{AT}/statistics/rx_crc_errors": "1040"}})
    (one,) = HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, NAMES).findings
    assert (one.state, one.component, one.name) == (State.SUSPECT, "cable", "n5/hsn0")
    assert "rx_crc_errors 40 in 60.5 s" in sentences(one.evidence)


def test_hosts_whose_counters_stand_still_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {key: {f"{AT}/statistics/rx_packets": "900000"} for key in NAMES})
    found = HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, NAMES)
    assert (list(found.findings), list(found.notes)) == ([], [])


def test_a_restarted_switch_is_no_fault_of_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {key: {f"{AT}/carrier_changes": "4"} for key in NAMES})
    assert list(HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, NAMES).findings) == []


def test_what_preflight_said_is_no_finding_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flaps of years ago: they are the same before and after."""
    old = {"n2": {f"{AT}/carrier_changes": "40"}}
    asked_again(monkeypatch, old)
    message = "link went down 20 times since boot, 1 on most others"
    known = Result("net.link.flaps", "n2", "hsn0", Outcome.WARN, message)
    before = snapshots(old)
    assert list(HostCounters(System(), ALLOCATION, before, [known]).recount(RUN, NAMES).findings) == []
    (one,) = HostCounters(System(), ALLOCATION, before).recount(RUN, NAMES).findings
    assert message in sentences(one.evidence)


def test_what_grew_and_is_suppressed_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    suppress = '[[suppress]]\ncheck = "net.link.flaps"\nhosts = "n3"\nuntil = 2026-01-31\nreason = "cable is ordered"\n'
    site = parse_site(f"format = 1\n{suppress}", "site.toml", date(2026, 1, 5), CHECKS)
    asked_again(monkeypatch, {"n3": {f"{AT}/carrier_changes": "66"}})
    found = HostCounters(System(), ALLOCATION, snapshots(), site=site).recount(RUN, NAMES)
    assert list(found.findings) == []
    (note,) = texts(found.notes)
    assert PINNED["while the hosts were measured (2)"].begins(note)
    assert PINNED["(FAIL, suppressed until 2026-01-31"].ends(note)


def test_a_host_that_is_silent_afterwards_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {}, {"n7": "no answer within 20 s"})
    (one,) = HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, NAMES).findings
    assert (one.state, one.component, one.name) == (State.FAULT, "host", "n7")


def test_where_no_host_answers_the_job_is_over_and_no_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {}, dict.fromkeys(NAMES, "the job has ended"))
    found = HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, NAMES)
    assert list(found.findings) == []
    assert PINNED["could not be read again after"].ends(texts(found.notes)[0])


def test_only_hosts_that_were_measured_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_again(monkeypatch, {"n3": {f"{AT}/carrier_changes": "66"}}, {"n3": "no answer"})
    assert list(HostCounters(System(), ALLOCATION, snapshots()).recount(RUN, {"n1", "n2"}).findings) == []


def test_readings_of_two_boots_do_not_belong_together() -> None:
    before, after = snapshots()["n1"], snapshots({"n1": {BOOT: "two"}}, NOW + LASTED_S)["n1"]
    assert spanning(before, after) is None
    assert spanning(after, snapshots()["n1"]) is None  # a clock that was set back
    assert spanning(before, replace(before, time=NOW + 1)) is not None


def test_counters_of_the_run_s_nics_are_those_of_both_readings() -> None:
    later = snapshots({"n1": {f"{AT}/statistics/rx_errors": "1007"}}, NOW + LASTED_S)["n1"]
    span = spanning(snapshots()["n1"], later)
    assert span is not None
    found = nic_counters(RUN, {"n1": span})
    assert found["before"]["n1.site.org"]["hsn0"]["rx_errors"] == 1000
    assert found["after"]["n1.site.org"]["hsn0"]["rx_errors"] == 1007
    assert found["after"]["n1.site.org"]["hsn0"]["carrier_changes"] == 2


# ------------------------------------------------------------------------------------------------ warnings of before


def fitness_of(*results: Result, **components: ComponentKind) -> Fitness:
    """`components` of checks, whose dots are written as underscores."""
    rules = {
        name.replace("_", "."): Rule(name, "", "", "", Severity.WARN, component, False, "")
        for name, component in components.items()
    }
    return Fitness(NAMES, results, rules)


def test_a_route_without_an_answer_is_a_suspect_and_a_setting_a_note() -> None:
    results = [
        Result("net.ping.route", "n1", "hsn0=n2/hsn0", Outcome.WARN, "no answer, although both reach others"),
        Result("cpu.governor", "n1", "", Outcome.WARN, "governor powersave"),
        Result("cpu.governor", "n2", "", Outcome.WARN, "governor powersave"),
        Result("cpu.governor", "n3", "", Outcome.WARN, "governor ondemand"),
        Result("cpu.governor", "n4", "", Outcome.PASS),
    ]
    fitness = fitness_of(*results, net_ping_route="route", cpu_governor="config")
    assert [(one.state, one.component, one.name) for one in route_findings(fitness)] == [
        (State.SUSPECT, "route", "n1/hsn0=n2/hsn0")
    ]
    assert texts(warning_notes(warnings(fitness))) == [PINNED["preflight warns: cpu.governor"]]

"""Known faults of a site file: reported until their date, and not counted."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from fablint.act import drains, parse_source, ticket_text
from fablint.analyse.changes import RunResult, compare_runs
from fablint.cli import cli
from fablint.cli.session import Session
from fablint.errors import UsageError
from fablint.model import ComponentRef, Finding, State
from fablint.model.limits.known_faults import KnownFault
from fablint.report import console_summary, verdict_json
from fablint.report.html.page import render
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, fat_tree
from fablint.store import read_run, write_run
from fablint.text.site_suppressions import parse_known_faults
from fablint.workflows.analysis import diagnose
from finding_cases import finding, note_texts
from pinned import pinned_by

PINNED = pinned_by("workflows.toml", __file__)

TREE = fat_tree(4, 2)
LAST_DAY = date(2030, 6, 30)
SITE = """format = 1
[[suppress]]
component = "host h[02-03]"
until = 2030-06-30
reason = "riser <b>ordered</b>"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run with a slow host, `slow.run`, and a site file that knows the host."""
    folder = tmp_path_factory.mktemp("known")
    slow = Fault(ComponentRef.of("host", "h03"), bandwidth_factor=0.7)
    rows = (SimulatedRow("bandwidth", (1 << 20,)),)
    for name, faults in (("slow", [slow]), ("healthy", [])):
        run = SimulatedFabric(TREE, faults, Noise(spike_share=0.0), seed=1).measure(None, rows)
        write_run(folder / f"{name}.run", run)
    (folder / "site.toml").write_text(SITE)
    return folder


def result(folder: Path, name: str = "slow", site: str | None = "site.toml", today: date = LAST_DAY) -> RunResult:
    run = read_run(folder / f"{name}.run")
    return RunResult(run, diagnose(run, None, site=folder / site if site else None, today=today))


def test_a_known_fault_is_reported_and_does_not_count_until_its_last_day(folder: Path) -> None:
    known = result(folder).diagnosis.verdict
    assert (known.verdict, known.exit_code) == ("pass", 0)
    (host,) = [one for one in known.findings if one.state is State.SUPPRESSED]
    assert host.name == "h03"
    assert host.suppressed is not None
    assert (host.suppressed.state, host.suppressed.until) == (State.FAULT, "2030-06-30")
    later = result(folder, today=date(2030, 7, 1)).diagnosis.verdict
    assert (later.verdict, later.exit_code) == ("fault", 1)
    assert PINNED["suppress 1 (host h 02-03"] in note_texts(later)[-1]


def test_every_output_has_the_known_fault(folder: Path) -> None:
    run, diagnosis = (one := result(folder)).run, one.diagnosis
    text = console_summary(run, diagnosis)
    assert PINNED["PASS no fault that counts"].begins(text)
    assert PINNED["FAULT, suppressed until 2030-06-30"] in text
    source = parse_source(verdict_json(diagnosis), "verdict.json")
    assert drains(source) == []
    assert "known      host h03" in ticket_text(source)
    assert "riser &lt;b&gt;ordered&lt;/b&gt;" in render(run, diagnosis)


def test_a_fault_that_is_known_and_new_is_not_worse(folder: Path) -> None:
    healthy = result(folder, "healthy")
    changes = [compare_runs(healthy, new).findings for new in (result(folder), result(folder, site=None))]
    states = [[(change.kind, change.finding.state) for change in found] for found in changes]
    assert states == [[("new", State.SUPPRESSED)], [("new", State.FAULT)]]


def test_a_known_fault_without_a_finding_has_a_note(folder: Path) -> None:
    verdict = result(folder, "healthy").diagnosis.verdict
    assert verdict.verdict == "pass"
    assert PINNED["suppress 1 (host h 02-03 )"].ends(note_texts(verdict)[-1])


def test_what_is_missing_is_not_suppressed(folder: Path) -> None:
    run = read_run(folder / "slow.run")
    run = replace(run, facts=replace(run.facts, state="interrupted"))
    diagnosis = diagnose(run, None, site=folder / "site.toml", today=LAST_DAY)
    assert (diagnosis.verdict.verdict, diagnosis.verdict.exit_code) == ("incomplete", 3)


def test_analyse_and_report_exit_with_what_counts(folder: Path, tmp_path: Path) -> None:
    fine, expired = folder / "site.toml", tmp_path / "expired.toml"
    expired.write_text(SITE.replace("2030", "2020"))
    for verb, more in (("analyse", []), ("report", ["-o", str(tmp_path / "page.html")])):
        arguments = [verb, str(folder / "slow.run"), *more, "--json", "--site"]
        codes = [
            CliRunner().invoke(cli, [*arguments, str(site)], obj=Session(), standalone_mode=False).return_value
            for site in (fine, expired)
        ]
        assert codes == [0, 1]
    facts = json.loads((tmp_path / "page.verdict.json").read_text())
    assert (facts["verdict"], facts["findings"][0]["suppressed"]) == ("fault", None)


CABLE = ComponentRef.of("cable", "s2", "s5")
COVERED = [
    ("cable s2=s5", CABLE, True),
    ("cable s5=s2", CABLE, True),
    ("cable s5=s2", ComponentRef.of("link", "s5", "s2"), True),
    ("link s2>s5", ComponentRef.of("link", "s2", "s5"), True),
    ("link s2>s5", ComponentRef.of("link", "s5", "s2"), False),
    ("link s2>s5", CABLE, False),
    ("host h[1-2]", ComponentRef.of("host", ("h1", "h2")), True),
    ("host h1", ComponentRef.of("host", ("h1", "h2")), False),
    ("host h1", ComponentRef.of("nic", "h1", title="NIC"), True),
    ("host h1", ComponentRef.of("nic", "h1.hpc.example", title="NIC"), True),
    ("host h1.hpc.example", ComponentRef.of("host", "h1"), True),
    ("host h1.a.example", ComponentRef.of("host", "h1.b.example"), False),
    ("NIC of h1", ComponentRef.of("nic", "h1", title="NIC"), True),
    ("NIC of h1", ComponentRef.of("host", "h1"), False),
    ("host h1", ComponentRef.of("route", "h1", "h2", directed=True), False),
    ("route h1>h2", ComponentRef.of("route", "h1", "h2", directed=True), True),
]


def known_fault(component: str, more: str = "") -> KnownFault:
    table = f'format = 1\n[[suppress]]\ncomponent = "{component}"\nuntil = 2030-06-30\nreason = "x"\n{more}'
    (one,) = parse_known_faults(table, "site.toml", LAST_DAY).valid
    return one


@pytest.mark.parametrize(("written", "component", "covered"), COVERED)
def test_the_component_as_findings_print_it(written: str, component: ComponentRef, covered: bool) -> None:
    reported = Finding(state=State.FAULT, components=(component,))
    assert known_fault(written).covers(reported) is covered


@pytest.mark.parametrize(("effect", "covered"), [(-0.2, True), (-0.3, False), (0.2, True), (None, False)])
def test_a_larger_loss_counts(effect: float | None, covered: bool) -> None:
    slow = finding(State.FAULT, "host", "h1").model_copy(update={"effect": effect})
    assert known_fault("host h1", 'loss = "25%"').covers(slow) is covered


@pytest.mark.parametrize("state", [State.OK, State.NOT_JUDGED, State.SUPPRESSED])
def test_only_reported_findings_are_suppressed(state: State) -> None:
    assert not known_fault("host h1").covers(finding(state, "host", "h1"))


WRONG = [
    ('component = "hots h1"', "suppress 1: component: 'hots' is not a type of component: did you mean host"),
    ('component = "h1"', "suppress 1: component: 'h1' has no type and name"),
    ('component = "host h[1-99999999999]"', "suppress 1: component: "),
    ('component = "host h1"\ncheck = "net.link.mtu"', "suppress 1: unknown key 'check'"),
    ('component = "host h1"\nloss = "much"', "suppress 1: loss: 'much' is not a share"),
    ('component = "host h1"\nloss = 0.25', "suppress 1: loss: 0.25 is not a share"),
    ("component = 7", "suppress 1: component: 7 is not a text"),
]


@pytest.mark.parametrize(("lines", "message"), WRONG)
def test_a_wrong_table_is_refused_in_one_line(lines: str, message: str) -> None:
    text = f'format = 1\n[[suppress]]\n{lines}\nuntil = 2030-06-30\nreason = "x"\n'
    with pytest.raises(UsageError, match=r"^site\.toml: ") as error:
        parse_known_faults(text, "site.toml", LAST_DAY)
    assert message in str(error.value)


def test_a_loss_that_is_larger_than_the_known_one_is_said_to_count(folder: Path, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(f'{SITE}loss = "10%"\n')
    verdict = result(folder, site=str(site)).diagnosis.verdict
    assert verdict.verdict == "fault"
    assert PINNED["(host h 02-03 ): its finding"].ends(note_texts(verdict)[-1])

"""Site files for hosts: what is refused, severities, and suppressions with reason and date."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fleets import Change, fleet, rewritten
from hypothesis import given, strategies as st

from fablint.act import drains, parse_source
from fablint.errors import UsageError
from fablint.model.preflight_results import Fitness, Outcome
from fablint.preflight import CHECKS, Fleet, judge
from fablint.preflight.site.site_file import parse_site
from fablint.report import fitness_json, fitness_table
from fablint.report.exports.fitness_junit import junit_text
from fablint.report.exports.fitness_metrics import prometheus_text
from fablint.text.fitness_findings import findings
from fablint.workflows.check.preflight_findings import suppressed_notes, warning_notes, warnings
from finding_cases import texts
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

TODAY = date(2026, 1, 5)
HEAD = "format = 1\n"
CLASS = 'format = 1\n[[class]]\nname = "a"\nhosts = "n[1-8]"\n'
SUPPRESS = (
    HEAD
    + """
[[suppress]]
check = "net.link.mtu"
hosts = "ndr[2-3]"
target = "ib0"
until = 2026-01-31
reason = "switch firmware, ticket 4711"
"""
)
ODD: dict[str, Change] = {name: rewritten("4092", "2044", "/ib0/mtu") for name in ("ndr2", "ndr3")}


def seen(text: str, today: date = TODAY, changes: dict[str, Change] | None = None) -> Fitness:
    """Twelve hosts, two of them with another MTU, beside a site file."""
    site = parse_site(text, "etc/site.toml", today, CHECKS)
    return judge(Fleet(fleet({"ndr": 12}, ODD if changes is None else changes)), site=site)


def of_mtu(fitness: Fitness) -> dict[str, Outcome]:
    return {one.host: one.outcome for one in fitness.results if one.check == "net.link.mtu" and one.host in ODD}


def replaced(old: str, new: str) -> str:
    assert old in SUPPRESS
    return SUPPRESS.replace(old, new)


# ------------------------------------------------------------------------------------------------ suppressions


def test_a_suppressed_failure_makes_no_host_unfit() -> None:
    assert set(seen(HEAD).unfit) == {"ndr2", "ndr3"} and seen(HEAD).exit_code == 1
    fitness = seen(SUPPRESS)
    assert of_mtu(fitness) == {"ndr2": Outcome.SUPPRESSED, "ndr3": Outcome.SUPPRESSED}
    assert fitness.unfit == {} and fitness.exit_code == 0 and findings(fitness) == []


def test_a_suppressed_failure_is_printed_with_reason_and_date() -> None:
    fitness = seen(SUPPRESS)
    table = " ".join(fitness_table(fitness, 200).split())
    words = "ndr[2-3] ib0: MTU 2044, 10 others 4092 (FAIL, suppressed until 2026-01-31: switch firmware, ticket 4711)"
    assert f"SUPPRESSED net.link.mtu {words}" in table and "12 hosts: 12 fit" in table
    facts = json.loads("".join(fitness_json("quick", fitness)))
    assert facts["suppressed"] == [
        {
            "check": "net.link.mtu",
            "hosts": "ndr[2-3]",
            "target": "ib0",
            "message": "MTU 2044, 10 others 4092",
            "outcome": "FAIL",
            "until": "2026-01-31",
            "reason": "switch firmware, ticket 4711",
        }
    ]
    (one,) = [one for one in facts["results"] if one["outcome"] == "SUPPRESSED" and one["host"] == "ndr2"]
    assert one["suppressed"] == {"outcome": "FAIL", "until": "2026-01-31", "reason": "switch firmware, ticket 4711"}
    skipped = [one.get("message") or "" for one in ElementTree.fromstring(junit_text(fitness)).iter("skipped")]
    assert sum("suppressed until 2026-01-31: switch firmware" in message for message in skipped) == 2
    assert 'fablint_preflight_suppressed{check="net.link.mtu",host="ndr2"} 1' in prometheus_text(fitness, 1.0)
    assert 'fablint_preflight_result{check="net.link.mtu",host="ndr2"} 0' in prometheus_text(fitness, 1.0)


def test_a_suppressed_failure_is_a_note_of_the_verdict() -> None:
    """As such it is in the report of a check: text, JSON and HTML show the notes of a verdict."""
    fitness = seen(SUPPRESS)
    (note,) = texts(suppressed_notes(fitness))
    assert note == PINNED["preflight: net.link.mtu: ndr"]
    assert warning_notes(warnings(fitness)) == []


def test_it_comes_back_after_the_date_and_the_expired_suppression_is_said() -> None:
    last = date(2026, 1, 31)
    assert seen(SUPPRESS, last).unfit == {}
    fitness = seen(SUPPRESS, last + timedelta(days=1))
    assert set(fitness.unfit) == {"ndr2", "ndr3"}
    said = (
        "etc/site.toml: suppress 1 (net.link.mtu, ndr[2-3]) expired on 2026-01-31: "
        "its findings count again; renew or remove it"
    )
    assert texts(fitness.notes) == [said] and suppressed_notes(fitness) == []
    assert said in " ".join(fitness_table(fitness, 200).split())
    assert json.loads("".join(fitness_json("quick", fitness)))["notes"] == [said]


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ('hosts = "ndr[2-3]"', 'hosts = "ndr2"', {"ndr3"}),
        ('hosts = "ndr[2-3]"', 'hosts = "*"', set()),
        ('target = "ib0"', 'target = "ib1"', {"ndr2", "ndr3"}),
        ('target = "ib0"', 'target = "ib[0-1]"', set()),
        ('target = "ib0"\n', "", set()),
        ('check = "net.link.mtu"', 'check = "host.cstates"', {"ndr2", "ndr3"}),
        ("until = 2026-01-31", 'until = "2026-01-31"', set()),
    ],
)
def test_it_covers_what_it_names(old: str, new: str, left: set[str]) -> None:
    assert set(seen(replaced(old, new)).unfit) == left


def test_hosts_without_a_suppression_are_drained() -> None:
    facts = json.loads("".join(fitness_json("quick", seen(replaced('hosts = "ndr[2-3]"', 'hosts = "ndr2"')))))
    source = parse_source(json.dumps(facts), "preflight.json")
    assert [list(drain.hosts) for drain in drains(source)] == [["ndr3"]]
    assert "ndr2" in source.left()


def test_what_was_not_looked_at_cannot_be_suppressed() -> None:
    for check in ("host.snapshot", "net.examined"):
        with pytest.raises(UsageError, match=rf"suppress 1: {check} says what was not looked at"):
            parse_site(replaced("net.link.mtu", check), "site.toml", TODAY, CHECKS)


# ------------------------------------------------------------------------------------------------ severities


@pytest.mark.parametrize(
    ("severity", "outcome"), [("fail", Outcome.FAIL), ("warn", Outcome.WARN), ("info", Outcome.PASS)]
)
def test_the_severity_of_a_check_can_be_changed(severity: str, outcome: Outcome) -> None:
    fitness = seen(f'{HEAD}[severity]\n"net.link.mtu" = "{severity}"\n')
    assert set(of_mtu(fitness).values()) == {outcome}
    assert str(fitness.rules["net.link.mtu"].severity) == severity


def test_a_warning_can_be_made_a_failure() -> None:
    change: dict[str, Change] = {"ndr2": rewritten("5.14.0-427", "5.14.0-362", "osrelease")}
    assert seen(HEAD, changes=change).unfit == {}
    assert set(seen(f'{HEAD}[severity]\n"host.kernel" = "fail"\n', changes=change).unfit) == {"ndr2"}


def test_the_examples_of_the_reference_are_one_file() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/site-file.md").read_text()
    blocks = [block.partition("```")[0] for block in page.split("```toml")[1:]]
    site = parse_site(
        "".join([blocks[0], *(block.replace(HEAD, "") for block in blocks[1:])]), "site.toml", TODAY, CHECKS
    )
    (one,) = site.classes
    assert one.expect["pcie.numa"].targets == {"mlx5_0": 0, "mlx5_1": 0, "mlx5_2": 1, "mlx5_3": 1}
    assert set(site.severities) == {"host.cstates", "net.link.mtu", "host.kernel"}
    assert [rule.reason for rule in site.suppressions] == ["switch firmware, ticket 4711"]


# ------------------------------------------------------------------------------------------------ bad files

BAD: Sequence[tuple[str, str]] = [
    ("format = ", "site.toml: not TOML: Invalid value (at end of document)"),
    ("[[suppress]]\n", "site.toml: no format: write format = 1 on top"),
    (f"{HEAD}[[supress]]\n", "site.toml: unknown key 'supress': did you mean suppress"),
    (f"{HEAD}suppress = 3\n", "site.toml: suppress is not a list of tables: begin each with [[suppress]]"),
    (replaced("net.link.mtu", "net.link.mut"), "suppress 1: unknown check 'net.link.mut': did you mean net.link.mtu"),
    (replaced('"net.link.mtu"', "7"), "site.toml: suppress 1: unknown check 7"),
    (replaced("reason =", "resaon ="), "site.toml: suppress 1: unknown key 'resaon': did you mean reason"),
    (replaced('reason = "switch firmware, ticket 4711"', ""), "suppress 1: no reason: it needs check, hosts, until"),
    (replaced("switch firmware, ticket 4711", " "), "suppress 1: reason is empty: give the reason"),
    (replaced("until = 2026-01-31", ""), "site.toml: suppress 1: no until"),
    (replaced("2026-01-31", "2026-02-30"), "site.toml: not TOML: Invalid date or datetime (at line 7, column"),
    (replaced("2026-01-31", '"31.1.2026"'), "suppress 1: until: '31.1.2026' is not a date: write the last day as"),
    (replaced("2026-01-31", "2026-01-31T10:00:00"), "is not a date: write the last day as 2026-12-31"),
    (replaced("2026-01-31", "20260131"), "suppress 1: until: 20260131 is not a date"),
    (replaced("ndr[2-3]", "ndr[2-"), "suppress 1: hosts: 'ndr[2-' is not a list of hosts"),
    (replaced("ndr[2-3]", "ndr[1-99999999999]"), "suppress 1: hosts: 'ndr[1-99999999999]' stands for more than"),
    (replaced("ndr[2-3]", ""), "site.toml: suppress 1: hosts: no host"),
    (f'{HEAD}[severity]\n"host.cstate" = "warn"\n', "severity: unknown check 'host.cstate': did you mean host.cstates"),
    (f'{HEAD}[severity]\n"host.cstates" = "warm"\n', "unknown host.cstates 'warm': did you mean warn"),
    (f'{HEAD}[severity]\n"net.examined" = "info"\n', "net.examined says what was not looked at"),
    (f"{HEAD}severity = 1\n", "site.toml: severity is not a table"),
    (f'{HEAD}[[class]]\nhosts = "n1"\n', "site.toml: class 1: no name"),
    (f'{HEAD}[[class]]\nname = "a"\n', "site.toml: class 1 (a): which hosts are it?"),
    (f'{CLASS}color = "x"\n', "site.toml: class 1: unknown key 'color'"),
    (f'{CLASS}[[class]]\nname = "a"\nhosts = "m1"\n', "site.toml: two classes are called 'a'"),
    (f'{CLASS}[[class]]\nname = "b"\nhosts = "n8"\n', "site.toml: n8 is in class 'a' and 'b'"),
    (f'{CLASS}[class.cards]\n"NIC 1:2" = 0\n', "class 1 (a): cards: 'NIC 1:2': 0 is not a number of cards"),
    (f'{CLASS}[class.cards]\n"CPU 1:2" = 1\n', "class 1 (a): cards: 'CPU 1:2' is not a card"),
    (f"{CLASS}expect = 1\n", "site.toml: class 1 (a): expect is not a table"),
    (f'{CLASS}[class.expect]\n"net.link.mut" = 1\n', "expect: unknown check 'net.link.mut': did you mean net.link.mtu"),
    (f'{CLASS}[class.expect]\n"net.link.mtu" = "9000"\n', "net.link.mtu: '9000' is not a figure: give a figure"),
    (f'{CLASS}[class.expect]\n"net.link.mtu" = nan\n', "net.link.mtu: nan is not a figure"),
    (f'{CLASS}[class.expect]\n"host.kernel" = 6.1\n', "host.kernel: 6.1 is not a text: give a text in quotes"),
    (f'{CLASS}[class.expect]\n"log.hw" = "x"\n', "class 1 (a): log.hw: this check has no value to expect"),
    (f'{CLASS}[class.expect]\n"net.offload" = "on"\n', "net.offload: 'on' is not a table: give each setting its value"),
    (f'{CLASS}[class.expect."net.link.mtu"]\n"ib[0-1]" = 1\nib1 = 2\n', "net.link.mtu: 'ib1' has two values"),
    (f'{CLASS}[class.expect."net.link.mtu"]\nib0 = "9000"\n', "net.link.mtu: ib0: '9000' is not a figure"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_file_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_site(text, "site.toml", TODAY, CHECKS)
    line = str(raised.value)
    assert message in line and line.startswith("site.toml: ") and "\n" not in line and raised.value.hint


TOML = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["class", "severity", "suppress"]),
        TOML | st.lists(st.dictionaries(st.sampled_from(["name", "hosts", "check", "until", "expect", "cards"]), TOML)),
    )
)
def test_whatever_is_in_a_file_it_is_read_or_refused(tables: dict[str, object]) -> None:
    import tomlkit

    try:
        text = tomlkit.dumps({"format": 1, **tables})
    except Exception:  # some of it is no TOML
        return
    try:
        parse_site(text, "site.toml", TODAY, CHECKS)
    except UsageError as error:
        assert "\n" not in str(error)

"""What preflight prints and writes: the table, JSON, JUnit, Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from fablint.model.preflight_results import Fitness, Outcome, Result, Rule, Severity, Suppressed
from fablint.report import fitness_json, fitness_table
from fablint.report.exports.fitness_junit import junit_text
from fablint.report.exports.fitness_metrics import prometheus_text
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

HOSTS = tuple(f"nid{number:06d}" for number in range(1001, 1017))
REMEDIES = {
    "net.link.up": "look at cable, NIC and the port of the switch",
    "net.link.mtu": "set the same MTU everywhere; long messages are lost on the path",
    "net.errors": "clean or swap the cable",
}


def fitness_of(*results: Result, hosts: Sequence[str] = HOSTS, silent: dict[str, str] | None = None) -> Fitness:
    """What these results make, with a rule for each check that they name."""
    checks = dict.fromkeys(one.check for one in results)
    rules = {
        name: Rule(name, "what", "source", "rule", Severity.FAIL, "nic", False, REMEDIES.get(name, f"repair {name}"))
        for name in checks
    }
    return Fitness([*hosts, *(silent or {})], results, rules, silent or {})


def passed(check: str, *targets: str, but: Sequence[str] = ()) -> list[Result]:
    return [Result(check, host, one, Outcome.PASS) for host in HOSTS if host not in but for one in targets or [""]]


def failed(check: str, host: str, target: str, message: str, outcome: Outcome = Outcome.FAIL) -> Result:
    return Result(check, host, target, outcome, message)


def faulty_fleet() -> Fitness:
    """Two hosts with another MTU on both NICs, one with a link down, one silent, eight with counters that grow."""
    odd = ("nid001003", "nid001007")
    results = [
        *passed("net.link.up", "hsn0", "hsn1", but=["nid001013"]),
        Result("net.link.up", "nid001013", "hsn0", Outcome.PASS),
        failed("net.link.up", "nid001013", "hsn1", "link down"),
        *passed("net.link.mtu", "hsn0", "hsn1", but=odd),
        *(failed("net.link.mtu", one, nic, "MTU 1500, 14 others 9000") for one in odd for nic in ("hsn0", "hsn1")),
        *passed("net.errors", "hsn0", but=HOSTS[:8]),
        *(
            failed("net.errors", one, "hsn0", f"rx_crc_errors {count} in 3 h", Outcome.WARN)
            for count, one in enumerate(HOSTS[:8], 1)
        ),
        *(Result("cxi.link", one, "", Outcome.SKIP, "no Slingshot NIC") for one in HOSTS),
        *(Result("cxi.fw", one, "", Outcome.SKIP, "no Slingshot NIC") for one in HOSTS),
        *(Result("host.acs", one, "", Outcome.SKIP, "lspci: not installed") for one in HOSTS),
        *passed("host.shm"),
        *passed("host.time", but=["nid001005"]),
        failed("host.time", "nid001005", "", "chronyc printed '\x1b[31mgibberish'", Outcome.ERROR),
    ]
    return fitness_of(*results, silent={"nid001099": "does not answer ssh within 21 s"})


# ------------------------------------------------------------------------------------------------ console


def test_what_is_wrong_worst_first():
    assert fitness_table(faulty_fleet(), 80) == PINNED["FAIL no answer nid001099"]


def test_a_clean_fleet_has_two_lines():
    skipped = [Result(f"x.c{number}", HOSTS[0], "", Outcome.SKIP, f"reason {number:040d}") for number in range(9)]
    assert (
        fitness_table(fitness_of(*passed("net.link.up"), *passed("net.link.mtu")), 80)
        == PINNED["16 hosts: 16 fit; 2 checks"]
    )
    lines = fitness_table(fitness_of(*passed("net.link.up"), *skipped), 80).splitlines()
    assert len(lines) == 2
    assert lines[1].endswith("; 8 more reasons")


def test_reasons_with_one_ending_are_one_reason():
    results = [
        Result("host.kernel", "a", "", Outcome.SKIP, "kernel 6.1; no majority to compare with"),
        Result("host.bios", "a", "", Outcome.SKIP, "BIOS 2; no majority to compare with"),
        Result("host.acs", "a", "", Outcome.SKIP, "lspci: not installed"),
        Result("lldp.heard", "a", "", Outcome.SKIP, "lldpcli: not installed"),
        Result("host.time", "a", "", Outcome.SKIP, "chronyc: other"),
    ]
    last = fitness_table(fitness_of(*results, hosts=["a"]), 120).splitlines()[-1]
    assert last == PINNED["skipped: no majority to compare"]


def test_a_check_that_is_seen_on_some_hosts_only_did_not_pass_on_every():
    seen = [Result("net.link.up", HOSTS[0], "", Outcome.PASS), Result("net.link.up", HOSTS[1], "", Outcome.SKIP, "no")]
    assert "1 check: 1 on some\n" in fitness_table(fitness_of(*seen), 80)


def test_silent_hosts_pass_nothing():
    fitness = fitness_of(hosts=(), silent={"a1": "no route", "a2": "no route"})
    table = fitness_table(fitness, 80)
    assert "a[1-2]: no route" in table
    assert "2 hosts: 0 fit, 2 unfit (a[1-2])\n" in table
    assert "passed" not in table


def test_parts_of_which_the_same_is_said_share_a_line():
    results = [failed("host.governor", "n1", f"cpu{number}", "powersave") for number in range(128)]
    assert "n1 cpu[0-127]: powersave\n" in fitness_table(fitness_of(*results, hosts=["n1"]), 80)


def test_many_parts_of_a_check_are_cut_short():
    results = [failed("log.kernel", f"n{number}", f"part{number}", f"message {number}") for number in range(30)]
    table = fitness_table(fitness_of(*results, hosts=["n1"]), 80)
    assert table.count("FAIL") == 8
    assert "... and 23 more (--json has all)\n" in table
    assert table.count("remedy:") == 1


def test_a_long_list_of_hosts_is_cut_and_counted():
    odd = [f"n{number:04d}" for number in range(1, 999, 2)]
    table = fitness_table(fitness_of(*(failed("net.link.up", one, "", "down") for one in odd), hosts=odd), 80)
    assert "(499 hosts): down" in " ".join(table.split())
    assert len(table.splitlines()) < 12


def test_a_check_names_its_remedy_once_and_none_for_errors():
    results = [
        failed("net.errors", "a", "", "bad"),
        failed("net.errors", "b", "", "less bad", Outcome.WARN),
        failed("net.link.up", "a", "", "gibberish", Outcome.ERROR),
    ]
    table = fitness_table(fitness_of(*results, hosts=["a", "b"]), 80)
    assert table.count("remedy: clean or swap the cable") == table.count("remedy:") == 1


def test_colour_where_it_is_asked_for():
    plain, coloured = fitness_table(faulty_fleet(), 80), fitness_table(faulty_fleet(), 80, color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31mFAIL\x1b[0m   no answer" in coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(len, fitness_table(faulty_fleet(), width).splitlines())) <= width


TEXT = st.text(max_size=30)
RESULTS = st.builds(
    Result,
    st.sampled_from(["net.link.up", "log.kernel"]),
    st.sampled_from(["n1", "n2", "a b,[c]", "x\x00&<\"'\\\n"]) | TEXT,
    TEXT,
    st.sampled_from([one for one in Outcome if one is not Outcome.SUPPRESSED]),
    TEXT,
    suppressed=st.none(),
) | st.builds(
    Result,
    st.sampled_from(["net.link.up", "log.kernel"]),
    st.sampled_from(["n1", "n2", "a b,[c]"]) | TEXT,
    TEXT,
    st.just(Outcome.SUPPRESSED),
    TEXT,
    suppressed=st.builds(
        Suppressed, st.sampled_from([Outcome.WARN, Outcome.FAIL]), st.just("2026-12-31"), TEXT.filter(bool)
    ),
)


@settings(max_examples=60)
@given(st.lists(RESULTS, max_size=12), st.dictionaries(TEXT, TEXT, max_size=2))
def test_whatever_hosts_say_all_outputs_can_be_read(results, silent):
    hosts = list(dict.fromkeys(one.host for one in results if one.host not in silent))
    fitness = fitness_of(*(one for one in results if one.host in hosts), hosts=hosts, silent=silent)
    table = fitness_table(fitness, 80)
    assert all(letter.isprintable() or letter == "\n" for letter in table)
    ElementTree.fromstring(junit_text(fitness))
    families = {one.name: one for one in text_string_to_metric_families(prometheus_text(fitness, 1.0))}
    assert {one.labels["host"] for one in families["fablint_preflight_unfit"].samples} == set(fitness.hosts)
    json.loads("".join(fitness_json("quick", fitness)))


# ------------------------------------------------------------------------------------------------ JSON


def test_json_has_everything():
    facts = json.loads("".join(fitness_json("full", faulty_fleet())))
    further = ["unfit", "not_examined", "not_pinged", "findings", "suppressed", "notes", "results"]
    assert list(facts) == ["format", "exit_code", "level", "hosts", "silent", *further]
    assert (facts["format"], facts["exit_code"], facts["level"], len(facts["hosts"])) == (1, 1, "full", 17)
    assert facts["unfit"]["nid001013"] == "net.link.up hsn1 link down"
    assert list(facts["results"][0]) == [
        "check",
        "host",
        "target",
        "outcome",
        "message",
        "value",
        "expected",
        "unit",
        "cause",
    ]
    assert Counter(one["state"] for one in facts["findings"]) == {"FAULT": 4, "SUSPECT": 8, "NOT JUDGED": 1}


# ------------------------------------------------------------------------------------------------ JUnit


def test_junit_counts_what_it_holds():
    fitness = faulty_fleet()
    root = ElementTree.fromstring(junit_text(fitness))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["host.answers", *fitness.rules]
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(attribute) == str(len(suite.findall(f"testcase/{tag}")))
    totals = {name: int(root.get(name, "")) for name in ("tests", "failures", "errors", "skipped")}
    assert totals == {
        "tests": len(fitness.results) + 17,
        "failures": 1 + 4 + 1,  # a link, four MTUs, a silent host
        "errors": 1,
        "skipped": 48,
    }


def test_junit_says_what_failed_and_a_warning_is_no_failure():
    root = ElementTree.fromstring(junit_text(faulty_fleet()))
    case = root.find("testsuite[@name='net.link.up']/testcase[@name='nid001013/hsn1']")
    assert case is not None
    assert case.get("classname") == "net.link.up"
    failure = case.find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == ("link down", f"remedy: {REMEDIES['net.link.up']}")
    warned = root.find("testsuite[@name='net.errors']/testcase[@name='nid001001/hsn0']")
    assert warned is not None
    assert [child.tag for child in warned] == ["system-out"]
    assert "rx_crc_errors 1 in 3 h" in (warned[0].text or "")


def test_a_silent_host_is_a_test_that_fails():
    suite = ElementTree.fromstring(junit_text(faulty_fleet()))[0]
    assert [case.get("name") for case in suite if len(case)] == ["nid001099"]


def test_what_xml_forbids_is_replaced():
    text = junit_text(
        fitness_of(failed("net.link.up", "a\x00<b>", "\ud800", "\x1b[31m & \ufffe \"'"), hosts=["a\x00<b>"])
    )
    text.encode()
    case = ElementTree.fromstring(text)[1][0]
    assert (case.get("name"), case[0].get("message")) == ("a?<b>/?", "?[31m & ? \"'")


# ------------------------------------------------------------------------------------------------ Prometheus


def samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Metrics by name and by the values of their labels, as Prometheus' own parser reads them."""
    return {
        family.name: {tuple(one.labels[key] for key in sorted(one.labels)): one.value for one in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_prometheus_has_a_figure_for_each_host_and_check():
    found = samples(prometheus_text(faulty_fleet(), 1767594000.25))
    results = found["fablint_preflight_result"]
    assert len(results) == 16 * 8
    assert results["net.link.up", "nid001013"] == 3  # hsn0 passed, hsn1 did not
    assert results["net.link.up", "nid001001"] == 0
    assert results["net.errors", "nid001001"] == 1
    assert results["host.time", "nid001005"] == 2
    assert results["cxi.link", "nid001001"] == -1
    unfit = found["fablint_preflight_unfit"]
    assert len(unfit) == 17
    assert {host for (host,), value in unfit.items() if value} == set(faulty_fleet().unfit)
    assert found["fablint_preflight_last_run_timestamp_seconds"] == {(): 1767594000.25}


def test_metrics_are_described_and_sorted():
    text = prometheus_text(faulty_fleet(), 1.0)
    lines = text.splitlines()
    assert text.endswith("\n")
    for name in ("result", "unfit", "last_run_timestamp_seconds"):
        at = next(index for index, line in enumerate(lines) if line.startswith(f"# HELP fablint_preflight_{name} "))
        assert lines[at + 1] == f"# TYPE fablint_preflight_{name} gauge"
    results = [line for line in lines if line.startswith("fablint_preflight_result{")]
    assert results == sorted(results)


def test_labels_are_escaped():
    host = 'a"b\\c\nd'
    text = prometheus_text(fitness_of(failed("net.link.up", host, "", "down"), hosts=[host]), 1.0)
    assert samples(text)["fablint_preflight_result"] == {("net.link.up", host): 3.0}


def test_half_of_a_surrogate_pair_in_a_label_is_replaced():
    text = prometheus_text(fitness_of(failed("net.link.up", "n\ud8001", "", "down"), hosts=["n\ud8001"]), 1.0)
    assert samples(text)["fablint_preflight_unfit"] == {("n?1",): 1.0}


# ------------------------------------------------------------------------------------------------ cost


def test_preflight_prints_without_numpy():
    """It runs on every host, every few minutes."""
    code = "import sys, fablint.report.preflight.preflight_text; print('numpy' in sys.modules, 'jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_only_coloured_output_imports_rich():
    """Cron jobs have no terminal, and most of them write no metrics."""
    code = (
        "import sys; import fablint.report.preflight.preflight_text\n"
        "from fablint.report.terminal_colours import coloured\n"
        "before = {'rich', 'prometheus_client'} & set(sys.modules)\n"
        "print(sorted(before), ascii(coloured('FAIL', 'bold red')), 'rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] '\\x1b[1;31mFAIL\\x1b[0m' True\n"


def test_what_is_not_there_is_said():
    import fablint.report

    assert not hasattr(fablint.report, "nonsense")
    assert all(hasattr(fablint.report, name) for name in fablint.report.__all__)

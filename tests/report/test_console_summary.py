"""The terminal summary: short, verdict first, honest about what is left out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_cases import HEALTHY, SLOW_HOST, diagnose, fault_case, healthy_case, incomplete_case

import finding_cases
from fablint.analyse import diagnose as analyse
from fablint.model import ComponentRef, Finding, State
from fablint.report import console_summary
from fablint.report.console import MAX_LINES
from fablint.simulate import Fault, fat_tree, full_mesh, simulate
from fablint.text import actions as advise, evidence as seen
from fact_cases import with_facts
from pinned import pinned_by

PINNED = pinned_by("report.toml", __file__)

HOSTILE = "evil\x1b[2J\nhost"


def many_faults(count):
    faults = [
        SLOW_HOST.model_copy(
            update={"components": (ComponentRef.of("host", f"n{index:04d}"),), "effect": -0.3 - index / 10_000}
        )
        for index in range(count)
    ]
    fabric = full_mesh(2, 4)
    run = simulate(fabric, seed=1)
    return run, diagnose(
        run, fabric.topology, "fault", [HEALTHY, *faults], notes=[f"note {index}" for index in range(9)]
    )


def test_the_headline_counts_findings_by_their_state():
    found = [finding_cases.finding(State.CONFOUNDED, "host", f"n{index}") for index in range(2)]
    summary = console_summary(healthy_case()[0], diagnose(healthy_case()[0], None, "incomplete", found))
    assert summary.splitlines()[0].startswith("INCOMPLETE  2 confounded findings; ")


@pytest.mark.parametrize("width", [80, 100, 40])
@pytest.mark.parametrize("case", [healthy_case, fault_case, incomplete_case, lambda: many_faults(400)])
def test_summary_stays_within_25_lines_and_the_width(case, width):
    lines = console_summary(*case(), width=width).splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= width


def test_the_first_line_is_the_verdict():
    for case, word in ((healthy_case, "PASS"), (fault_case, "FAULT"), (incomplete_case, "INCOMPLETE")):
        assert console_summary(*case()).startswith(word)


def test_a_fault_is_printed_with_component_direction_effect_interval_evidence_alternatives_and_next_step():
    summary = console_summary(*fault_case())
    for words in (
        "FAULT       host h13 tx (sending)  bandwidth -31 % [-33, -29]",
        "63 of 63 partners",
        "indistinguishable from: nic h13/nic0, cable h13=s1, port of s1",
        "next: measure h13 in loopback",
        "OK          host h[00-12,14-63]",
    ):
        assert words in summary


def test_coverage_measurements_and_instrument_follow_the_findings():
    summary = console_summary(*fault_case())
    assert PINNED["4,032 of 4,032 planned measurements"] in summary
    assert PINNED["64 hosts, 64 ranks, 2 rows"] in summary
    assert re.search(r"latency at 8 B: edge 1\.\d\d us, local 1\.\d\d us", summary)
    assert re.search(r"bandwidth at 1 MiB: edge 2\d\.\d GB/s", summary)
    assert "resolution 1.00 ns" in summary


def test_coverage_of_a_run_that_ended_early_counts_all_repeats_and_the_rows_that_are_missing():
    run, diagnosis = incomplete_case()
    run = with_facts(run, rows=[*(row.name for row in run.rows), "never begun"])
    words = next(line for line in console_summary(run, diagnosis).splitlines() if line.startswith("coverage"))
    measured, planned = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", words)[:2])
    assert measured < planned == 2 * 64 * 63
    assert PINNED["planned measurements, 1"] in words


def test_what_does_not_fit_is_counted_and_the_worst_comes_first():
    lines = console_summary(*many_faults(400)).splitlines()
    assert "host n0399" in lines[2]
    named = sum("host n0" in line for line in lines)
    rest = next(line for line in lines if "more (--all shows them)" in line and "note" not in line)
    assert int(re.search(r"\d+", rest)[0]) == 401 - named  # 400 faults and the folded healthy ones


def test_healthy_hosts_are_folded_into_one_line():
    run, diagnosis = healthy_case()
    findings = [
        HEALTHY.model_copy(update={"components": (ComponentRef.of("host", host),), "effect": -0.001 * index})
        for index, host in enumerate(run.hosts)
    ]
    summary = console_summary(run, diagnose(run, diagnosis.topology, findings=findings))
    assert PINNED["host h 00-63 lost bandwidth"] in summary


def test_numbers_of_components_keep_their_own_reasons():
    run, diagnosis = healthy_case()
    reasons = {
        36: seen.few_link_pairs(6).measured_in("bandwidth"),
        540: seen.shared_ecmp_paths().measured_in("latency"),
    }
    findings = [
        Finding(state=State.NOT_JUDGED, components=(ComponentRef(kind="link", count=count),), evidence=(reason,))
        for count, reason in reasons.items()
    ]
    lines = console_summary(run, diagnose(run, diagnosis.topology, findings=findings)).splitlines()
    at = lines.index("NOT JUDGED  36 links")
    assert PINNED["bandwidth: each crossed"] in lines[at + 1]
    assert lines[at + 2] == "NOT JUDGED  540 links"


def test_a_condition_of_the_measurement_is_named_without_the_word_config():
    run, diagnosis = healthy_case()
    found = finding_cases.finding(State.CONFOUNDED, "config", "more ranks than CPUs")
    of_host = finding_cases.finding(State.FAULT, "config", "h05/hsn0")
    lines = console_summary(run, diagnose(run, diagnosis.topology, findings=(found, of_host))).splitlines()
    assert {"CONFOUNDED  more ranks than CPUs", "FAULT       config h05/hsn0"} <= set(lines)


def test_colour_only_where_asked_for_and_without_changing_the_words():
    run, diagnosis = fault_case()
    plain, coloured = (console_summary(run, diagnosis, color=color) for color in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_names_cannot_steer_the_terminal():
    run, diagnosis = fault_case()
    finding = Finding(
        state=State.FAULT,
        components=(ComponentRef.of("host", HOSTILE),),
        evidence=finding_cases.evidence_of(HOSTILE),
        next_step=advise.remedy(HOSTILE),
    )
    diagnosis = diagnose(run, diagnosis.topology, "fault", (finding,), notes=(HOSTILE,))
    summary = console_summary(run, diagnosis)
    assert "\x1b" not in summary
    assert len(summary.splitlines()) <= MAX_LINES


def test_notes_of_the_reader_are_printed():
    run, diagnosis = healthy_case()
    assert "a chunk is missing" in console_summary(replace(run, notes=["a chunk is missing"]), diagnosis)


@pytest.mark.parametrize(("count", "shown"), [(6, 6), (7, 5), (30, 5)])
def test_warnings_of_preflight_are_printed_and_omitted_warnings_are_counted(count, shown):
    run, diagnosis = healthy_case()
    notes = [f"preflight warns: check.{index}: word (n1)" for index in range(count)]
    lines = console_summary(replace(run, notes=notes), diagnosis).splitlines()
    assert sum("preflight warns" in line for line in lines) == shown
    more = [line for line in lines if line.startswith("note") and "more (--all shows them)" in line]
    assert [int(re.search(r"\d+", line)[0]) for line in more] == ([count - shown] if count > shown else [])


def test_a_pipe_gets_everything_on_unbroken_lines():
    run, diagnosis = many_faults(400)
    lines = console_summary(run, diagnosis, width=None, is_full=True).splitlines()
    assert sum(line.startswith("FAULT       host n") for line in lines) == 400
    assert sum(line.startswith("note") for line in lines) >= 9
    assert not any("--all" in line or line.endswith("...") for line in lines)
    wrapped = console_summary(run, diagnosis, width=60, is_full=True).splitlines()
    assert len(wrapped) > len(lines)


@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_names_without_room_are_shortened_and_figures_are_not(width):
    fabric = fat_tree(8, 2)
    faults = (
        Fault(finding_cases.ref("cable", "leaf2", "spine5"), bandwidth_factor=0.8),
        Fault(finding_cases.ref("host", "h13"), bandwidth_factor=0.7),
    )
    run = simulate(fabric, faults=faults, seed=2)
    lines = console_summary(run, analyse(run, fabric.topology), width=width).splitlines()
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert re.search(
        r"17\.\d of 24\.\d GB/s \(-(30|29\.\d|30\.\d) % \[-\d\d(\.\d)?, -\d\d(\.\d)?\]\)\s+1 host, 126 pairs", text
    )
    (cable,) = [line for line in lines if line.startswith("FAULT       cable")]
    interval = r" \[-\d\d(\.\d)?, -\d\d(\.\d)?\]" if width > 60 else ""  # else hardly anything of the name is left
    assert re.search(
        rf"cable leaf2=.*  \d\d\.\d of 24\.\d GB/s \(-\d\d(\.\d)? %{interval}\)(  8 hosts, 112 pairs)?$", cable
    )


@pytest.mark.parametrize("width", [48, 60, 72])
def test_a_figure_is_on_the_line_of_its_unit_and_never_cut(width):
    fabric = fat_tree(8, 2)
    run = simulate(fabric, faults=(Fault(finding_cases.ref("host", "h13"), added_latency_s=5e-5),), seed=2)
    diagnosis = analyse(run, fabric.topology)
    text = console_summary(run, diagnosis, width=width, is_full=True)
    assert not re.search(r"^\s+(%|us|ns|ms|GB/s)", text, re.MULTILINE)
    assert not re.search(r"\d ?\.\.\.$", console_summary(run, diagnosis, width=width), re.MULTILINE)
    assert re.search(r"median \d\d x \[\d\d, \d\d\]", " ".join(text.split()))  # not +2925%

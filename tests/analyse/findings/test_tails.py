"""Messages that come much later than the others of their pair, and hosts that are slow within themselves."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_cases import ALL, FABRIC, HOSTS, list_row, matrix_row, run_of, switch_of

from fablint.analyse import diagnose
from fablint.model import Run, State
from fablint.text.evidence_sentences import sentences
from fact_cases import with_facts

USUAL_S = 15e-6
LOST_S = 10e-3  # until it is sent again


def healthy(src: int, dst: int) -> float:
    return USUAL_S


def lossy(faulty, share: float = 1.0, seed: int = 1):
    """Means of pairs for which `faulty` is true; in a `share` of the measurements something was lost."""
    random = np.random.default_rng(seed)

    def mean(src: int, dst: int) -> float:
        late = faulty(src, dst) and random.random() < share
        return USUAL_S * float(1.1 + 0.3 * random.random()) + (0.05 * LOST_S if late else 0.0)

    return mean


def in_rounds(mean) -> Run:
    stream = list_row("edge-bandwidth", ALL, lambda *_: 0.01)
    return run_of(list_row("edge-latency", ALL * 2, healthy, order="serial", mean=mean), stream)


def in_a_matrix(mean, repeats: int = 1) -> Run:
    return run_of(matrix_row("latency", healthy, repeats=repeats, mean=mean))


def in_two_repeats(mean) -> Run:
    return in_a_matrix(mean, 2)


def at_fault(run: Run) -> list[tuple[str, str]]:
    verdict = diagnose(run, FABRIC).verdict
    return [(finding.component, finding.name) for finding in verdict.findings if finding.state is State.FAULT]


LAYOUTS = pytest.mark.parametrize("layout", [in_rounds, in_a_matrix, in_two_repeats])


@LAYOUTS
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_host_that_loses_messages_is_named(layout, share: float) -> None:
    assert at_fault(layout(lossy(lambda src, dst: 9 in (src, dst), share))) == [("host", HOSTS[9])]


@LAYOUTS
def test_two_hosts_that_lose_messages_are_both_named(layout) -> None:
    found = at_fault(layout(lossy(lambda src, dst: bool({3, 9} & {src, dst}))))
    assert sorted(found) == [("host", HOSTS[3]), ("host", HOSTS[9])]


@LAYOUTS
def test_a_cable_between_switches_that_loses_messages_is_named(layout) -> None:
    assert at_fault(layout(lossy(lambda src, dst: {switch_of(src), switch_of(dst)} == {0, 1}, 0.7))) == [
        ("cable", "s0=s1")
    ]


@LAYOUTS
@pytest.mark.parametrize("seed", range(5))
def test_messages_that_are_late_anywhere_at_times_report_no_component(layout, seed: int) -> None:
    assert at_fault(layout(lossy(lambda *_: True, 0.08, seed))) == []


@LAYOUTS
def test_a_noisy_machine_reports_no_component(layout) -> None:
    random = np.random.default_rng(2)
    assert at_fault(layout(lambda *_: USUAL_S * float(random.lognormal(0.4, 0.4)))) == []


def test_a_matrix_and_a_list_of_the_same_messages_have_the_same_findings() -> None:
    """Not every pair of the faulty host is late."""
    mean = lossy(lambda src, dst: 9 in (src, dst), 0.7, seed=7)
    known: dict[tuple[int, int], float] = {}

    def same(src: int, dst: int) -> float:
        return known.setdefault((src, dst), mean(src, dst))

    rounds = run_of(list_row("latency", ALL, healthy, mean=same))
    of_list, of_matrix = (
        [finding for finding in diagnose(run, FABRIC).verdict.findings if finding.state is State.FAULT]
        for run in (rounds, in_a_matrix(same))
    )
    # The layouts draw their noise of 1 % apart: what is counted is the same, the mean nearly.
    counted = [
        [(one.name, sentences(one.evidence).partition("what is usual")[2]) for one in found]
        for found in (of_list, of_matrix)
    ]
    assert counted[0] == counted[1]
    assert "15 of 15 pairs" in counted[0][0][1]
    assert of_matrix[0].effect == pytest.approx(of_list[0].effect, rel=0.02)


def test_one_late_route_measured_often_is_evidence_against_neither_end() -> None:
    """24 measurements of one pair, beside one of every other: the route may be at fault as well as the host."""
    mean = lossy(lambda src, dst: {src, dst} == {4, 9})
    run = run_of(list_row("edge-latency", [*ALL, *[(4, 9)] * 24], healthy, order="serial", mean=mean))
    assert at_fault(run) == []


def test_three_late_routes_of_which_one_is_measured_often_report_no_component() -> None:
    mean = lossy(lambda src, dst: {src, dst} in ({4, 9}, {5, 9}, {6, 9}))
    run = run_of(list_row("edge-latency", [(4, 9)] * 24 + ALL, healthy, order="serial", mean=mean))
    assert at_fault(run) == []


def test_pairs_of_one_host_count_once_for_a_matrix_of_several_ranks_each() -> None:
    """Two ranks on each of 8 hosts: messages within a host are not messages of the fabric."""
    placed = {"hosts": HOSTS[:8], "rank_host": [rank // 2 for rank in range(16)]}
    mean = lossy(lambda src, dst: src // 2 != dst // 2 and 5 in (src // 2, dst // 2))
    assert at_fault(with_facts(in_a_matrix(mean), **placed)) == [("host", HOSTS[5])]


# ------------------------------------------------------------------------------------------------ within hosts


def inside(factor: dict[int, float], repeats: int = 3, **more: object) -> Run:
    """Two ranks on each of eight hosts."""
    pairs = [(2 * host, 2 * host + 1) for host in range(8)] * repeats

    def time(src: int, dst: int) -> float:
        return 1e-3 * factor.get(src // 2, 1.0)

    hosts = {"hosts": HOSTS[:8], "rank_host": [rank // 2 for rank in range(16)]}
    return run_of(list_row("intra-node-bandwidth", pairs, time), **hosts, **more)


def test_a_host_that_is_slow_within_itself_is_named() -> None:
    found = [finding for finding in diagnose(inside({5: 2.0})).verdict.findings if finding.state is State.FAULT]
    assert [(one.component, one.name) for one in found] == [("host", HOSTS[5])]
    assert found[0].effect == pytest.approx(-0.5, abs=0.02)


def test_hosts_that_differ_a_little_are_not() -> None:
    faults = [
        finding for finding in diagnose(inside({5: 1.3, 2: 0.8})).verdict.findings if finding.state is State.FAULT
    ]
    assert faults == []


def test_hosts_that_differ_are_measured_again_and_those_that_agree_make_a_fault_of_less() -> None:
    """The tolerance is the spread of the hosts that are not slow."""
    for factors, state in (({5: 1.3, 2: 0.8}, State.SUSPECT), ({5: 1.2}, State.FAULT), ({5: 1.08}, None)):
        found = [
            (finding.state, finding.name)
            for finding in diagnose(inside(factors)).verdict.findings
            if finding.component == "host"
        ]
        slow = [one for one in found if one[0] in (State.FAULT, State.SUSPECT)]
        assert slow == ([] if state is None else [(state, HOSTS[5])])


def test_a_host_measured_once_within_itself_is_suspect_at_most() -> None:
    found = [finding for finding in diagnose(inside({5: 2.0}, repeats=1)).verdict.findings if finding.name == HOSTS[5]]
    assert [one.state for one in found] == [State.SUSPECT]


def test_containers_of_one_machine_are_not_compared_within() -> None:
    found = diagnose(inside({5: 2.0}, machines=1)).verdict.findings
    assert not [one for one in found if one.state is State.FAULT]


def test_of_two_kinds_of_hosts_none_is_at_fault() -> None:
    faults = [
        finding
        for finding in diagnose(inside(dict.fromkeys(range(4), 2.0))).verdict.findings
        if finding.state is State.FAULT
    ]
    assert faults == []

"""Partners count, not measurements: a pair that is measured often shows its two hosts and their route together."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from cluster_cases import ALL, FABRIC, HOSTS, list_row, run_of, switch_of

from fablint.analyse import diagnose
from fablint.analyse.observations.balance import End, HostPairNumbers, balanced_cells
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.cli import main
from fablint.model import Placement, Run, State, Topology
from fablint.store import write_run

LAST = 15
OTHERS = list(combinations(range(LAST), 2))  # all pairs without the last host
OFTEN = 24
USUAL_S = {"bandwidth": 0.01, "latency": 2e-6}


def measured(pairs, slow, row: str = "bandwidth") -> Run:
    """`slow` says of which unordered pairs the messages take twice as long."""
    return run_of(list_row(row, pairs, lambda a, b: USUAL_S[row] * (2 if slow(frozenset((a, b))) else 1)))


def findings(run: Run, state: State, topology: Topology | None = None) -> list[tuple[str, str]]:
    return [
        (finding.component, finding.name)
        for finding in diagnose(run, topology).verdict.findings
        if finding.state is state
    ]


ONE_PARTNER = [*OTHERS, *[(14, LAST)] * OFTEN]


@pytest.mark.parametrize("row", ["bandwidth", "latency"])
@pytest.mark.parametrize("topology", [None, FABRIC], ids=["no topology", "topology"])
def test_a_host_with_one_partner_is_not_at_fault_however_often_it_was_measured(row: str, topology) -> None:
    run = measured(ONE_PARTNER, lambda pair: LAST in pair, row)
    verdict = diagnose(run, topology).verdict
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 3)
    assert findings(run, State.FAULT, topology) == []
    assert findings(run, State.SUSPECT, topology) == [("host", HOSTS[LAST])]
    assert findings(run, State.NOT_JUDGED, topology) == [("host", HOSTS[LAST])]
    assert all(finding.log10_e is None for finding in verdict.findings)


def test_the_command_line_says_so_of_a_run_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a.run", measured(ONE_PARTNER, lambda pair: LAST in pair))
    with pytest.raises(SystemExit) as ended:
        main(["analyse", str(tmp_path / "a.run")])
    assert ended.value.code == 3
    said = capsys.readouterr().out
    assert "FAULT" not in said
    assert "measured with fewer than 3 other hosts" in said


def test_a_healthy_host_with_one_partner_is_not_judged() -> None:
    run = measured(ONE_PARTNER, lambda pair: False)
    verdict = diagnose(run).verdict
    assert (verdict.exit_code, findings(run, State.NOT_JUDGED)) == (3, [("host", HOSTS[LAST])])


def test_two_hosts_that_only_met_each_other_are_not_at_fault() -> None:
    run = measured([*combinations(range(14), 2), *[(14, 15)] * OFTEN], lambda pair: pair == {14, 15})
    assert findings(run, State.FAULT) == []
    assert diagnose(run).verdict.exit_code == 3


@pytest.mark.parametrize("others", [[*OTHERS, (0, 15), (1, 15), (2, 15)], ALL], ids=["few others", "all others"])
def test_one_slow_route_measured_often_is_a_route(others) -> None:
    run = measured([*others, *[(14, 15)] * OFTEN], lambda pair: pair == {14, 15})
    assert findings(run, State.FAULT) == []
    assert findings(run, State.SUSPECT) == [("route", f"{HOSTS[14]}={HOSTS[15]}")]


def test_half_of_the_partners_measured_often_do_not_outvote_the_others() -> None:
    pairs = [*OTHERS, *[(13, 15), (14, 15)] * OFTEN, (0, 15), (1, 15)]
    run = measured(pairs, lambda pair: pair in ({13, 15}, {14, 15}))
    assert findings(run, State.FAULT) == []
    assert diagnose(run).verdict.exit_code == 3


@pytest.mark.parametrize("times", [1, OFTEN])
def test_a_host_that_is_slow_with_three_partners_is_at_fault(times: int) -> None:
    pairs = [*OTHERS, *[(0, 15), (5, 15), (14, 15)] * times]
    assert findings(measured(pairs, lambda pair: LAST in pair), State.FAULT) == [("host", HOSTS[LAST])]


@pytest.mark.parametrize("side", ["tx", "rx"])
def test_a_host_that_was_excluded_after_the_first_level_stays_at_fault(side: str) -> None:
    """Pairs on a switch are measured three times; then all hosts but one meet those of other switches, once each."""
    near = [pair for pair in ALL if switch_of(pair[0]) == switch_of(pair[1])] * 3
    far = [pair for pair in ALL if switch_of(pair[0]) != switch_of(pair[1]) and 3 not in pair]

    def time(a: int, b: int) -> float:
        return USUAL_S["bandwidth"] * (2.5 if (a if side == "tx" else b) == 3 else 1.0)

    (finding,) = (
        one
        for one in diagnose(run_of(list_row("bandwidth", [*near, *far], time)), FABRIC).verdict.findings
        if one.state is State.FAULT
    )
    assert (finding.component, finding.name, finding.direction) == ("host", HOSTS[3], side)


def test_a_cable_that_one_pair_of_hosts_crosses_is_not_at_fault() -> None:
    pairs = [pair for pair in ALL if {*map(switch_of, pair)} != {0, 3}]
    run = measured([*pairs, *[(0, 15)] * OFTEN], lambda pair: pair == {0, 15})
    assert findings(run, State.FAULT, FABRIC) == []
    assert findings(run, State.SUSPECT, FABRIC) == [("route", f"{HOSTS[0]}={HOSTS[15]}")]


# ------------------------------------------------------------------------------------------------ which cells count


def log_times(pairs, end: End = "both") -> tuple[Pairs, np.ndarray | None]:
    """The log times of a run of these pairs, and which cells count for this end."""
    run = measured(pairs, lambda pair: False)
    row = run.rows[0]
    found = Pairs.log_times(row.observations(row.sizes[0]))
    return found, balanced_cells(found, HostPairNumbers.of(found, Placement.of(run, None)), end=end)


@pytest.mark.parametrize("times", [1, 3])
def test_pairs_measured_equally_often_all_count(times: int) -> None:
    assert log_times(ALL * times)[1] is None


def test_a_pair_measured_more_often_counts_as_often_as_is_usual() -> None:
    pairs, mask = log_times([*ALL * 2, *[(14, 15)] * 5])
    assert mask is not None
    assert pairs.partner is not None
    counts = [np.count_nonzero(mask[a, pairs.partner[a] == b]) for a, b in permutations(range(16), 2)]
    assert set(counts) == {2}


def test_for_a_host_a_pair_counts_as_often_as_is_usual_for_this_host() -> None:
    pairs, mask = log_times([*OTHERS, *[(0, 15), (5, 15), (14, 15)] * 4], end="receiver")
    assert mask is not None
    assert pairs.partner is not None
    assert {np.count_nonzero(mask[a, pairs.partner[a] == 15]) for a in (0, 5, 14)} == {4}
    assert {np.count_nonzero(mask[15, pairs.partner[15] == b]) for b in (0, 5, 14)} == {1}


def test_of_a_pair_that_counts_once_the_median_counts() -> None:
    pairs, mask = log_times([*ALL, *[(14, 15)] * 4])
    assert mask is not None
    assert pairs.partner is not None
    values, counted = (one[14, pairs.partner[14] == 15] for one in (pairs.value, mask))
    assert values[counted].tolist() == [np.median(values)]

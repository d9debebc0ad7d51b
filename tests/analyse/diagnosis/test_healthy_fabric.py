"""A healthy fabric has no findings of faults, with any noise and any number of measurements."""

from dataclasses import replace

import numpy as np
import pytest
from analyse_cases import attributed, changed, deleted, in_rounds, named, reported, row_attributed
from fabric_cases import NOISES
from hypothesis import given, settings, strategies as st

from fablint.analyse import diagnose
from fablint.model import Run, State
from fablint.simulate import Noise, full_mesh, simulate
from fablint.text.evidence_sentences import sentences
from fact_cases import attributes_of, run_facts
from finding_cases import note_texts

MESH = full_mesh(8, 8)


def test_no_fault_in_sixty_four_hosts(noise) -> None:
    for seed in range(8):
        diagnosis = diagnose(simulate(MESH, noise=Noise(noise), seed=seed), MESH.topology)
        assert named(diagnosis) == set()
        assert diagnosis.verdict.exit_code in (0, 3)  # one run in a hundred has a route to retest


def test_a_quiet_run_passes_with_everything_judged() -> None:
    verdict = diagnose(simulate(MESH, noise=Noise(scale=0.01, spike_share=0)), MESH.topology).verdict
    assert (verdict.verdict, verdict.exit_code) == ("pass", 0)
    assert {finding.state for finding in verdict.findings} == {State.OK}
    assert verdict.coverage.hosts_judged == verdict.coverage.hosts == 64
    assert verdict.coverage.links_judged == verdict.coverage.links == 56
    assert verdict.coverage.pairs_measured == verdict.coverage.pairs_planned == 2 * 64 * 63
    hosts = next(f for f in verdict.findings if f.component == "host" and f.quantity == "bandwidth")
    assert hosts.name == "h[00-63]"
    assert -0.05 < hosts.effect < 0


@pytest.mark.long
def test_no_fault_in_a_thousand_hosts() -> None:
    """Nor with the noise student3, where only the slow host of a thousand is named: test_faulty_fabric.py."""
    fabric = full_mesh(32, 32)
    assert named(diagnose(simulate(fabric, noise=Noise("lognormal"), seed=3), fabric.topology)) == set()


@settings(max_examples=40)
@given(
    kind=st.sampled_from(NOISES),
    scale=st.sampled_from([0.0, 0.001, 0.025, 0.1, 0.4]),
    spread=st.sampled_from([0.0, 0.01, 0.03]),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda shape: shape[0] * shape[1] > 1),
    share=st.sampled_from([0.0, 0.3, 0.7, 0.95]),
    seed=st.integers(0, 10_000),
)
def test_no_fabric_noise_or_gap_makes_a_fault(kind, scale, spread, shape, share, seed) -> None:
    fabric = full_mesh(*shape)
    run = deleted(simulate(fabric, noise=Noise(kind, scale, host_spread=spread), seed=seed), share, seed)
    assert named(diagnose(run, fabric.topology)) == set()
    assert named(diagnose(run)) == set()


@pytest.mark.parametrize("rounds", [3, 9])
def test_a_few_matchings_report_no_component(rounds: int) -> None:
    for seed in range(5):
        run = in_rounds(simulate(MESH, noise=Noise("student3"), seed=seed), rounds, seed)
        assert named(diagnose(run, MESH.topology)) == set()


def test_a_host_that_scatters_more_is_not_slow() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        jitter = np.exp(rng.normal(0, 0.2, (64, 64)))

        def scatter(times: np.ndarray, _: str, jitter: np.ndarray = jitter) -> np.ndarray:
            times[5], times[:, 5] = times[5] * jitter[5], times[:, 5] * jitter[:, 5]
            return times

        assert named(diagnose(changed(simulate(MESH, seed=seed), scatter), MESH.topology)) == set()


def test_longer_cables_are_not_slow_cables() -> None:
    rng = np.random.default_rng(5)
    switch = np.arange(64) // 8
    length = np.exp(rng.normal(0, 0.015, (8, 8)))
    run = changed(simulate(MESH, noise=Noise(spike_share=0)), lambda times, _: times * length[switch][:, switch])
    assert reported(diagnose(run, MESH.topology)) == set()


def noisy_laptop(seed: int, hosts: int) -> Run:
    """Heavy tails, slow drift, hosts that differ: what several ranks on two cores look like."""
    noise = Noise("student3", scale=0.15, spike_share=0.05, spike_mean=1.0, host_spread=0.1)
    run = simulate(full_mesh(1, hosts), noise=noise, seed=seed)
    rounds = run.rows[0].arrays["round"][0]
    drift = np.cumsum(np.random.default_rng(seed).normal(0, 0.1, rounds.max() + 1))
    return changed(run, lambda times, _: times * np.exp(drift[rounds]))


@pytest.mark.parametrize("hosts", [4, 8, 16])
def test_a_noisy_laptop_is_not_a_broken_fabric(hosts: int) -> None:
    for seed in range(10):
        assert named(diagnose(noisy_laptop(seed, hosts))) == set()


def test_hosts_too_heterogeneous_to_be_compared_are_not_judged() -> None:
    verdict = diagnose(noisy_laptop(0, 8)).verdict
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 3)
    assert "these differ so much that" in sentences(verdict.findings[0].evidence)
    assert verdict.coverage.hosts_judged == 0


def test_an_unfinished_run_is_incomplete_not_faulty() -> None:
    run = attributed(deleted(simulate(MESH, seed=2), 0.7, 2), state="interrupted")
    run = row_attributed(run, "bandwidth", state="interrupted")
    verdict = diagnose(run, MESH.topology).verdict
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 3)
    assert any("interrupted" in note for note in note_texts(verdict))
    assert verdict.coverage.pairs_measured < 0.35 * verdict.coverage.pairs_planned


def test_hosts_that_were_hardly_measured_are_not_judged() -> None:
    def cut(times: np.ndarray, row: str) -> np.ndarray:
        if row == "bandwidth":
            times[40:, 2:] = times[2:, 40:] = np.nan
        return times

    diagnosis = diagnose(changed(simulate(MESH, seed=4), cut), MESH.topology)
    finding = next(f for f in diagnosis.verdict.findings if f.state is State.NOT_JUDGED and f.component == "host")
    assert finding.name == "h[40-63]"
    assert sentences(finding.evidence).startswith("bandwidth: measured with fewer than 3")
    assert diagnosis.verdict.coverage.hosts_judged == 40
    assert named(diagnosis) == set()
    assert any(f.component == "link" for f in diagnosis.verdict.findings if f.state is State.NOT_JUDGED)


def test_a_row_that_moves_nothing_tells_nothing() -> None:
    run = simulate(MESH)
    real = {name: value for name, value in attributes_of(run).items() if name != "simulated"}
    verdict = diagnose(replace(run, facts=run_facts(real)), MESH.topology).verdict
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 3)
    assert verdict.coverage.pairs_planned == 0


def test_the_measurements_that_are_judged_are_reported_row_by_row() -> None:
    steps: list[tuple[int, int]] = []
    run = simulate(MESH)
    diagnose(run, step=lambda done, total: steps.append((done, total)))
    cells = [row.arrays["count"].size for row in run.rows]
    assert steps == [(cells[0], sum(cells))]  # nothing is left to say after the last row

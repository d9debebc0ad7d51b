"""Containers of fewer machines share CPUs: latencies are evidence against hosts, not for their health."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from analyse_cases import attributed, named, reported

from fablint.analyse import diagnose
from fablint.model import Diagnosis, Placement, Run, State
from fablint.simulate import Fault, Noise, SimulatedRow, full_mesh, simulate
from fact_cases import attributes_of
from finding_cases import note_texts, ref

MESH = full_mesh(4, 4)
QUIET = Noise(scale=0.01, spike_share=0.0)
LATENCY, BANDWIDTH = SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,))
NOTE = "hosts share the CPUs of 2 machines: latencies show faults, but not that a host is healthy"


def run_of(*rows: SimulatedRow, faults: tuple[Fault, ...] = (), **attributes: Any) -> Run:
    return attributed(simulate(MESH, rows=rows or (LATENCY, BANDWIDTH), faults=faults, noise=QUIET), **attributes)


def scattered(run: Run, scale: float, seed: int = 1) -> Run:
    """Small messages wait for a CPU: of 16 hosts some wait longer than others, and each time another time."""
    random = np.random.default_rng(seed)
    host = np.exp(scale * random.standard_normal(run.ranks))
    rows = []
    for row in run.rows:
        values = np.array(row.arrays["time_median"])
        if row.kernel == "latency":
            values *= (host[:, None] * host[None, :])[None, :, :, None]
            values *= np.exp(scale * random.standard_normal(values.shape))
        rows.append(replace(row, arrays={**row.arrays, "time_median": values.astype(np.float32)}))
    return replace(run, rows=tuple(rows))


def judged(run: Run) -> Diagnosis:
    return diagnose(run, MESH.topology)


def quantities(diagnosis: Diagnosis, state: State) -> set[str | None]:
    return {finding.quantity for finding in diagnosis.verdict.findings if finding.state is state}


# ------------------------------------------------------------------------------------------------ what is said


@pytest.mark.parametrize(("machines", "said"), [(2, [NOTE]), (1, [NOTE.replace("2 machines", "1 machine")]), (16, [])])
def test_it_is_noted(machines: int, said: list[str]) -> None:
    notes = note_texts(judged(run_of(machines=machines)).verdict)
    assert [note for note in notes if "share the CPUs" in note] == said


def test_runs_that_do_not_say_have_a_machine_for_every_host() -> None:
    run = run_of()
    assert not run.facts.launch.machines
    assert not Placement.of(run, MESH.topology).shared_machines
    assert not any("share the CPUs" in note for note in note_texts(judged(run).verdict))


# ------------------------------------------------------------------------------------------------ healthy hosts


def test_latencies_exonerate_no_host() -> None:
    alone = judged(run_of(LATENCY, machines=2))
    assert State.OK not in {finding.state for finding in alone.verdict.findings}
    assert (alone.verdict.verdict, alone.verdict.coverage.hosts_judged) == ("incomplete", 0)
    assert judged(run_of(LATENCY)).verdict.verdict == "pass"


def test_streams_clear_as_ever() -> None:
    for rows in ((BANDWIDTH,), (LATENCY, BANDWIDTH)):
        diagnosis = judged(run_of(*rows, machines=2))
        assert diagnosis.verdict.verdict == "pass"
        assert quantities(diagnosis, State.OK) == {"bandwidth"}
        coverage = diagnosis.verdict.coverage
        assert coverage.hosts_judged == coverage.hosts == 16
        assert coverage.pairs_measured == coverage.pairs_planned == len(rows) * 16 * 15


@pytest.mark.parametrize("seed", range(4))
def test_latencies_that_scatter_do_not_prevent_a_pass(seed: int) -> None:
    diagnosis = judged(scattered(run_of(machines=2), 0.15, seed))
    assert reported(diagnosis) == set()
    assert diagnosis.verdict.verdict == "pass"
    assert judged(scattered(run_of(), 0.15, seed)).verdict.verdict != "pass"  # where hosts have CPUs of their own


def test_latencies_that_scatter_wildly_are_evidence_against_no_host() -> None:
    """A pair that was slow twice is to be measured again, and no more."""
    for seed in range(4):
        diagnosis = judged(scattered(run_of(machines=2), 0.4, seed))
        assert {component for component, _, _ in reported(diagnosis)} <= {"route"}
        assert named(diagnosis) == set()
        assert diagnosis.verdict.coverage.hosts_judged == 16


# ------------------------------------------------------------------------------------------------ reported hosts

SLOW = Fault(ref("host", "h06"), added_latency_s=9e-6)  # ten times as long


@pytest.mark.parametrize("rows", [(LATENCY,), (LATENCY, BANDWIDTH)], ids=["alone", "with streams"])
def test_a_host_that_takes_ten_times_as_long_is_reported(rows: tuple[SimulatedRow, ...]) -> None:
    diagnosis = judged(run_of(*rows, faults=(SLOW,), machines=2))
    assert named(diagnosis) == {("host", "h06", None)}
    assert diagnosis.verdict.exit_code == 1
    (finding,) = (finding for finding in diagnosis.verdict.findings if finding.state is State.FAULT)
    assert finding.quantity == "latency"


def test_it_is_reported_although_latencies_scatter() -> None:
    diagnosis = judged(scattered(run_of(faults=(SLOW,), machines=2), 0.1))
    assert named(diagnosis) == {("host", "h06", None)}


def test_a_host_reported_by_latency_is_not_reported_as_healthy() -> None:
    diagnosis = judged(run_of(faults=(SLOW,), machines=2))
    fine = [
        finding for finding in diagnosis.verdict.findings if finding.state is State.OK and finding.component == "host"
    ]
    assert all("h06" not in one.name and "h[00-15]" not in one.name for one in fine)


def test_a_slow_stream_is_reported_as_on_separate_machines() -> None:
    diagnosis = judged(run_of(faults=(Fault(ref("host", "h06"), bandwidth_factor=0.7),), machines=2))
    assert named(diagnosis) == {("host", "h06", "both")}


# ------------------------------------------------------------------------------------------------ oversubscribed


@pytest.mark.parametrize(("machines", "oversubscribed"), [(2, 0), (16, 16)])
def test_an_oversubscribed_machine_does_not_oversubscribe_its_containers(machines: int, oversubscribed: int) -> None:
    """Without `machines` the oversubscribed hosts are unknown: all of them count."""
    run = run_of()
    run = attributed(run, machines=machines, instrument={**attributes_of(run)["instrument"], "oversubscribed": True})
    assert int(Placement.of(run, MESH.topology).oversubscribed.sum()) == oversubscribed
    confounded = named(judged(run), State.CONFOUNDED)
    assert (("config", "more ranks than CPUs", None) in confounded) == bool(oversubscribed)


def test_a_container_with_more_ranks_than_cpus_is_oversubscribed() -> None:
    run = attributed(
        simulate(MESH, rows=(BANDWIDTH,), noise=QUIET, ranks_per_host=2),
        machines=2,
        rank_cores=["0"] * 2 + ["0", "1"] * 15,
    )
    run = attributed(run, instrument={**attributes_of(run)["instrument"], "oversubscribed": True})
    assert np.flatnonzero(Placement.of(run, MESH.topology).oversubscribed).tolist() == [0]

"""Causes that look like a faulty fabric, or are indistinguishable from one."""

import numpy as np
import pytest
from analyse_cases import attributed, changed, named, reported

from fablint.analyse import diagnose
from fablint.model import Run, State
from fablint.simulate import Fault, Noise, full_mesh, simulate
from fablint.text.evidence_sentences import sentences
from fact_cases import attributes_of
from finding_cases import ref

MESH = full_mesh(4, 4)
QUIET = Noise(spike_share=0)


def oversubscribe(run: Run, cores: list[str]) -> Run:
    """More ranks than CPUs somewhere."""
    return attributed(run, rank_cores=cores, instrument={**attributes_of(run)["instrument"], "oversubscribed": True})


def slowed(run: Run, ranks: list[int], factor: float = 1.5) -> Run:
    """These ranks are slow with everybody."""

    def slow(times: np.ndarray, _: str) -> np.ndarray:
        times[ranks] *= factor
        times[:, ranks] *= factor
        return times

    return changed(run, slow)


def test_one_host_has_no_fabric_to_judge() -> None:
    cores = [str(rank) for rank in range(8)]
    run = attributed(simulate(full_mesh(1, 8)), hosts=["laptop"], rank_host=[0] * 8, rank_cores=cores)
    verdict = diagnose(run).verdict
    assert (verdict.verdict, verdict.exit_code) == ("local", 0)
    assert [(f.state, f.component, f.name) for f in verdict.findings] == [(State.NOT_JUDGED, "config", "one host")]
    assert verdict.coverage.hosts_judged == 0


def test_a_slow_rank_on_one_host_is_confounded_by_its_cpus() -> None:
    run = slowed(simulate(full_mesh(1, 12), noise=QUIET), [3])
    cores = [str(rank) for rank in range(12)]
    run = attributed(run, hosts=["laptop"], rank_host=[0] * 12, rank_cores=cores)
    diagnosis = diagnose(run)
    assert reported(diagnosis) == {("host", "laptop:3", "both")}
    assert diagnosis.verdict.findings[0].state is State.CONFOUNDED
    assert diagnosis.verdict.exit_code == 3


def test_ranks_that_share_cpus_lead_to_no_detection() -> None:
    run = oversubscribe(slowed(simulate(MESH, noise=QUIET), [5]), ["0"] * 16)
    diagnosis = diagnose(run, MESH.topology)
    assert named(diagnosis) == set()
    assert ("host", "h05", "both") in named(diagnosis, State.CONFOUNDED)
    assert ("config", "more ranks than CPUs", None) in named(diagnosis, State.CONFOUNDED)
    assert diagnosis.verdict.exit_code == 3


@pytest.mark.parametrize(("slow", "state"), [([10, 11], State.CONFOUNDED), ([20, 21], State.FAULT)])
def test_only_hosts_with_too_few_cpus_are_excused(slow: list[int], state: State) -> None:
    cores = [str(rank % 2) for rank in range(32)]
    cores[10] = cores[11] = "0"  # both ranks of h05 on one CPU
    run = oversubscribe(slowed(simulate(MESH, noise=QUIET, ranks_per_host=2), slow), cores)
    diagnosis = diagnose(run, MESH.topology)
    assert ("host", f"h{slow[0] // 2:02d}", "both") in named(diagnosis, state)


def test_all_ranks_of_a_host_slow_is_the_host() -> None:
    run = simulate(MESH, faults=[Fault(ref("host", "h05"), bandwidth_factor=0.7)], ranks_per_host=4)
    assert named(diagnose(run, MESH.topology)) == {("host", "h05", "both")}


def test_one_rank_slow_is_its_nic_where_that_is_known() -> None:
    run = slowed(simulate(MESH, noise=QUIET, ranks_per_host=2), [10])
    nics = attributed(run, rank_nic=[f"mlx5_{rank % 2}" for rank in range(32)])
    assert named(diagnose(nics, MESH.topology)) == {("nic", "h05/mlx5_0", "both")}


def test_one_rank_slow_is_a_suspect_where_its_nic_is_shared() -> None:
    diagnosis = diagnose(slowed(simulate(MESH, noise=QUIET, ranks_per_host=2), [10]), MESH.topology)
    assert named(diagnosis) == set()
    assert named(diagnosis, State.SUSPECT) == {("host", "h05:10", "both")}
    assert "rank 10 alone" in sentences(diagnosis.verdict.findings[0].evidence)


def test_messages_inside_a_host_do_not_speak_for_it() -> None:
    def inside(times: np.ndarray, _: str) -> np.ndarray:
        times[10, 11] = times[11, 10] = 1.0
        return times

    run = changed(simulate(MESH, noise=QUIET, ranks_per_host=2), inside)
    assert reported(diagnose(run, MESH.topology)) == set()

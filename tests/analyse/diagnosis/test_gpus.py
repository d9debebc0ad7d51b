"""A slow GPU is named where the ranks that use it are slow, and mentioned where its NIC or host has the same ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fabric_cases import RAILS, measured

from fablint.analyse import diagnose
from fablint.analyse.other_questions.intra_node import have_comparable_gpus
from fablint.model import Finding, Placement, Run, State
from fablint.model.figures.gpu_use import sharing_words
from fablint.simulate import Fault, Noise, full_mesh, simulate
from fact_cases import attributes_of, run_facts, with_facts
from finding_cases import component, note_texts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)


def with_gpus(run: Run, *, shared_nic: bool) -> Run:
    """The same run, where each rank has a GPU in place of, or behind, a NIC of its own."""
    rails = run.facts.rank_nic
    nics = ["hsn0"] * len(rails) if shared_nic else rails
    attributes = {**attributes_of(run), "rank_nic": nics, "rank_gpu": [f"gpu{rail[-1]}" for rail in rails]}
    return replace(run, facts=run_facts(attributes))


def fault_of(run: Run) -> Finding:
    faults = [finding for finding in diagnose(run).verdict.findings if finding.state is State.FAULT]
    assert len(faults) == 1, faults
    return faults[0]


@pytest.fixture(scope="module")
def run() -> Run:
    return measured(RAILS, "matrix", Fault(component("nic", f"h05/{RAILS.nics[1]}"), bandwidth_factor=0.7))


def test_a_slow_gpu_is_a_component_of_its_own(run: Run) -> None:
    finding = fault_of(with_gpus(run, shared_nic=True))
    gpu = f"h05/gpu{RAILS.nics[1][-1]}"
    assert [component.text for component in finding.components] == [f"gpu {gpu}"]
    assert finding.components[0].hosts == ("h05",)
    assert [component.label for component in finding.ambiguity_group] == [f"PCIe slot of {gpu}"]
    assert [action.kind for action in finding.next_step] == ["test_gpu"]


def test_a_nic_with_the_same_ranks_is_named_with_its_gpu(run: Run) -> None:
    finding = fault_of(with_gpus(run, shared_nic=False))
    assert finding.components[0].label == f"h05/{RAILS.nics[1]}"
    assert f"h05/gpu{RAILS.nics[1][-1]}" in [component.label for component in finding.ambiguity_group]


@pytest.mark.parametrize(("transport", "state"), [("cuda-p2p", State.FAULT), ("mpi", State.CONFOUNDED)])
def test_a_slow_gpu_of_one_host_is_a_fault_of_copies_between_gpus(run: Run, transport: str, state: State) -> None:
    """Messages of other transports are moved by the CPUs, which the ranks of a host share."""
    ranks = len(run.facts.rank_host)
    gpus = [f"gpu{rank}" for rank in range(ranks)]
    one_host = {"hosts": ["h"], "rank_host": [0] * ranks, "rank_gpu": gpus, "rank_nic": ["hsn0"] * ranks, "nics": {}}
    rows = tuple(with_facts(row, transport=transport) for row in run.rows)
    verdict = diagnose(replace(with_facts(run, **one_host), rows=rows)).verdict
    found = [finding for finding in verdict.findings if finding.component == "gpu"]
    slow = [
        rank
        for rank, (host, nic) in enumerate(zip(run.facts.rank_host, run.facts.rank_nic, strict=True))
        if (run.hosts[host], nic) == ("h05", RAILS.nics[1])
    ]
    assert [(finding.state, finding.name) for finding in found] == [(state, f"h/gpu{rank}") for rank in slow]


@pytest.mark.parametrize(("gpus", "counted"), [(6, "6 of 6"), (3, "none of 3")])
def test_healthy_gpus_of_one_host_are_counted(gpus: int, counted: str) -> None:
    """No host is judged by them, and no other line of the report names them."""
    noise = Noise(scale=0.01, spike_share=0)
    run = simulate(full_mesh(gpus, 1), noise=noise)
    one_host = {"hosts": ["h"], "rank_host": [0] * gpus, "rank_gpu": [f"gpu{rank}" for rank in range(gpus)]}
    rows = tuple(with_facts(row, transport="cuda-p2p", memory="cuda") for row in run.rows)
    run = replace(with_facts(run, **one_host, rank_nic=["hsn0"] * gpus, nics={}), rows=rows)
    (note,) = (note for note in note_texts(diagnose(run).verdict) if "GPU" in note)
    assert PINNED["GPUs compared with each other"].filled(counted=counted).begins(note)


def test_gpus_that_more_ranks_share_are_not_compared() -> None:
    """Ranks that share a GPU have a part of its bandwidth each."""
    gpus = ["gpu0", "gpu1", "gpu2", "gpu3", "gpu0", ""]
    run = simulate(full_mesh(len(gpus), 1))
    one_host = {"hosts": ["h"], "rank_host": [0] * len(gpus), "rank_gpu": gpus}
    run = with_facts(run, **one_host, nics={})
    assert have_comparable_gpus(Placement.of(run)).tolist() == [False, True, True, True, False, False]
    assert PINNED["1 GPU shared by several ranks"].begins(sharing_words(run))

"""Simulated runs: complete, reproducible, and with the fault in exactly the pairs that cross the faulty part."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fablint.errors import UsageError
from fablint.model import Run
from fablint.simulate import CHECK_ROWS, Fault, Noise, SimulatedRow, full_mesh, simulate
from fablint.simulate.rounds import schedule
from fact_cases import attributes_of
from finding_cases import ref

SILENT = Noise(scale=0.0, spike_share=0.0, host_spread=0.0, link_spread=0.0, message_scale=0.0)
RUN_FORMAT = Path(__file__).parents[2] / "docs" / "reference" / "run-format.md"


def times(run: Run, row: str) -> np.ndarray:
    return np.asarray(run.row(row).arrays["time_median"])[0, :, :, 0]


def documented(section: str) -> set[str]:
    """Names in the first column of a table of the run format that are always there."""
    text = RUN_FORMAT.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `") and "absent" not in line]
    return {name for line in lines for name in re.findall(r"`(\w+)`", line.split("|")[1])}


def test_has_every_attribute_of_the_run_format() -> None:
    run = simulate(full_mesh(2, 2))
    optional = {"notes", "plan", "imported", "allocations", "variant", "copy"}
    assert documented("Root attributes") - optional <= set(attributes_of(run)) | {"lost"}
    assert documented("Row attributes") - optional <= set(attributes_of(run.rows[0])) | {"corrupt"}
    assert run.facts.rows == [row.name for row in run.rows] == ["latency", "bandwidth"]
    assert run.facts.simulated["seed"] == 1


def test_truth_is_in_the_attributes() -> None:
    run = simulate(full_mesh(2, 2), faults=[Fault(ref("host", "h01"), "tx", bandwidth_factor=0.5)])
    assert run.facts.simulated["faults"][0]["component"]["ends"] == [{"nodes": "h01"}]


def test_rows_of_one_kernel_get_names_of_their_own() -> None:
    run = simulate(full_mesh(1, 2), rows=[SimulatedRow("latency", (8,)), SimulatedRow("latency", (64,))])
    assert [row.name for row in run.rows] == ["latency", "latency-2"] == run.facts.rows


def test_same_seed_same_numbers_and_another_seed_others() -> None:
    first, again, other = (simulate(full_mesh(2, 4), seed=seed) for seed in (7, 7, 8))
    for row in CHECK_ROWS:
        np.testing.assert_array_equal(times(first, row.kernel), times(again, row.kernel))
        assert (times(first, row.kernel) != times(other, row.kernel))[0, 1]


@pytest.mark.parametrize(
    ("fault", "slow"),
    [
        (Fault(ref("host", "h01"), "tx", bandwidth_factor=0.5), lambda src, dst: src == 1),
        (Fault(ref("host", "h01"), "rx", bandwidth_factor=0.5), lambda src, dst: dst == 1),
        (Fault(ref("host", "h01"), bandwidth_factor=0.5), lambda src, dst: (src == 1) | (dst == 1)),
        (
            Fault(ref("link", "s1", "s0"), bandwidth_factor=0.5),
            lambda src, dst: (src // 2 == 1) & (dst // 2 == 0),
        ),
        (
            Fault(ref("cable", "s1", "s0"), bandwidth_factor=0.5),
            lambda src, dst: ((src // 2 == 1) & (dst // 2 == 0)) | ((src // 2 == 0) & (dst // 2 == 1)),
        ),
        (
            Fault(ref("switch", "s2"), bandwidth_factor=0.5),
            lambda src, dst: (src // 2 == 2) | (dst // 2 == 2),
        ),
    ],
)
def test_a_fault_slows_exactly_the_pairs_that_cross_the_part(fault: Fault, slow) -> None:
    fabric = full_mesh(3, 2)
    healthy, faulty = (simulate(fabric, faults=faults, noise=SILENT) for faults in ((), (fault,)))
    ratio = times(faulty, "bandwidth") / times(healthy, "bandwidth")
    src, dst = np.indices(ratio.shape)
    off = src != dst
    np.testing.assert_allclose(ratio[off], np.where(slow(src, dst), 2.0, 1.0)[off], rtol=1e-6)
    assert np.isnan(ratio[~off]).all()


def test_latency_is_a_round_trip_and_adds_up_along_the_route() -> None:
    fabric = full_mesh(3, 2)
    fault = Fault(ref("link", "s0", "s1"), added_latency_s=1e-6)
    healthy, faulty = (simulate(fabric, faults=faults, noise=SILENT) for faults in ((), (fault,)))
    added = times(faulty, "latency") - times(healthy, "latency")
    np.testing.assert_allclose(added[0, 2], 0.5e-6, rtol=1e-3)  # half of what one direction of two is slowed by
    np.testing.assert_allclose(added[2, 0], 0.5e-6, rtol=1e-3)
    assert added[0, 4] == added[0, 1] == 0
    assert times(healthy, "latency")[0, 2] > times(healthy, "latency")[0, 1]  # one hop more


@given(ranks=st.integers(2, 40))
def test_schedule_meets_every_pair_once_in_disjoint_rounds(ranks: int) -> None:
    rounds = schedule(ranks)
    np.testing.assert_array_equal(rounds, rounds.T)
    for rank in range(ranks):
        others = np.delete(rounds[rank], rank)
        assert len(set(others.tolist())) == ranks - 1
        assert others.min() >= 0
        assert others.max() < ranks - 1 + ranks % 2


@pytest.mark.parametrize("kind", ["normal", "student3", "lognormal"])
def test_noise_has_its_spikes_and_its_centre(kind) -> None:
    draws = Noise(kind, scale=0.01, spike_share=0.2, spike_mean=3.0).pairs(np.random.default_rng(1), (400, 400))
    assert abs(np.median(draws)) < 0.01
    assert 0.15 < np.mean(draws > 0.3) < 0.22


def test_ranks_of_a_host_share_its_faults_and_its_memory() -> None:
    run = simulate(
        full_mesh(2, 2),
        faults=[Fault(ref("host", "h01"), bandwidth_factor=0.5)],
        noise=SILENT,
        ranks_per_host=2,
    )
    assert run.ranks == 8
    assert run.rank_host[2:4] == ["h01", "h01"]
    time = times(run, "bandwidth")
    np.testing.assert_allclose(time[2, 4] / time[0, 4], 2.0, rtol=1e-6)
    assert time[2, 3] == time[0, 1]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(ref("host", "h99")),
        Fault(ref("link", "s0", "s9")),
        Fault(ref("cable", "s0", "s0")),
        Fault(ref("switch", "h00")),
    ],
)
def test_a_part_that_is_not_there_is_refused(fault: Fault) -> None:
    with pytest.raises(UsageError, match=f"no {fault.component.text}"):
        simulate(full_mesh(2, 2), faults=[fault])


def test_nonsense_fabrics_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        full_mesh(0, 8)
    with pytest.raises(UsageError, match="a pair needs two"):
        simulate(full_mesh(1, 1))

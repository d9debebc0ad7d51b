"""benchmarks/held_out, runs of ranks: paths, contention, shares of time, missing cells and names are what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from held_out import command  # noqa: E402
from held_out.fabrics import leaf_spine, one_switch  # noqa: E402
from held_out.faults import Fault, Names  # noqa: E402
from held_out.network import HOST_RATE, Network  # noqa: E402
from held_out.rank_runs.cell_samples import histogram, samples, statistics  # noqa: E402
from held_out.rank_runs.cluster import planes, rails_on_one_leaf, single, topology_text  # noqa: E402
from held_out.rank_runs.component_faults import Carriers, ComponentFault, names_of_fault  # noqa: E402
from held_out.rank_runs.incidence import of_messages, of_rounds, of_stretches  # noqa: E402
from held_out.rank_runs.rank_schedules import (  # noqa: E402
    all_ranks,
    by_rail,
    of_endpoints,
    repeat_of,
    without_shared_links,
)
from held_out.rank_scenarios import RANK_SCENARIOS  # noqa: E402
from held_out.scenario import Truth  # noqa: E402
from held_out.scoring import score  # noqa: E402

from pinned import pinned_by  # noqa: E402

PINNED = pinned_by("benchmarks.toml", __file__)

RNG = np.random.default_rng
SMALL = leaf_spine(3, 2, 2)
STREAM = 1 << 20


def test_many_scenarios_a_quarter_of_them_healthy_each_with_a_name_of_its_own():
    kinds = [scenario.expected for scenario in RANK_SCENARIOS]
    assert len(RANK_SCENARIOS) >= 100 and kinds.count("healthy") >= 30
    assert len({scenario.name for scenario in RANK_SCENARIOS}) == len(RANK_SCENARIOS)
    assert all(scenario.expected == "healthy" for scenario in RANK_SCENARIOS if scenario.passes)


@pytest.mark.parametrize("scenario", RANK_SCENARIOS, ids=lambda scenario: scenario.name)
def test_each_fault_is_crossed_by_a_part_of_the_pairs(scenario):
    rng = RNG(1)
    cluster = scenario.cluster()
    network = Network(cluster.fabric, scenario.model, scenario.uplink)
    scenario.design(cluster, network, rng)
    faults = scenario.faults(cluster, rng)
    assert bool(faults) == (scenario.expected == "faulty") or scenario.expected == "undecided"
    assert topology_text(cluster).startswith("format: 1\n")
    pairs = all_ranks(cluster, rng) if scenario.pattern == "matrix" else by_rail(cluster, rng)
    nics = of_endpoints(cluster, pairs)
    for fault in faults:
        crossed = fault.crossed_by(cluster, network, nics.src, nics.dst)
        assert 3 <= crossed.sum() < len(nics) - 3


@pytest.mark.long
@pytest.mark.parametrize("name", [scenario.name for scenario in RANK_SCENARIOS])
def test_every_scenario_is_written_and_read(name):
    (found, error) = command.judge(name, 1)
    assert not error and found is not None


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("one host per leaf: host -30 %, 4 spines", "exact"),
        ("planes: host -25 % on both", "exact"),
        ("missing: dead NIC of two", "exact"),
    ],
)
def test_the_program_reads_what_is_written(name, outcome):
    (found, error) = command.judge(name, 1)
    assert not error and (found.outcome, found.false) == (outcome, ())


def test_no_path_leads_from_one_plane_to_another():
    cluster = planes(SMALL, 2)
    schedule = of_endpoints(cluster, by_rail(cluster, RNG(1)))
    assert ((schedule.src < 6) == (schedule.dst < 6)).all() and len(schedule) == 60
    network = Network(cluster.fabric)
    spine = ComponentFault("switch", "p2.spine1").crossed_by(cluster, network, schedule.src, schedule.dst)
    assert spine.any() and (schedule.src[spine] >= 6).all()
    assert "node01: {hsn0: p1.leaf1, hsn1: p2.leaf1}" in topology_text(cluster)


def test_both_nics_of_a_host_are_reached_over_the_spine_of_the_tables():
    cluster = rails_on_one_leaf(SMALL, 2)
    network, schedule = Network(cluster.fabric), of_endpoints(cluster, by_rail(cluster, RNG(1)))
    over = ComponentFault("link", "leaf1>spine2").crossed_by(cluster, network, schedule.src, schedule.dst)
    assert set((schedule.dst[over] % 6).tolist()) == {3, 5}
    with pytest.raises(ValueError, match="multiple"):
        rails_on_one_leaf(leaf_spine(3, 2, 3), 2)


def test_streams_that_share_a_nic_are_as_slow_as_there_are_streams():
    cluster = single(one_switch(2), per_nic=2)
    schedule = by_rail(cluster, RNG(1))
    seconds = samples(
        cluster, Network(cluster.fabric), (), of_endpoints(cluster, schedule), "bandwidth", STREAM, RNG(2)
    )
    assert np.median(STREAM / seconds) == pytest.approx(HOST_RATE / 2, rel=0.02)


def test_rounds_are_divided_until_no_link_is_shared():
    cluster = single(leaf_spine(3, 2, 4))
    network, schedule = Network(cluster.fabric), all_ranks(cluster, RNG(1))
    divided = without_shared_links(cluster, network, schedule)
    assert divided.rounds > schedule.rounds
    for times, rate in ((schedule, 0.75), (divided, 0.95)):
        nics = of_endpoints(cluster, times)
        seconds = samples(cluster, network, (), nics, "bandwidth", STREAM, RNG(2))
        slowest = (STREAM / np.median(seconds, axis=1)).min() / HOST_RATE
        assert slowest < 0.6 if rate < 0.9 else slowest > 0.95
    for number in range(divided.rounds):
        ends = divided.src[divided.round == number]
        assert len(set(ends.tolist())) == ends.size


def test_a_share_of_the_rounds_and_of_the_messages():
    cluster = single(one_switch(8))
    network, schedule = Network(cluster.fabric), of_endpoints(cluster, all_ranks(cluster, RNG(1), 4))
    for incidence in (of_rounds(0.25), of_stretches(0.25, 4)):
        fault = ComponentFault("host", "node03", loss=0.5, incidence=incidence)
        slow = np.median(samples(cluster, network, [fault], schedule, "bandwidth", STREAM, RNG(2)), axis=1) > 1.2e-4
        touching = (schedule.src == 2) | (schedule.dst == 2)
        assert slow[touching].mean() == pytest.approx(0.25, abs=0.05) and not slow[~touching].any()
    late = ComponentFault("host", "node03", added=1e-4, incidence=of_messages(0.1))
    seconds = samples(cluster, network, [late], schedule, "latency", 8, RNG(2))
    assert (seconds > 2e-5)[touching].mean() == pytest.approx(0.19, abs=0.02) and seconds[~touching].max() < 2e-5


def test_repeats_are_counted_for_each_pair():
    repeat = repeat_of(all_ranks(single(one_switch(4)), RNG(1), 3))
    assert np.bincount(repeat).tolist() == [12, 12, 12]


def test_statistics_and_histograms_describe_the_same_samples():
    seconds = np.exp(RNG(1).normal(-13, 0.5, (3, 100)))
    edges, counts = histogram(seconds)
    assert (counts.sum(axis=1) == 100).all()
    middle = edges[np.argmax(counts.cumsum(axis=1) >= 50, axis=1)]
    np.testing.assert_allclose(middle, statistics(seconds)["median"], rtol=0.1)


def test_names_of_components_that_carry_the_same_messages():
    def names(cluster, fault):
        nics = of_endpoints(cluster, all_ranks(cluster, RNG(1)))
        return names_of_fault(fault, Carriers(cluster, Network(cluster.fabric), nics.src, nics.dst))

    lone = names(single(leaf_spine(4, 1, 1)), ComponentFault("host", "node02"))
    assert {"leaf2", "node02/*", "node02=leaf2", "leaf2=spine1"} <= lone.series and lone.exact == {"node02"}
    several = names(single(leaf_spine(4, 2, 4)), ComponentFault("switch", "leaf2"))
    assert {"leaf2=spine1", "leaf2>spine2", "spine1>leaf2"} <= several.members and "node05" not in several.series
    hashed = names(single(leaf_spine(4, 2, 4, "ecmp")), ComponentFault("cable", "leaf2=spine1"))
    assert "leaf2=spine2" in hashed.series and "leaf3=spine1" not in hashed.series


def finding(state: str, *names: str) -> dict:
    text = {"component": "cable", "name": ", ".join(names), "ambiguity_group": []}
    return {"state": state, "direction": None, "effect": None, "quantity": None, "text": text}


SWITCH = Truth(
    Fault("switch", "leaf1"),
    Names(
        frozenset({"leaf1"}),
        frozenset(),
        frozenset({"leaf1=spine1", "leaf1>spine1", "spine1>leaf1", "leaf1=spine2", "leaf1>spine2", "spine2>leaf1"}),
    ),
    {},
)
DEAD = Truth(Fault("nic", "node07/hsn1"), Names(frozenset({"node07/hsn1"}), frozenset({"node07"})), {}, missing=True)


@pytest.mark.parametrize(
    ("truth", "verdict", "findings", "outcome", "false"),
    [
        (SWITCH, "fault", [finding("FAULT", "leaf1")], "exact", 0),
        (SWITCH, "fault", [finding("FAULT", "leaf1>spine1"), finding("FAULT", "spine2=leaf1")], "group", 0),
        (SWITCH, "fault", [finding("FAULT", "leaf1=spine1")], "misnamed", 0),
        (SWITCH, "fault", [finding("FAULT", "leaf2=spine1")], "misnamed", 1),
        (DEAD, "incomplete", [finding("NOT JUDGED", "node07/hsn1")], "exact", 0),
        (DEAD, "incomplete", [finding("NOT JUDGED", "node07")], "group", 0),
        (DEAD, "incomplete", [finding("NOT JUDGED", "node08"), finding("OK", "node07")], "incomplete", 0),
        (DEAD, "incomplete", [finding("SUSPECT", "node07")], "suspect", 0),
        (DEAD, "pass", [finding("OK", "node07")], "missed", 0),
        (DEAD, "fault", [finding("FAULT", "node08")], "misnamed", 1),
    ],
)
def test_members_and_missing_components_beside_the_truth(truth, verdict, findings, outcome, false):
    result = score({"verdict": verdict, "findings": findings}, [truth])
    assert (result.outcome, len(result.false)) == (outcome, false)


def test_tables_of_the_documentation():
    passed, fault = (command.Score(word, outcome, ()) for word, outcome in (("pass", ""), ("fault", "exact")))
    given = [command.Line("quiet", "healthy", (passed,) * 2, 0.1, passes=True),
             command.Line("slow", "faulty", (fault,), 0.1)]  # fmt: skip
    table = command.markdown(given)
    assert "| quiet | yes | 2 | 0 | 0 | 0 |" in table and PINNED["slow 1 0 0 0 0 0 0 0 0 0"] in table
    assert command.summary(given).endswith("2 of 2 healthy runs that should PASS do")

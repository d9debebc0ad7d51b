"""benchmarks/held_out: the generator makes what it says, and the scorer cannot be pleased by a wrong verdict."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from held_out import command, noise, structure  # noqa: E402
from held_out.fabrics import dragonfly_like, leaf_spine, mesh, one_switch, three_level  # noqa: E402
from held_out.faults import Fault, names_of  # noqa: E402
from held_out.network import HOST_RATE, Network  # noqa: E402
from held_out.noise import Conditions  # noqa: E402
from held_out.scenario import Scenario, Truth, build, with_faults  # noqa: E402
from held_out.schedule import few_rounds, full_matrix, one_at_a_time  # noqa: E402
from held_out.scoring import score  # noqa: E402

RNG = np.random.default_rng
SMALL_TREE = leaf_spine(3, 2, 2)


def all_pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.nonzero(~np.eye(n, dtype=bool))
    return src, dst


def test_nothing_imports_what_is_judged():
    for path in sorted((ROOT / "benchmarks" / "held_out").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.startswith(("fablint.simulate", "fablint.analyse"))], path


@pytest.mark.parametrize("fabric", [SMALL_TREE, mesh([2, 3], 2), three_level(2, 2, 2, 2, 2), dragonfly_like(4, 3, 1)])
def test_every_path_begins_at_the_one_switch_and_ends_at_the_other(fabric):
    for (a, b), alternatives in fabric.paths.items():
        for path in alternatives:
            at = a
            for link in path:
                assert fabric.links[link, 0] == at
                at = int(fabric.links[link, 1])
            assert at == b


@pytest.mark.parametrize("n", [4, 7, 8])
def test_a_full_matrix_measures_each_pair_once_in_matchings(n):
    schedule = full_matrix(n, RNG(1))
    assert len({*zip(schedule.src.tolist(), schedule.dst.tolist(), strict=True)}) == len(schedule) == n * (n - 1)
    for number in range(schedule.rounds):
        leaders = schedule.src[schedule.round == number]
        assert len(set(leaders.tolist())) == len(leaders)


def test_a_fault_slows_what_crosses_it_and_nothing_else():
    network = Network(SMALL_TREE)
    src, dst = all_pairs(6)
    for fault in (
        Fault("host", "node02", "tx", 0.5),
        Fault("link", "leaf1>spine2", loss=0.5),
        Fault("cable", "node03=leaf2", "rx", 0.5),
    ):
        slow = with_faults(network, [fault]).seconds(src, dst, "bandwidth", 1 << 20)
        changed = slow > 1.5 * network.seconds(src, dst, "bandwidth", 1 << 20)
        np.testing.assert_array_equal(changed, fault.slow_pairs(network, src, dst))
        assert 0 < changed.sum() < src.size
    assert set(src[Fault("host", "node02", "tx").slow_pairs(network, src, dst)]) == {1}


def test_static_paths_are_those_of_the_forwarding_tables():
    """Destination d goes over spine d mod 2."""
    network = Network(SMALL_TREE)
    src, dst = all_pairs(6)
    over = Fault("link", "leaf1>spine2").slow_pairs(network, src, dst)
    assert {(int(i), int(j)) for i, j in zip(src[over], dst[over], strict=True)} == {
        (i, j) for i in (0, 1) for j in (3, 5)
    }


def test_adaptive_messages_take_equal_shares():
    network = Network(leaf_spine(2, 4, 1, "adaptive"))
    slow = with_faults(network, [Fault("link", "leaf1>spine3", loss=0.5)])
    pair = np.array([0]), np.array([1])
    ratio = slow.seconds(*pair, "bandwidth", 1 << 24) / network.seconds(*pair, "bandwidth", 1 << 24)
    assert ratio[0] == pytest.approx(1.25, rel=1e-2)


def test_the_models_differ_in_how_losses_add_up():
    faults = [Fault("host", "node01", "tx", 0.2), Fault("host", "node02", "rx", 0.2)]
    pair = np.array([0]), np.array([1])
    for model, expected in (("bottleneck", 0.8), ("product", 0.64)):
        network = with_faults(Network(one_switch(2), model), faults)
        network.latency[:] = 0
        assert 1e6 / network.seconds(*pair, "bandwidth", 1_000_000)[0] == pytest.approx(expected * HOST_RATE)


def conditions(rounds: int = 60) -> Conditions:
    return Conditions(Network(SMALL_TREE), few_rounds(6, rounds, RNG(1)), RNG(2))


def test_launch_effects_are_shared_by_sizes_directions_and_repeats():
    given = conditions()
    factor = noise.launch_effects(0.1)(given)
    np.testing.assert_array_equal(factor("latency", 8), factor("bandwidth", 1 << 20))
    schedule, values = given.schedule, factor("latency", 8)
    by_pair: dict[tuple[int, int], set[float]] = {}
    for i, j, value in zip(schedule.src.tolist(), schedule.dst.tolist(), values.tolist(), strict=True):
        by_pair.setdefault((min(i, j), max(i, j)), set()).add(value)
    assert len(by_pair) == 15 and all(len(one) == 1 for one in by_pair.values())
    assert len({value for one in by_pair.values() for value in one}) == 15


def test_a_neighbour_slows_one_contiguous_third_of_the_rounds():
    given = conditions()
    slow = noise.neighbour(lambda network: [0, 1])(given)("bandwidth", 8) > 1
    numbers = given.schedule.round[slow]
    assert 0 < slow.mean() < 0.4
    assert numbers.max() - numbers.min() <= given.schedule.rounds / 3


def test_a_load_varies_slowly_and_only_beyond_its_leaf():
    given = conditions(400)
    factor = noise.varying_load(0, 0.2)(given)("bandwidth", 8)
    src, dst = (SMALL_TREE.host_switch[ends] for ends in (given.schedule.src, given.schedule.dst))
    assert (factor[(src == 0) == (dst == 0)] == 1).all()
    numbers, first = np.unique(given.schedule.round[(src == 0) != (dst == 0)], return_index=True)
    series = factor[(src == 0) != (dst == 0)][first]
    assert np.corrcoef(series[:-1], series[1:])[0, 1] > 0.6 and numbers.size > 200


def test_the_files_of_a_seed_are_the_same_and_of_another_are_not(tmp_path):
    scenario = Scenario("x", lambda: one_switch(4), structure=structure.older_hosts(0.5, 0.1))
    texts = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts.append(build(scenario, seed, folder).files[0].read_text())
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].startswith("src,dst,size,bandwidth,started,round\n") and texts[0].count("\n") == 13


def test_the_loss_of_a_fault_is_what_its_pairs_lose(tmp_path):
    def faults(fabric, rng):
        return [Fault("host", "node01", "tx", 0.2, added=1e-6), Fault("cable", "leaf1=spine1", loss=0.1)]

    sizes = {"bandwidth": (1 << 30,), "latency": (8,)}
    case = build(Scenario("y", lambda: SMALL_TREE, faults, expected="faulty", sizes=sizes), 1, tmp_path)
    host, cable = (truth.loss for truth in case.truths)
    assert host["bandwidth"] == pytest.approx(0.2, abs=0.001) and cable["bandwidth"] == pytest.approx(0.1, abs=0.001)
    assert 0.3 < host["latency"] < 0.6 and cable["latency"] == pytest.approx(0, abs=1e-3)


# ------------------------------------------------------------------------------------------------- the scorer


def truth(fault: Fault, loss: float = 0.2) -> Truth:
    return Truth(fault, names_of(fault, SMALL_TREE), {"bandwidth": loss})


def verdict(word: str, *findings: dict) -> dict:
    return {"verdict": word, "findings": [{"quantity": "bandwidth", **one} for one in findings]}


def finding(state: str, component: str, name: str, group: Sequence[str] = (), **more) -> dict:
    text = {"component": component, "name": name, "ambiguity_group": group}
    return {"state": state, "direction": None, "effect": None, "text": text, **more}


HOST = truth(Fault("host", "node02", "tx", 0.2))
CABLE = truth(Fault("cable", "leaf1=spine2", loss=0.2))


@pytest.mark.parametrize(
    ("fault", "given", "outcome", "false"),
    [
        (HOST, verdict("fault", finding("FAULT", "host", "node02")), "exact", 0),
        (HOST, verdict("fault", finding("FAULT", "cable", "node02=leaf1")), "group", 0),
        (HOST, verdict("fault", finding("FAULT", "cable", "leaf1=node02")), "group", 0),
        (HOST, verdict("fault", finding("FAULT", "nic", "node02/hsn0")), "group", 0),
        (HOST, verdict("fault", finding("FAULT", "switch", "leaf1", group=["NIC of node02"])), "group", 0),
        (HOST, verdict("fault", finding("FAULT", "host", "node[02-03]")), "exact", 1),
        (HOST, verdict("fault", finding("FAULT", "host", "node03")), "misnamed", 1),
        (
            HOST,
            verdict("fault", finding("FAULT", "host", "node03"), finding("SUSPECT", "host", "node02")),
            "suspect",
            1,
        ),
        (HOST, verdict("incomplete", finding("SUSPECT", "host", "node02")), "suspect", 0),
        (HOST, verdict("incomplete"), "incomplete", 0),
        (HOST, verdict("pass"), "missed", 0),
        (HOST, verdict("pass", finding("OK", "host", "node[01-06]", effect=-0.05)), "missed", 0),
        (HOST, verdict("pass", finding("OK", "host", "node[01,03-06]", effect=-0.5)), "missed", 0),
        (HOST, verdict("pass", finding("OK", "host", "node[01-06]", effect=-0.25)), "hidden", 0),
        (HOST, verdict("pass", finding("OK", "host", "node[01-06]", effect=0.5, quantity="latency")), "missed", 0),
        (CABLE, verdict("fault", finding("FAULT", "link", "leaf1>spine2")), "exact", 0),
        (CABLE, verdict("fault", finding("FAULT", "cable", "spine2=leaf1")), "exact", 0),
        (CABLE, verdict("fault", finding("FAULT", "switch", "spine2")), "misnamed", 1),
        (CABLE, verdict("fault", finding("FAULT", "cable", "leaf1=spine1")), "misnamed", 1),
        (CABLE, verdict("pass", finding("OK", "link", "12 links", effect=-0.3)), "hidden", 0),
        (CABLE, verdict("pass", finding("OK", "link", "12 links", effect=-0.1)), "missed", 0),
    ],
)
def test_a_verdict_beside_the_truth(fault, given, outcome, false):
    found = score(given, [fault])
    assert (found.outcome, len(found.false)) == (outcome, false)


def test_one_of_two_faults_that_is_named_does_not_excuse_the_other():
    given = verdict("fault", finding("FAULT", "host", "node02"))
    assert score(given, [HOST, CABLE]).outcome == "misnamed"


def test_directions_are_compared():
    for direction, right in (("tx", True), ("rx", False), (None, True)):
        given = verdict("fault", finding("FAULT", "host", "node02", direction=direction))
        assert score(given, [HOST]).direction is right


def line(expected: str, *verdicts: tuple[str, str, int]) -> command.Line:
    scores = tuple(command.Score(word, outcome, ("host x",) * false) for word, outcome, false in verdicts)
    return command.Line("n", expected, scores, 0.0)


def test_the_rules():
    assert line("healthy", ("pass", "", 0), ("incomplete", "", 0)).rule == "ok"
    assert line("healthy", *[("pass", "", 0)] * 99, ("fault", "", 1)).rule == "ok"
    assert line("healthy", *[("pass", "", 0)] * 98, *[("fault", "", 1)] * 2).rule == "FAULT"
    assert line("faulty", *[("fault", "exact", 0)] * 99, ("pass", "missed", 0)).rule == "PASS"
    assert line("faulty", ("fault", "exact", 0), ("pass", "hidden", 0)).rule == "ok"
    assert line("faulty", ("fault", "exact", 1)).rule == "FALSE"
    assert line("faulty", ("fault", "misnamed", 1)).rule == "FALSE"
    assert line("undecided", ("pass", "", 0)).rule == "PASS"
    assert line("undecided", ("fault", "", 1)).rule == "FALSE"
    assert line("undecided", ("incomplete", "", 0)).rule == "ok"


def test_scenarios_are_many_and_go_through_the_program():
    kinds = [scenario.expected for scenario in command.SCENARIOS.values()]
    assert len(command.SCENARIOS) == len(command.HEALTHY) + len(command.FAULTY) + len(command.RANK_SCENARIOS)
    assert kinds.count("healthy") > 50 and kinds.count("faulty") > 50
    (found, error) = command.judge("host of 8 -40 %", 1)
    assert not error and (found.verdict, found.outcome, found.false) == ("fault", "exact", ())
    assert command.judge("host of 8 -40 %", 1, process=True)[0] == found


@pytest.mark.parametrize("name", [name for name in command.SCENARIOS if "switches of" in name and "50 %" in name])
def test_a_gross_loss_in_a_small_fabric_is_no_pass(name):
    (found, error) = command.judge(name, 1)
    assert not error
    assert found.verdict != "pass" and not found.false


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("two switches: cable -50 %, one pair at a time", "suspect"),
        ("two switches: cable one way -40 %, one pair at a time", "exact"),
        ("cable under ECMP -40 %, one pair at a time", "group"),
        ("one slow pair -60 %", "suspect"),
    ],
)
def test_pairs_measured_one_after_the_other_show_the_fault(name, outcome):
    (found, error) = command.judge(name, 1)
    assert not error
    assert (found.outcome, found.false) == (outcome, ())


def test_hashed_links_measured_one_pair_at_a_time_can_pass():
    (found, error) = command.judge("8 leaves, ECMP: quiet, one pair at a time", 1)
    assert not error
    assert found.verdict == "pass"


def test_one_at_a_time_keeps_pairs_and_order():
    schedule = full_matrix(6, RNG(1), repeats=2)
    serial = one_at_a_time(schedule)
    assert len(serial) == len(schedule) and serial.rounds == len(schedule) // 2
    for number in range(serial.rounds):
        ends = {
            (int(a), int(b))
            for a, b in zip(*(one[serial.round == number] for one in (serial.src, serial.dst)), strict=True)
        }
        assert len(ends) == 2 and {end[::-1] for end in ends} == ends
    assert (np.diff(serial.started) > 0).all()

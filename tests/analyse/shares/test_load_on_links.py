"""Load of other jobs on hashed and adaptive links is no fault; what is slow equally at all times is."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from fabric_cases import findings, rounds_of

from fablint.analyse import diagnose
from fablint.model import Placement, Run, State
from fablint.simulate import Fabric, Fault, Noise, SimulatedFabric, SimulatedRow, fat_tree
from finding_cases import ref

Floats = npt.NDArray[np.float64]
ROWS = (SimulatedRow("latency", (8,)), SimulatedRow("bandwidth", (1 << 20,), "serial"))
AT_ONCE = (ROWS[0], SimulatedRow("bandwidth", (1 << 20,), "parallel"))
LEAF = "leaf2"


def fabric(routing: str) -> Fabric:
    """Up-links that are wide enough: streams of different hosts do not delay each other."""
    return fat_tree(8, 2, routing)


def loaded(run: Run, tree: Fabric, load: Floats) -> Run:
    """Multiply the times of messages that enter or leave the leaf; `load` is by hundredth of the time of a row."""
    placement = Placement.of(run, tree.topology)
    on_leaf = placement.switch == placement.switches.index(LEAF)
    crosses = on_leaf[:, None] != on_leaf[None, :]
    rows = []
    for row in run.rows:
        arrays = {name: np.array(values) for name, values in row.arrays.items()}
        started = arrays["started"][0]
        part = np.nan_to_num((started - np.nanmin(started)) / np.nanmax(started - np.nanmin(started)) * 99).astype(int)
        factor = np.where(crosses, 1 + load[part], 1.0)
        for name in arrays:
            if name.startswith("time"):
                arrays[name] = arrays[name] * factor[..., None]
        rows.append(replace(row, arrays=arrays))
    return replace(run, rows=tuple(rows))


def period() -> Floats:
    return np.where((np.arange(100) > 30) & (np.arange(100) < 60), 0.5, 0.0)


def varying(seed: int, memory: float) -> Floats:
    rng, level, levels = np.random.default_rng(seed), 0.0, []
    for _ in range(100):
        level = memory * level + rng.standard_normal() * np.sqrt(1 - memory**2)
        levels.append(level)
    return 0.3 * np.maximum(0.0, np.array(levels) + 0.5)


LOADS = {"a period": period(), "slow": varying(1, 0.97), "fast": varying(2, 0.5), "uneven": varying(3, 0.8)}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("routing", ["ecmp", "adaptive"])
def test_load_on_a_leaf_is_no_fault_of_its_cables(routing: str, load: str) -> None:
    tree = fabric(routing)
    run = loaded(SimulatedFabric(tree, (), seed=1).measure(None, ROWS), tree, LOADS[load])
    assert findings(diagnose(run, tree.topology).verdict.findings, State.FAULT) == []


CABLE = ref("cable", LEAF, "spine5")


@pytest.mark.parametrize(("rows", "state"), [(ROWS, State.FAULT), (AT_ONCE, State.SUSPECT)], ids=["alone", "at once"])
@pytest.mark.parametrize("factor", [0.4, 0.7])
def test_a_slow_hashed_cable_is_one_of_its_leaf(factor: float, rows: tuple[SimulatedRow, ...], state: State) -> None:
    """Streams of several pairs may share a cable: they are measured again, one at a time."""
    tree = fabric("ecmp")
    run = SimulatedFabric(tree, (Fault(CABLE, bandwidth_factor=factor),), seed=2).measure(None, rows)
    doubtful = findings(diagnose(run, tree.topology).verdict.findings, State.FAULT, State.SUSPECT)
    (cable,) = (finding for finding in doubtful if finding.component == "cable")
    assert cable.state is state
    assert CABLE.label in {cable.name, *(component.label for component in cable.ambiguity_group)}
    assert all(LEAF in finding.nodes for finding in doubtful)


def test_streams_that_do_not_delay_each_other_bound_hashed_links() -> None:
    tree = fabric("ecmp")
    diagnosis = diagnose(SimulatedFabric(tree, (), seed=4).measure(None, AT_ONCE), tree.topology)
    assert diagnosis.verdict.verdict == "pass"
    healthy = findings(diagnosis.verdict.findings, State.OK)
    assert any(component.kind in ("link", "cable") for finding in healthy for component in finding.components)


@pytest.mark.parametrize("seed", range(3))
def test_adaptive_uplinks_that_are_evenly_slow_are_named(seed: int) -> None:
    """Every stream takes all cables of its leaf in turns: without histograms all of its pairs are equally slow."""
    tree = fabric("adaptive")
    run = loaded(SimulatedFabric(tree, (), seed=seed).measure(None, AT_ONCE), tree, np.full(100, 0.3))
    (finding,) = findings(diagnose(run, tree.topology).verdict.findings, State.FAULT)
    uplinks = {node for component in finding.ambiguity_group if component.kind == "cable" for node in component.nodes}
    assert (finding.component, finding.name) == ("switch", LEAF)
    assert uplinks == {LEAF, *(f"spine{number}" for number in range(8))}


@pytest.mark.parametrize("routing", ["ecmp", "adaptive"])
def test_streams_that_collide_on_most_paths_are_one_finding(routing: str) -> None:
    """About half of the streams between switches took longer: their cables, which are unknown, were shared."""
    tree = fabric(routing)
    run = SimulatedFabric(tree, (), seed=5).measure(None, AT_ONCE)
    placement = Placement.of(run, tree.topology)
    crosses = placement.switch[:, None] != placement.switch[None, :]
    rng = np.random.default_rng(5)
    shared = rng.binomial(3, 0.22, crosses.shape) * crosses
    stream = run.rows[1]
    time = (1.0 + shared[None, :, :, None]) * stream.arrays["time_median"]
    rows = (run.rows[0], replace(stream, arrays={**stream.arrays, "time_median": time.astype(np.float32)}))
    doubtful = findings(diagnose(replace(run, rows=rows), tree.topology).verdict.findings, State.FAULT, State.SUSPECT)
    assert [finding.name for finding in doubtful] == ["paths between switches"]


@pytest.mark.parametrize(("routing", "remedy"), [("ecmp", "measure_pairs_serially"), ("d-mod-k", "measure_longer")])
def test_what_colliding_streams_may_hide_is_measured_one_pair_at_a_time(
    routing: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More measurements of the same kind scatter as much; where links are known, only the noise hides a loss."""
    # A simulated fabric cannot be measured again: its findings have no such step.
    monkeypatch.setattr(sys.modules[diagnose.__module__], "with_possible_steps", lambda finding, *_, **__: finding)
    tree = fat_tree(8, 2, routing)
    noise = Noise() if routing == "ecmp" else Noise(scale=0.3)
    run = SimulatedFabric(tree, (), noise, seed=3, contention=True).measure(rounds_of(tree), AT_ONCE)
    hidden = findings(diagnose(run, tree.topology).verdict.findings, State.NOT_JUDGED)
    steps = {step.kind for finding in hidden if finding.component == "host" for step in finding.next_step}
    assert remedy in steps

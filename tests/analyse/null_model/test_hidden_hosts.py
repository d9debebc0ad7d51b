"""Hosts that are measured alone with slow partners only: what their partners lose says nothing of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fabric_cases import QUIET, STREAM

from fablint.analyse import diagnose
from fablint.analyse.null_model.host_populations import Populations, find_populations
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.model import Placement, State, Switch, Topology
from fablint.simulate import Fabric, Fault, SimulatedFabric
from fablint.topology.file_reader import read_topology
from finding_cases import ref

HOSTS, SWITCHES, LOSS = 48, 6, 0.28


def populations(hidden: int, slow: list[int], *, seed: int = 1) -> Populations | None:
    """Hosts in `slow` send slowly; of the first of them the median without its partners' effects is that of others."""
    names = [f"h{host:02}" for host in range(HOSTS)]
    switches = {f"s{number}": Switch(f"s{number}") for number in range(SWITCHES)}
    topology = Topology(switches, {name: f"s{number // (HOSTS // SWITCHES)}" for number, name in enumerate(names)})
    rng = np.random.default_rng(seed)
    is_slow = np.isin(np.arange(HOSTS), slow)
    value = LOSS * np.broadcast_to(is_slow[:, None], (HOSTS, HOSTS)) + 0.01 * rng.standard_normal((HOSTS, HOSTS))
    np.fill_diagonal(value, np.nan)
    best = np.nanquantile(value, 0.2, axis=1)
    effect = np.nanmedian(value, axis=1)
    effect[slow[:hidden]] = 0.01
    placement = Placement.of_hosts(names, topology)
    return find_populations(Pairs(value.astype(np.float32)), effect, best, 0.003, placement, 0.05, sent=True)


@pytest.mark.parametrize("hidden", range(5))
@pytest.mark.parametrize("switch", [0, 3, 5])
def test_the_hosts_of_a_switch_are_no_population_where_some_of_them_look_fast(switch: int, hidden: int) -> None:
    first = switch * HOSTS // SWITCHES
    assert populations(hidden, list(range(first, first + HOSTS // SWITCHES))) is None


@pytest.mark.parametrize("hidden", [0, 2])
def test_slow_hosts_of_several_switches_are_a_population_and_hidden_ones_are_not_among_the_fast(hidden: int) -> None:
    slow = list(range(4, HOSTS, 4))
    division = populations(hidden, slow)
    assert division is not None
    assert set(division.label[slow].tolist()) - {-1} == {1}
    assert np.count_nonzero(division.label < 0) == hidden


def rail_fabric(blocks: int, hosts: int, rails: int) -> Fabric:
    """Blocks of hosts with a leaf switch for each rail, and one spine for each rail."""
    lines = ["format: 1", "switches:"]
    leaves = [(block, rail) for block in range(blocks) for rail in range(rails)]
    lines += [f"  b{block}r{rail}: {{group: g{block}}}" for block, rail in leaves]
    lines += [*(f"  sp{rail}: {{}}" for rail in range(rails)), "hosts:"]
    for block in range(blocks):
        nics = ", ".join(f"nic{rail}: b{block}r{rail}" for rail in range(rails))
        lines.append(f"  'h[{block * hosts}-{(block + 1) * hosts - 1}]': {{{nics}}}")
    lines += ["links:", *(f"  - [b{block}r{rail}, sp{rail}]" for block, rail in leaves)]
    topology = read_topology(Path("topology.yaml"), "\n".join(lines))
    return Fabric(topology, tuple(f"nic{rail}" for rail in range(rails)))


def rounds_within_rails(fabric: Fabric, count: int, seed: int) -> list[np.ndarray]:
    rng, hosts = np.random.default_rng(seed), len(fabric.hosts)
    pairs = [rng.permutation(hosts)[: hosts // 2 * 2].reshape(-1, 2) * fabric.rails for _ in range(count)]
    return [np.concatenate([ends + rail for rail in range(fabric.rails)]) for ends in pairs]


@pytest.mark.parametrize("leaf", ["b0r0", "b1r1", "b1r0", "b2r1"])
@pytest.mark.parametrize("shape", [(3, 6, 4), (4, 4, 2), (3, 5, 2)], ids=str)
def test_a_slow_leaf_of_a_rail_is_at_fault_and_not_its_uplink(shape: tuple[int, int, int], leaf: str) -> None:
    """Of most of its hosts, few messages do not cross the uplink: they are as slow as those of their neighbours."""
    fabric = rail_fabric(*shape)
    for seed in range(2):
        fault = Fault(ref("switch", leaf), bandwidth_factor=0.7)
        simulated = SimulatedFabric(fabric, (fault,), QUIET, seed=seed, ranks_per_host=fabric.rails)
        run = simulated.measure(rounds_within_rails(fabric, 12, seed), [STREAM])
        verdict = diagnose(run, fabric.topology).verdict
        assert [finding.name for finding in verdict.findings if finding.state is State.FAULT] == [leaf]

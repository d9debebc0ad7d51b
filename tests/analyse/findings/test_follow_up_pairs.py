"""What is proposed to be measured next decides about the part that it asks about."""

from __future__ import annotations

import numpy as np
import pytest
from analyse_cases import attributed, named
from fabric_cases import (
    BIG,
    DEEP,
    FABRICS,
    ROUND_TRIP,
    STREAM,
    TREE,
    checked,
    faulty,
    findings,
    rounds_of,
    thinned,
)

from fablint.analyse import diagnose
from fablint.model import Diagnosis, FollowUp, Run, State
from fablint.simulate import Fabric, Fault, Noise, SimulatedFabric, SimulatedRow, fat_tree, random_faults
from finding_cases import group, note_texts, ref

SMALL = fat_tree(8, 2)


def asked(run: Run, fabric: Fabric) -> Diagnosis:
    return diagnose(run, fabric.topology)


def crosses(fabric: Fabric, name: str, pairs: np.ndarray) -> np.ndarray:
    """(k,) which pairs' messages cross a link, or either direction of a cable."""
    at, names = fabric.port_switch, fabric.routes.names
    links = [names.index(name)] if ">" in name else [names.index(name.replace("=", ">"))]
    links += [links[0] ^ 1] if "=" in name else []
    return np.isin(fabric.routes.hops(at[pairs[:, 0]], at[pairs[:, 1]], pairs[:, 1] // fabric.rails), links).any(axis=1)


def assert_sound(follow_up: FollowUp, fabric: Fabric, *, message_paths: bool) -> None:
    """`paths`: do these pairs have to cross the link?"""
    pairs = follow_up.pairs
    assert pairs.ndim == 2
    assert pairs.shape[1] == 2
    assert len(pairs) > 0
    assert 0 <= pairs.min() <= pairs.max() < len(fabric.hosts) * fabric.rails
    host = pairs // fabric.rails
    assert (host[:, 0] != host[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    if follow_up.component.kind == "host":
        assert (np.array(fabric.hosts)[host] == follow_up.name).any(axis=1).all()
    if follow_up.component.kind in ("link", "cable") and message_paths:
        assert crosses(fabric, follow_up.name, pairs).all()


def splits(follow_up: FollowUp, diagnosis: Diagnosis) -> bool:
    """Is it about a component with others in series? Its pairs then cross some of them."""
    return any(
        finding.name == follow_up.name and any(name.startswith(("link", "host")) for name in group(finding))
        for finding in findings(diagnosis.verdict.findings, State.FAULT)
    )


def all_of(diagnosis: Diagnosis) -> list[FollowUp]:
    return [*diagnosis.follow_ups, *diagnosis.retests]


@pytest.mark.parametrize("kernel", ["bandwidth", "latency"])
def test_every_pair_crosses_what_it_is_asked_about(noise: str, kernel: str) -> None:
    components = set()
    for seed in range(3):
        for fabric in (SMALL, DEEP):
            faults = random_faults(fabric, 2, np.random.default_rng(seed), rounds=rounds_of(fabric))
            run = checked(
                faulty(fabric, *faults, noise=Noise(noise), seed=seed), STREAM if kernel == "bandwidth" else ROUND_TRIP
            )
            for share in (0.0, 0.5):
                diagnosis = asked(thinned(run, share, seed), fabric)
                for follow_up in all_of(diagnosis):
                    components.add(follow_up.component.kind)
                    one_way = kernel == "bandwidth"  # a round trip crosses the path back as well
                    assert_sound(follow_up, fabric, message_paths=one_way and not splits(follow_up, diagnosis))
    assert {"host", "link"} <= components or kernel == "latency"


@pytest.mark.parametrize("name", FABRICS)
def test_all_follow_up_pairs_cross_their_component_on_any_fabric(name: str) -> None:
    fabric = FABRICS[name]
    rng, ranks = np.random.default_rng(2), fabric.rails
    faults = random_faults(fabric, 2, rng, rounds=rounds_of(fabric), ranks_per_host=ranks)
    for seed in range(2):
        run = thinned(checked(faulty(fabric, *faults, seed=seed)), 0.3, seed)
        diagnosis = asked(run, fabric)
        for follow_up in all_of(diagnosis):
            assert_sound(follow_up, fabric, message_paths=name in ("tree", "deep") and not splits(follow_up, diagnosis))


def test_an_open_component_has_a_follow_up_and_a_detected_component_a_retest() -> None:
    run = checked(faulty(SMALL, Fault(ref("host", "h21"), bandwidth_factor=0.7)))
    diagnosis = asked(run, SMALL)
    assert named(diagnosis) == {("host", "h21", "both")}
    assert ("host", "h21") in {(follow_up.component.kind, follow_up.name) for follow_up in diagnosis.retests}
    thin = asked(thinned(run, 0.85, 3), SMALL)
    open_ = {follow_up.name for follow_up in thin.follow_ups}
    assert "h21" in open_ or named(thin) == {("host", "h21", "both")}


def test_a_suspect_has_a_follow_up() -> None:
    """Links that nine pairs cross, with heavy tails, and a cable that is slow in a third of few rounds."""
    for seed in range(3):
        faults = random_faults(BIG, 12, np.random.default_rng(seed), 0.2, rounds=rounds_of(BIG))
        diagnosis = asked(checked(faulty(BIG, *faults, noise=Noise("lognormal"), seed=seed)), BIG)
        suspects = {
            (finding.component, finding.name)
            for finding in findings(diagnosis.verdict.findings, State.SUSPECT)
            if finding.component in ("link", "cable")
        }
        assert suspects <= {(follow_up.component.kind, follow_up.name) for follow_up in diagnosis.follow_ups}
    flapping = Fault(ref("cable", "leaf0", "spine0"), bandwidth_factor=0.31, flapping=0.33)
    found = set()
    for seed in range(1, 7):
        run = SimulatedFabric(TREE, (flapping,), seed=seed).measure(rounds_of(TREE), (STREAM,))
        diagnosis = asked(run, TREE)
        suspects = {finding.name for finding in findings(diagnosis.verdict.findings, State.SUSPECT)}
        found |= suspects
        assert suspects <= {follow_up.name for follow_up in diagnosis.follow_ups}
    assert "leaf0=spine0" in found


@pytest.mark.parametrize(
    ("fault", "members"),
    [
        (Fault(ref("host", "h21"), "rx", bandwidth_factor=0.6), ("h21", "spine5>leaf2")),
        (Fault(ref("link", "spine5", "leaf2"), bandwidth_factor=0.6), ("h21", "spine5>leaf2")),
    ],
    ids=["host", "link"],
)
def test_what_splits_a_class_crosses_some_of_it_and_not_all(fault: Fault, members: tuple[str, str]) -> None:
    at, host = SMALL.port_switch, SMALL.hosts.index("h21")
    rounds = [pairs[(at[pairs[:, 0]] != at[pairs[:, 1]]) | (pairs != host).all(axis=1)] for pairs in rounds_of(SMALL)]
    fabric = faulty(SMALL, fault)
    run = fabric.measure(rounds, [STREAM])
    diagnosis = asked(run, SMALL)
    (component,) = {name for _, name, _ in named(diagnosis)}
    (follow_up,) = [one for one in diagnosis.follow_ups if one.name == component]
    into = follow_up.pairs[:, 1] == host
    across = crosses(SMALL, members[1], follow_up.pairs)
    assert ((into | across) & ~(into & across)).all()
    assert {component} <= set(members)
    # Measured, they decide.
    again = fabric.extended(run, [pair[None, :] for pair in follow_up.pairs])
    assert {name for _, name, _ in named(asked(again, SMALL))} == {fault.component.label}


def test_a_link_that_is_known_by_its_late_pairs_only_is_measured_by_them_again() -> None:
    hashed = FABRICS["hashed"]
    fabric = faulty(hashed, Fault(ref("link", "leaf0", "spine3"), bandwidth_factor=0.5))
    diagnosis = asked(fabric.measure(None, [SimulatedRow("bandwidth", (1 << 20,), "serial")]), hashed)
    ((_, name, _),) = named(diagnosis)
    (follow_up,) = [retest for retest in diagnosis.retests if retest.name == name]
    assert_sound(follow_up, hashed, message_paths=False)
    assert (hashed.port_switch[follow_up.pairs[:, 0]] == hashed.switch_codes["leaf0"]).all()


def test_hosts_that_the_topology_does_not_know_split_no_class() -> None:
    """The neighbours of h21 distinguish it from the only path to it; two neighbours are missing from the topology."""
    fabric = faulty(SMALL, Fault(ref("host", "h21"), "rx", bandwidth_factor=0.6))
    host = SMALL.hosts.index("h21")
    at = SMALL.port_switch
    rounds = [pairs[(at[pairs[:, 0]] != at[pairs[:, 1]]) | (pairs != host).all(axis=1)] for pairs in rounds_of(SMALL)]
    run = fabric.measure(rounds, [STREAM])
    strange = {f"h{index}" for index in (0, 1, 8, 16, 17, 40, 63)}
    hosts = [f"x{name}" if name in strange else name for name in run.hosts]
    diagnosis = asked(attributed(run, hosts=hosts), SMALL)
    assert any("the topology does not name" in note for note in note_texts(diagnosis.verdict))
    (follow_up,) = [one for one in diagnosis.follow_ups if one.name in ("h21", "spine5>leaf2")]
    unknown = np.isin(follow_up.pairs, [SMALL.hosts.index(f"h{int(name[1:]):02d}") for name in strange])
    across = crosses(SMALL, "spine5>leaf2", follow_up.pairs)
    into = follow_up.pairs[:, 1] == host
    assert (into & ~across)[~unknown.any(axis=1)].all()

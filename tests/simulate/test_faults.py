"""The library of faults and of noise: each does what its name says, and nothing else."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from simulate_cases import DEEP, FLY, RAILS, ROUND_TRIP, SILENT, STREAM, TREE, as_matrix, listed, silent

from fablint.errors import UsageError
from fablint.simulate import Fault, Noise, SimulatedFabric, SimulatedRow, random_faults, simulate
from fablint.simulate.fault_syntax import parse_fault, random_count
from fablint.simulate.faults import condition_of
from fablint.simulate.messages.crossings import Crossings
from fablint.simulate.noise import comet_residuals
from fablint.simulate.random_faults import FEWEST
from fablint.simulate.rounds import all_rounds, partners_of
from fact_cases import attributes_of
from finding_cases import component, ref

ALL = ("min", "median", "mean", "p99", "max")


@pytest.mark.parametrize(
    ("fault", "names"),
    [
        (Fault(ref("host", "h05"), "tx"), {"h05>leaf1"}),
        (Fault(ref("host", "h05")), {"h05>leaf1", "leaf1>h05"}),
        (Fault(component("nic", "h05/nic0"), "rx"), {"leaf1>h05"}),
        (Fault(ref("link", "leaf1", "h05")), {"leaf1>h05"}),
        (Fault(ref("link", "spine3", "leaf1")), {"spine3>leaf1"}),
        (Fault(ref("cable", "spine3", "leaf1")), {"spine3>leaf1", "leaf1>spine3"}),
        (Fault(ref("cable", "h05", "leaf1")), {"h05>leaf1", "leaf1>h05"}),
        (Fault(ref("switch", "spine2")), {f"spine2>leaf{leaf}" for leaf in range(4)}),
    ],
)
def test_links_of_a_part(fault: Fault, names: set[str]) -> None:
    assert {TREE.link_ref(link).label for link in fault.links(TREE)} == names


def test_links_of_a_host_with_two_nics() -> None:
    assert len(Fault(ref("host", "h05")).links(RAILS)) == 4
    assert [RAILS.link_ref(link).label for link in Fault(component("nic", "h05/hsn1"), "tx").links(RAILS)] == [
        "h05>p1.leaf1"
    ]
    assert [RAILS.link_ref(link).label for link in Fault(ref("cable", "h05", "p1.leaf1"), "rx").links(RAILS)] == [
        "p1.leaf1>h05"
    ]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(ref("host", "h99")), "no host h99: its hosts are h00 to h15"),
        (Fault(ref("host", "h01/nic0")), "no host"),
        (Fault(component("nic", "h01")), "no nic h01: its NICs are named like h00/nic0"),
        (
            Fault(ref("link", "leaf0", "leaf1")),
            "no link leaf0>leaf1: its links are named like leaf0>spine0",
        ),
        (Fault(ref("cable", "h01", "leaf3")), "no cable"),
        (Fault(ref("switch", "h01")), "no switch h01: its switches are leaf0 to spine3"),
        (Fault(ref("host", "h01"), moved_to="h02"), "no switch h02"),
    ],
)
def test_parts_that_are_not_there_are_refused(fault: Fault, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SimulatedFabric(TREE, (fault,))


def test_a_lossy_link_shows_in_the_tail_and_not_in_the_median() -> None:
    lossy = Fault(ref("link", "leaf0", "spine1"), retry_share=0.1, retry_s=20e-6)
    row = SimulatedRow("latency", (8,), statistics=ALL, histogram=True)
    run = silent(TREE, lossy).measure(all_rounds(16), [row])
    for statistic, slow in (("median", False), ("mean", True), ("p99", True), ("max", True)):
        time = as_matrix(run, "latency", statistic)
        assert (time[0, 9] > 1.3 * time[0, 8]) == slow, statistic
    assert lossy.kind == "lossy"
    late = run.rows[0].arrays["histogram"][0, :, 0, :] * (run.rows[0].arrays["bucket"] > 4e-6)
    assert 0 < late.sum(axis=-1).max() < 40


@given(share=st.floats(0.1, 0.9), seed=st.integers(0, 50))
@settings(max_examples=20)
def test_a_flapping_part_is_faulty_in_its_share_of_the_rounds(share: float, seed: int) -> None:
    fault = Fault(ref("host", "h01"), bandwidth_factor=0.5, flapping=share)
    condition = condition_of(TREE, [fault], np.zeros(TREE.links, np.float32), 400, np.random.default_rng(seed))
    slow = condition.per_byte[condition.state, TREE.up(1)] > 1.5 * condition.per_byte[0, TREE.up(0)]
    assert abs(slow.mean() - share) < 0.12


def test_a_flapping_part_slows_whole_rounds() -> None:
    fault = Fault(ref("host", "h01"), bandwidth_factor=0.5, flapping=0.5)
    run = silent(TREE, fault).measure(all_rounds(16), [STREAM])
    slow = listed(run)[1] > 1.5 * np.nanmin(listed(run))
    assert 3 < slow.sum() < 12
    partner = np.asarray(run.rows[0].arrays["dst"])[1]
    np.testing.assert_array_equal(listed(run)[partner, np.arange(15)] > 60e-6, slow)
    full = as_matrix(silent(TREE, fault).measure(None, [STREAM]))
    assert 3 < (full[1] > 60e-6).sum() < 12
    np.testing.assert_array_equal(full[1] > 60e-6, full[:, 1] > 60e-6)


def test_too_many_flapping_parts_are_refused_and_named() -> None:
    flaps = tuple(Fault(ref("host", host), bandwidth_factor=0.5, flapping=0.5) for host in DEEP.hosts)
    with pytest.raises(UsageError, match="27 flapping components"):
        SimulatedFabric(DEEP, flaps).measure(all_rounds(27) * 20, [STREAM])


def test_a_mis_cabled_host_is_near_to_the_hosts_of_the_other_switch() -> None:
    moved = silent(TREE, Fault(ref("host", "h01"), moved_to="leaf2")).measure(None, [ROUND_TRIP])
    time = as_matrix(moved, "latency")
    assert time[1, 8] < time[1, 0]
    assert time[1, 8] == time[8, 9]
    assert moved.facts.hosts[1] == "h01"


def test_a_noisy_host_scatters_and_is_not_slower() -> None:
    noise = Noise(spike_share=0.0)
    noisy = SimulatedFabric(DEEP, (Fault(ref("host", "h03"), scatter=6.0),), noise).measure(None, [STREAM])
    log = np.log(as_matrix(noisy) / np.nanmedian(as_matrix(noisy)))
    others = np.delete(np.delete(log, 3, 0), 3, 1)
    assert np.nanstd(log[3]) > 3 * np.nanstd(others)
    assert abs(np.nanmedian(np.concatenate([log[3], log[:, 3]]))) < 0.06


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"bandwidth_factor": 0.8}, "slow"),
        ({"added_latency_s": 1e-6}, "latency"),
        ({"duplex_factor": 0.8}, "duplex"),
        ({"retry_share": 0.1, "retry_s": 1e-6, "bandwidth_factor": 0.9}, "lossy"),
        ({"flapping": 0.5, "bandwidth_factor": 0.9}, "flapping"),
        ({"moved_to": "leaf1"}, "mis-cabled"),
        ({"scatter": 3.0}, "noise"),
    ],
)
def test_kinds(fields, kind: str) -> None:
    assert Fault(ref("host", "h01"), **fields).kind == kind


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("host:h0012:tx:-20%", Fault(ref("host", "h0012"), "tx", bandwidth_factor=0.8)),
        ("nic:h01/hsn1:-7.5%", Fault(component("nic", "h01/hsn1"), bandwidth_factor=0.925)),
        ("link:s0>s1:+2us", Fault(ref("link", "s0", "s1"), added_latency_s=2e-6)),
        (
            "cable:s0=s1:-10%,+300ns",
            Fault(ref("cable", "s0", "s1"), bandwidth_factor=0.9, added_latency_s=3e-7),
        ),
        ("switch:s0:duplex-30%", Fault(ref("switch", "s0"), duplex_factor=0.7)),
        ("host:h1:rx:-20%,flap30%", Fault(ref("host", "h1"), "rx", bandwidth_factor=0.8, flapping=0.3)),
        ("link:a>b:retry2%", Fault(ref("link", "a", "b"), retry_share=0.02, retry_s=10e-6)),
        ("host:h1:on=s7", Fault(ref("host", "h1"), moved_to="s7")),
        ("host:h1:noisy3", Fault(ref("host", "h1"), scatter=3.0)),
    ],
)
def test_faults_are_read(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "host:h1",
        "host::-20%",
        "loop:h1:-20%",
        "host:h1:up:-20%",
        "host:h1:20%",
        "host:h1:-0x%",
        "host:h1:-100%",
        "host:h1:duplex-120%",
        "host:h1:flap20%",
        "host:h1:-20%,flap0%",
        "host:h1:retry101%",
        "link:a>b:tx:-20%",
        "link:a>b:on=s1",
        "host:h1:noisy0.5",
        "host:h1:-20%,",
        "a:b:c:d:e",
        "random:x",
    ],
)
def test_what_is_no_fault_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fault(text)
    assert str(caught.value).startswith("fault '")
    assert "\n" not in str(caught.value)


@given(text=st.text(max_size=30))
def test_any_text_is_a_fault_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_fault(text), Fault)


def test_random_faults_are_asked_for() -> None:
    assert [random_count(text) for text in ("random:5", "random:", "host:h1:-5%", "random:-1")] == [5, None, None, None]


# ------------------------------------------------------------------------------------------------ drawn by chance


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 4), fabric=st.sampled_from([DEEP, FLY, RAILS]))
def test_drawn_faults_all_show_themselves(seed: int, k: int, fabric) -> None:
    ranks = len(fabric.hosts) * fabric.rails
    rounds = all_rounds(ranks)
    faults = random_faults(fabric, k, np.random.default_rng(seed), 0.2, rounds=rounds, ranks_per_host=fabric.rails)
    assert len({fault.component for fault in faults}) == k
    actual = SimulatedFabric(fabric, ranks_per_host=fabric.rails).actual_routing
    crossings = Crossings.of(actual, partners_of(rounds, ranks))
    crossed = [crossings.of_links(fault.links(fabric)) for fault in faults]
    for fault, own in zip(faults, crossed, strict=True):
        assert fault.loss >= 0.2 - 1e-3
        worse = [
            mask for other, mask in zip(faults, crossed, strict=True) if other != fault and other.loss >= fault.loss
        ]
        left = own & ~np.logical_or.reduce([np.zeros_like(own), *worse])
        assert left.sum() >= FEWEST
    hosts = [host for fault in faults if fault.component.kind in ("host", "nic") for host in fault.component.hosts]
    assert len(set(hosts)) == len(hosts)


def test_drawn_faults_keep_clear_of_those_that_are_there() -> None:
    there = [Fault(ref("host", host), bandwidth_factor=0.5) for host in DEEP.hosts[:3]]
    faults = random_faults(DEEP, 2, np.random.default_rng(1), existing=there)
    assert not {fault.component for fault in faults} & {fault.component for fault in there}
    assert random_faults(DEEP, 0, np.random.default_rng(1)) == []


def test_more_faults_than_parts_are_refused() -> None:
    with pytest.raises(UsageError, match=r"only \d+ of 400 fit"):
        random_faults(TREE, 400, np.random.default_rng(1))


# ------------------------------------------------------------------------------------------------ noise


def test_replayed_noise_is_that_of_the_residuals() -> None:
    known = np.array([0.0, 0.1, 0.2], dtype=np.float32)
    draws = Noise("replay", residuals=known).pairs(np.random.default_rng(1), (100, 100))
    np.testing.assert_array_equal(np.unique(draws), known)
    comet = Noise("replay").pairs(np.random.default_rng(1), (50, 50))
    assert np.isin(comet, comet_residuals()).all()
    assert abs(np.median(comet_residuals())) < 1e-3
    assert 0.02 < comet_residuals().std() < 0.04
    with pytest.raises(UsageError, match="no residuals"):
        Noise("replay", residuals=np.zeros(0, np.float32)).pairs(np.random.default_rng(1), (1,))


def test_noise_is_written_into_the_run() -> None:
    facts = attributes_of(simulate(TREE, noise=Noise("replay"), rows=[STREAM]))["simulated"]["noise"]
    assert facts["residuals"] == "comet"
    assert "residuals" not in SILENT.facts()

"""Which hosts are compared with which: no healthy host is unfit in a mixed fleet, and a faulty one is still found."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from fleets import FAULTS, GPU_FAULTS, fleet, judged, late, made, rewritten, said, without

from fablint.model.preflight_results import Outcome
from fablint.preflight import Fleet
from fablint.preflight.checks.host.class_members import lacking
from fablint.preflight.host_classes import classes_of
from fablint.text.evidence_sentences import sentences
from fablint.text.fitness_findings import findings
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

FLEETS: list[Mapping[str, int]] = [
    {"ndr": 3},
    {"gpu": 8},
    {"ndr": 200},
    {"gpu": 11, "ndr": 9},
    {"ndr": 60, "hdr": 40},
    {"gpu": 5, "ndr": 5, "hdr": 5, "login": 1},
    {"gpu": 20, "ndr": 1},
    {"ndr": 20, "login": 1},
    {"ndr": 19, "hdr": 1},
]


@pytest.mark.parametrize("kinds", FLEETS, ids=str)
def test_no_healthy_host_is_unfit_and_none_is_warned_of(kinds: Mapping[str, int]) -> None:
    fitness = judged(fleet(kinds))
    assert fitness.unfit == {}
    reported = said(fitness)
    reported.pop("ib.psid", None)  # cards of two makes in one machine may be said
    assert reported == {}


@pytest.mark.parametrize("fault", [*FAULTS, *GPU_FAULTS])
@pytest.mark.parametrize(
    "kinds", [{"gpu": 3}, {"gpu": 8}, {"gpu": 11, "ndr": 9}, {"gpu": 5, "hdr": 5, "login": 1}], ids=str
)
def test_one_faulty_host_is_found_and_no_other(kinds: Mapping[str, int], fault: str) -> None:
    change, check = {**FAULTS, **GPU_FAULTS}[fault]
    fitness = judged(fleet(kinds, {"gpu2": change}))
    reported = said(fitness)
    assert "gpu2" in reported[check]
    shared = {"ib.psid"}  # both kinds of cards share a name
    assert all(hosts == {"gpu2"} for name, hosts in reported.items() if name not in shared), reported
    assert set(fitness.unfit) <= {"gpu2"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kinds", [{"ndr": 3}, {"ndr": 200}, {"ndr": 60, "hdr": 40}, {"gpu": 20, "ndr": 4}], ids=str)
def test_one_faulty_host_of_one_card_is_found(kinds: Mapping[str, int], fault: str) -> None:
    change, check = FAULTS[fault]
    reported = said(judged(fleet(kinds, {"ndr2": change})))
    assert "ndr2" in reported[check]
    assert all(hosts == {"ndr2"} for name, hosts in reported.items() if name != "ib.psid"), reported


def test_a_clear_majority_makes_a_host_unfit_and_few_others_only_warn() -> None:
    for count, outcome in ((3, Outcome.WARN), (4, Outcome.WARN), (5, Outcome.FAIL), (20, Outcome.FAIL)):
        fitness = judged(fleet({"ndr": count}, {"ndr2": rewritten("4092", "2044", "/ib0/mtu")}))
        assert {one.outcome for one in fitness.results if one.check == "net.link.mtu" and one.host == "ndr2"} == {
            outcome
        }


def test_two_kinds_in_one_class_are_one_warning_of_both() -> None:
    odd = {f"ndr{number}": rewritten("4092", "2044", "/ib0/mtu") for number in range(12, 21)}
    fitness = judged(fleet({"ndr": 20}, odd))
    found = [one for one in fitness.results if one.check == "net.link.mtu" and one.target == "ib0"]
    assert {(one.outcome, one.message) for one in found} == {(Outcome.WARN, PINNED["two kinds: 11 x MTU 4092"])}
    assert len(found) == 20 and fitness.unfit == {}


def test_classes_of_a_mixed_fleet() -> None:
    hosts = fleet({"gpu": 8, "ndr": 5, "hdr": 4, "login": 1}, {"gpu2": without("0000:43:00.0")})
    found = {tuple(sorted({host.rstrip("0123456789") for host in one.hosts})): one for one in Fleet(hosts).classes}
    assert {names: len(one.hosts) for names, one in found.items()} == {
        ("gpu",): 8,
        ("ndr",): 5,
        ("hdr",): 4,
        ("login",): 1,
    }
    label = found["gpu",].label
    assert label.startswith("Supermicro Super Server, AMD EPYC 9654")
    assert "8 GPUs 10de:2330" in label and "4 NICs 15b3:1021 MT_0000000838" in label


def test_the_same_card_missing_on_several_hosts_is_said() -> None:
    """Four of twenty hosts are a class of their own: it cannot be known that they were not built so."""
    some = {f"gpu{number}": without("0000:43:00.0") for number in range(1, 5)}
    fitness = judged(fleet({"gpu": 20}, some))
    assert said(fitness) == {"host.class": set(some)}
    (message,) = {one.message for one in fitness.results if one.check == "host.class" and one.outcome is Outcome.WARN}
    assert message == PINNED["7 instead of 8 GPUs on 4"]


def test_every_host_is_in_one_class_and_order_does_not_matter() -> None:
    hosts = {host.name: host.built for host in fleet({"gpu": 6, "ndr": 3, "hdr": 2, "login": 1})}
    found = classes_of(hosts)
    assert sorted(name for one in found for name in one.hosts) == sorted(hosts)
    other = classes_of(dict(reversed(hosts.items())))
    assert {frozenset(one.hosts) for one in found} == {frozenset(one.hosts) for one in other}
    assert lacking(found) == []


def test_a_host_that_is_compared_with_none_is_skipped_and_not_passed() -> None:
    fitness = judged(fleet({"ndr": 6, "login": 1}))
    (one,) = [one for one in fitness.results if one.check == "host.class" and one.host == "login1"]
    assert one.outcome is Outcome.SKIP


def test_a_setting_that_all_hosts_share_is_a_warning_of_each_class() -> None:
    """All cards at 16 of 32 GT/s: a setting of the BIOS. It is one finding, and none of the hosts is unfit."""
    half = rewritten("32.0", "16.0", "mlx5_0/device/current_link_speed")
    hosts = [made(f"{kind}{number}", kind, half) for kind in ("ndr", "hdr") for number in range(6)]
    fitness = judged(hosts)
    message = "16 GT/s on all similar hosts, supported 32 GT/s: check settings and slot"
    found = [one for one in fitness.results if one.outcome is Outcome.WARN and one.check == "pcie.speed"]
    assert {one.message for one in found} == {message} and len(found) == 12
    assert (
        fitness.unfit == {} and len([one for one in findings(fitness) if "pcie.speed" in sentences(one.evidence)]) == 1
    )


def test_a_slower_slot_is_still_found_beside_a_shared_setting() -> None:
    half = rewritten("32.0", "16.0", "mlx5_0/device/current_link_speed")
    hosts = [made(f"ndr{number}", "ndr", half) for number in range(6)]
    hosts.append(made("odd", "ndr", rewritten("32.0", "8.0", "mlx5_0/device/current_link_speed")))
    assert set(judged(hosts).unfit) == {"odd"}


def test_a_card_is_compared_with_the_same_part_only() -> None:
    """A spare part of the older generation is slower by design; its make is said."""
    hosts = fleet({"ndr": 8})
    hosts.append(made("spare", "hdr"))
    fitness = judged(hosts)
    assert fitness.unfit == {}
    assert said(fitness) == {"ib.psid": {"spare"}}


def test_what_a_host_did_not_say_in_its_time_is_unknown() -> None:
    hosts = [*fleet({"gpu": 7}), late("gpu8", "gpu")]
    fitness = judged(hosts)
    assert fitness.unfit == {}
    found = [one for one in fitness.results if one.host == "gpu8"]
    assert {one.check for one in found if one.outcome is Outcome.ERROR} == {"host.snapshot"}
    assert not [one for one in found if one.outcome in (Outcome.FAIL, Outcome.WARN)]
    assert fitness.exit_code == 3

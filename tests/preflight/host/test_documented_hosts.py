"""Hosts as in manuals: healthy ones have no finding; settings that slow down messages are reported on all hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from documented_hosts import KINDS, collected, roce_gids
from documented_machine import CPU, PCI, Machine

from fablint.model.preflight_results import Outcome
from fablint.preflight import Fleet, Host, judge
from fablint.snapshot import snapshot_of
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

RAILS = {
    "dgx": {f"ibp{bus}s0" for bus in (24, 64, 79, 94, 154, 192, 206, 220)} | {"ibp41s0f0", "ibp170s0f0"},
    "mi300": {f"enp{bus}s0np0" for bus in (1, 33, 65, 97, 129, 161, 193, 225)},
    "roce": {"ens3f0np0", "ens3f1np1"},
    "roce-bond": {"bond0", "ens3f0np0", "ens3f1np1"},
    "roce-eth": {"eth2", "eth3"},
    "roce-one": {"ens3f0np0", "ens3f1np1"},
    "ethernet": {"eth0", "eth2"},
    "ethernet-bond": {"bond0", "eno49np0", "eno50np1"},
}
WRONG = (Outcome.FAIL, Outcome.WARN, Outcome.ERROR)
Messages = dict[tuple[str, str], set[str]]


def reported(documents: Sequence[dict[str, Any]]) -> Messages:
    """Hosts by check and message of what is not as it should be."""
    found: Messages = defaultdict(set)
    for result in judge(Fleet([Host(snapshot_of(document)) for document in documents])).results:
        if result.outcome in WRONG:
            found[result.check, result.message].add(result.host)
    return dict(found)


@pytest.mark.parametrize("kind", KINDS)
def test_healthy_hosts_are_quiet_and_their_network_is_looked_at(tmp_path: Path, kind: str) -> None:
    documents = collected(tmp_path, {kind: 3})
    assert reported(documents) == {}
    for document in documents:
        assert {nic.name for nic in Host(snapshot_of(document)).interfaces} == RAILS.get(kind, {"ib0"})


def test_cards_of_two_generations_in_one_machine_are_two_classes(tmp_path: Path) -> None:
    assert reported(collected(tmp_path, {"ndr": 5, "hdr100": 4})) == {}


def test_a_card_of_another_make_among_like_hosts_is_reported(tmp_path: Path) -> None:
    def spare(host: Machine) -> None:
        host.files["/sys/class/infiniband/mlx5_0/board_id"] = "MT_0000000999"

    found = reported(collected(tmp_path, {"ndr": 5}, {"ndr-03": spare}))
    assert found == {("ib.psid", PINNED["board MT_0000000999, 4 others"]): {"ndr-03"}}


def switched_off(host: Machine) -> None:
    """As `ethtool -K NIC tso off` and `ethtool -C NIC adaptive-rx off` leave a NIC: parts follow."""
    for nic in ("ens3f0np0", "ens3f1np1"):
        features = host.commands[f"ethtool-k/{nic}"]
        for name in ("tcp-segmentation-offload", "tx-tcp-segmentation"):
            features = features.replace(f"{name}: on", f"{name}: off")
        host.commands[f"ethtool-k/{nic}"] = features
        text = host.commands[f"ethtool-c/{nic}"]
        host.commands[f"ethtool-c/{nic}"] = text.replace("Adaptive RX: on", "Adaptive RX: off")


def test_what_follows_from_a_setting_is_no_finding_of_its_own(tmp_path: Path) -> None:
    found = reported(collected(tmp_path, {"roce": 5}, {"roce-02": switched_off}))
    assert found == {
        ("net.offload", PINNED["tcp-segmentation-offload off, 4"]): {"roce-02"},
        ("net.coalesce", "adaptive-rx off, 4 others adaptive-rx on"): {"roce-02"},
    }


def test_what_is_off_but_requested_follows_from_what_was_switched_off(tmp_path: Path) -> None:
    """As `ethtool -K NIC tx off` leaves it: without checksums no segmentation, which stays requested."""

    def change(host: Machine) -> None:
        for nic in ("ens3f0np0", "ens3f1np1"):
            text = host.commands[f"ethtool-k/{nic}"].replace("tx-checksumming: on", "tx-checksumming: off")
            for name in ("tcp-segmentation-offload", "tx-tcp-segmentation"):
                text = text.replace(f"{name}: on", f"{name}: off [requested on]")
            host.commands[f"ethtool-k/{nic}"] = text

    found = reported(collected(tmp_path, {"roce": 5}, {"roce-02": change}))
    assert found == {("net.offload", PINNED["tx-checksumming off, 4 others"]): {"roce-02"}}


def slow_everywhere(host: Machine) -> None:
    """Settings of a host that slow messages down, each by itself."""
    for path in host.files:
        if path.endswith("/scaling_max_freq"):
            host.files[path] = "2000000"
        if path.endswith("/core_throttle_count"):
            host.files[path] = "500000"
        if path.endswith("/effective_affinity_list"):
            host.files[path] = "0"
        if path.endswith("/gid_attrs/types/3"):
            host.files[path] = "IB/RoCE v1"
    host.files[f"{CPU}/intel_pstate/no_turbo"] = "1"
    for nic in ("ens3f0np0", "ens3f1np1"):
        text = host.commands[f"ethtool-k/{nic}"]
        host.commands[f"ethtool-k/{nic}"] = text.replace("generic-receive-offload: on", "generic-receive-offload: off")
        text = host.commands[f"ethtool-c/{nic}"].replace("Adaptive RX: on  TX: on", "Adaptive RX: off  TX: off")
        host.commands[f"ethtool-c/{nic}"] = text.replace("rx-usecs:\t8", "rx-usecs:\t500")
        text = host.commands[f"ethtool-S-later/{nic}"]
        host.commands[f"ethtool-S-later/{nic}"] = text.replace("tx_prio3_pause: 0", "tx_prio3_pause: 90000")


def test_a_setting_that_is_poor_on_a_whole_class_is_one_warning(tmp_path: Path) -> None:
    hosts = {f"roce-{number:02d}" for number in range(1, 5)}
    found = reported(collected(tmp_path, {"roce": 4, "ndr": 4}, dict.fromkeys(hosts, slow_everywhere)))
    assert found == {
        ("host.turbo", "turbo off on 4 of 4 similar hosts"): hosts,
        ("host.cpu.cap", PINNED["CPUs capped at 53 % of their"]): hosts,
        ("host.throttle", PINNED["throttled more than 10,000"]): hosts,
        ("host.irq", PINNED["interrupts all on one CPU"]): hosts,
        ("ib.gid", PINNED["RoCE v2 over IPv4 nowhere"]): hosts,
        ("net.offload", PINNED["generic-receive-offload off"]): hosts,
        ("net.coalesce", "rx-usecs 500 on all 4 similar hosts"): hosts,
        (
            "net.pause.frames",
            PINNED["sent more than 4,000 pause"],
        ): hosts,
    }


def test_the_one_host_that_is_well_set_is_not_the_one_that_is_wrong(tmp_path: Path) -> None:
    others = {f"roce-{number:02d}" for number in (1, 2, 4, 5, 6)}

    def change(host: Machine) -> None:
        host.files[f"{CPU}/intel_pstate/no_turbo"] = "1"

    found = reported(collected(tmp_path, {"roce": 6}, dict.fromkeys(others, change)))
    assert found == {("host.turbo", "turbo off on 5 of 6 similar hosts"): others}


def test_a_nic_that_its_switch_pauses_far_more_than_others_is_reported(tmp_path: Path) -> None:
    def change(host: Machine) -> None:
        text = host.commands["ethtool-S-later/eth2"]
        host.commands["ethtool-S-later/eth2"] = text.replace("rx_prio3_pause: 0", "rx_prio3_pause: 90000")

    ((key, hosts),) = reported(collected(tmp_path, {"ethernet": 5}, {"ethernet-04": change})).items()
    assert key[0] == "net.pause.frames" and hosts == {"ethernet-04"}
    assert PINNED["paused by its switch 90,000"].begins(key[1])


def test_a_port_without_an_address_lacks_no_type_of_it(tmp_path: Path) -> None:
    def change(host: Machine) -> None:
        for path in [path for path in host.files if "/gids/" in path or "/gid_attrs/" in path]:
            del host.files[path]
        host.rdma("mlx5_0", "0000:b1:00.0", "100 Gb/sec (4X EDR)", "MT_0000000359", "22.39.2048", layer="Ethernet",
                  hca="MT4125", gids=roce_gids("10.1.0.1", "ens3f0np0", 1)[:2])  # fmt: skip
        host.links[f"{PCI}/0000:b1:00.0/driver"] = "../../../bus/pci/drivers/mlx5_core"

    assert reported(collected(tmp_path, {"roce": 3}, {"*": change})) == {}


def test_a_host_with_another_cpu_is_reported_and_a_group_of_such_hosts_is_a_class(tmp_path: Path) -> None:
    def change(host: Machine) -> None:
        host.files["/proc/cpuinfo"] = host.files["/proc/cpuinfo"].replace("8360Y", "8358Y")

    found = reported(collected(tmp_path / "one", {"roce": 5}, {"roce-02": change}))
    message = "Intel Xeon Platinum 8358Y, 4 others of this machine and cards Intel Xeon Platinum 8360Y"
    assert found == {("host.cpu.model", message): {"roce-02"}}
    half = {f"roce-{number:02d}": change for number in range(1, 5)}
    assert reported(collected(tmp_path / "half", {"roce": 8}, half)) == {}

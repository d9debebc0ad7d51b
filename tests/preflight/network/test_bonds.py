"""Bonds: files as in Linux, Documentation/networking/bonding.rst, and net/bonding/bond_sysfs.c."""

from __future__ import annotations

import pytest
from preflight_help import host, nic, of, wrong

from fablint.preflight.checks.network.bonds import BOND_SETTINGS, BONDS
from fablint.preflight.host import Host

PARTNER = "9c:e1:76:00:00:01"


def bonded(name: str = "n1", mode: str = "802.3ad 4", **changed: str) -> Host:
    """A host with a bond of two; `ens1_speed` changes a file of a member, `bond_mode` one of the bond."""
    at = "/sys/class/net"
    bonding = {"slaves": "ens1 ens2", "mode": mode, "mii_status": "up", "xmit_hash_policy": "layer3+4 1"}
    bonding |= {"lacp_rate": "fast 1", "miimon": "100", "ad_partner_mac": PARTNER, "ad_num_ports": "2"}
    files = nic("bond0", speed="200000") | nic("ens1", speed="100000") | nic("ens2", speed="100000")
    files |= {f"{at}/{member}/bonding_slave/{key}": text for member in ("ens1", "ens2")
              for key, text in {"state": "active", "mii_status": "up", "ad_aggregator_id": "1"}.items()}  # fmt: skip
    for key, text in changed.items():
        member, _, file = key.partition("_")
        if member == "bond":
            bonding[file] = text
        else:
            of_member = file in ("mii_status", "ad_aggregator_id")
            files[f"{at}/{member}/{'bonding_slave/' if of_member else ''}{file}"] = text
    return host(name, files | {f"{at}/bond0/bonding/{key}": text for key, text in bonding.items()})


@pytest.mark.parametrize("mode", ["802.3ad 4", "active-backup 1", "balance-xor 2"])
def test_healthy_bonds_are_quiet(mode: str) -> None:
    backup = {"bond_ad_partner_mac": "00:00:00:00:00:00", "ens2_ad_aggregator_id": "2"} if mode[0] != "8" else {}
    hosts = [bonded(f"n{number}", mode, **backup) for number in range(4)]
    assert wrong(of(BONDS, *hosts)) == []
    assert wrong(of(BOND_SETTINGS, *hosts)) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ens2_mii_status": "down"}, "ens2 down"),
        ({"ens2_operstate": "down"}, "ens2 down"),
        ({"ens2_speed": "25000"}, "members of 25000 Mbit/s, 100000 Mbit/s"),
        ({"bond_ad_partner_mac": "00:00:00:00:00:00"}, "no partner: the switch does not aggregate its ports (LACP)"),
        ({"ens2_ad_aggregator_id": "2"}, "ens2 does not aggregate with the other members (LACP)"),
        ({"ens1_mii_status": "down", "ens2_mii_status": "fail"}, "ens[1-2] down"),
    ],
)
def test_what_is_wrong_with_a_bond_is_said(changed: dict[str, str], message: str) -> None:
    assert [(target, said) for _, target, _, said in wrong(of(BONDS, bonded(**changed)))] == [("bond0", message)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mode": "active-backup 1"}, "mode active-backup 1, 4 others mode 802.3ad 4"),
        ({"bond_xmit_hash_policy": "layer2 0"}, "xmit_hash_policy layer2 0, 4 others xmit_hash_policy layer3+4 1"),
        ({"bond_slaves": "ens1"}, "members 1, 4 others members 2"),
    ],
)
def test_settings_that_differ(changed: dict[str, str], message: str) -> None:
    hosts = [*(bonded(f"n{number}") for number in range(4)), bonded("odd", **changed)]
    assert [(name, said) for name, _, _, said in wrong(of(BOND_SETTINGS, *hosts))] == [("odd", message)]


def test_hosts_without_a_bond_are_skipped() -> None:
    assert [one.outcome.name for check in (BONDS, BOND_SETTINGS) for one in of(check, host("n1", nic("eth0")))] == [
        "SKIP",
        "SKIP",
    ]

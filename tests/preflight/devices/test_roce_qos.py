# ruff: noqa: E501
"""How RoCE NICs treat priorities, on the hosts of documented_hosts.py: deviating hosts are named, a class that agrees is not.

Outputs have the formats of iproute2 (dcb/dcb_pfc.c, dcb_ets.c, dcb_app.c, dcb_apptrust.c with -j), of NVIDIA's manual of
mlnx_qos, and of the files that MLNX_OFED and the kernel's rdma_cm have (Documentation/ABI/testing/configfs-rdma_cm).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from documented_hosts import collected
from documented_machine import Machine

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight import Fleet, Host
from fablint.preflight.checks.infiniband.roce_qos import ROCE_QOS
from fablint.snapshot import snapshot_of
from fablint.snapshot.agent.machine import Machine as Read
from fablint.snapshot.agent.tuning import roce_nics
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

pytestmark = pytest.mark.long  # many generated fleets

NICS = ("ens3f0np0", "ens3f1np1")
MLNX_QOS = """DCBX mode: OS controlled
Priority trust state: {trust}
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
default priority:
Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     {enabled}
\tbuffer      0   0   0   1   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
tc: 1 ratelimit: unlimited, tsa: vendor
\t priority:  0
"""
LOSSLESS, LOSSY = "0   0   0   1   0   0   0   0   ", "0   0   0   0   0   0   0   0   "


def dcb(part: str, **changed: object) -> str:
    """What `dcb -j PART show dev NIC` prints."""
    parts: dict[str, dict[str, object]] = {
        "pfc": {"pfc_cap": 8, "macsec_bypass": False, "delay": 7, "prio_pfc": [number == 3 for number in range(8)]},
        "ets": {"willing": False, "ets_cap": 8, "cbs": False, "tc_bw": [0] * 8, "pg_bw": [0] * 8, "tc_tsa": ["strict"] * 8,
                "prio_tc": [1, 0, 2, 3, 4, 5, 6, 7], "reco_tc_bw": [0] * 8},
        "app": {"default_prio": [0], "dscp_prio": [[26, 3], [48, 6]]},
        "apptrust": {"order": ["dscp"]},
    }  # fmt: skip
    return json.dumps([{**parts[part], **changed}])


def with_dcb(host: Machine) -> None:
    for nic in NICS:
        for part in ("pfc", "ets", "app", "apptrust"):
            host.commands[f"dcb-{part}/{nic}"] = dcb(part)


def with_mlnx_qos(host: Machine) -> None:
    for nic in NICS:
        host.commands[f"mlnx_qos/{nic}"] = MLNX_QOS.format(trust="dscp", enabled=LOSSLESS)


def with_files(host: Machine) -> None:
    for number, nic in enumerate(NICS):
        device = f"mlx5_{number}"
        host.files[f"/sys/class/infiniband/{device}/tc/1/traffic_class"] = "Global tclass=106"
        host.put(f"/sys/kernel/config/rdma_cm/{device}/ports/1", default_roce_mode="RoCE v2", default_roce_tos=106)
        for part in ("roce_np", "roce_rp"):
            host.put(f"/sys/class/net/{nic}/ecn/{part}/enable", **{str(prio): 1 for prio in range(8)})


Change = Callable[[Machine], None]


def results(tmp_path: Path, basis: Change, changes: dict[str, Change], count: int = 6) -> list[Result]:
    def made(change: Change | None) -> Change:
        def both(host: Machine) -> None:
            basis(host)
            if change is not None:
                change(host)

        return both

    names = [f"roce-{number:02d}" for number in range(1, count + 1)]
    documents: Sequence[dict[str, Any]] = collected(
        tmp_path, {"roce": count}, {name: made(changes.get(name)) for name in names}
    )
    return list(ROCE_QOS.results(Fleet([Host(snapshot_of(document)) for document in documents])))


def wrong(found: Sequence[Result]) -> dict[tuple[str, str], set[str]]:
    reported: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in found:
        if one.outcome not in (Outcome.PASS, Outcome.SKIP):
            reported[one.target, one.message].add(one.host)
    return dict(reported)


@pytest.mark.parametrize("basis", [with_dcb, with_mlnx_qos, with_files])
def test_hosts_that_agree_are_quiet_and_were_looked_at(tmp_path: Path, basis: Change) -> None:
    found = results(tmp_path, basis, {}, 3)
    assert wrong(found) == {}
    assert {(one.target, one.outcome) for one in found} == {(nic, Outcome.PASS) for nic in NICS}


def on(nic: str, command: str, text: str) -> Change:
    def change(host: Machine) -> None:
        host.commands[f"{command}/{nic}"] = text

    return change


def at(path: str, text: str) -> Change:
    def change(host: Machine) -> None:
        assert path in host.files
        host.files[path] = text

    return change


FAULTS = [
    (with_dcb, on(NICS[0], "dcb-pfc", dcb("pfc", prio_pfc=[False] * 8)), "PFC off, 5 others PFC priority 3"),
    (with_dcb, on(NICS[0], "dcb-pfc", dcb("pfc", prio_pfc=[number in (3, 4) for number in range(8)])),
     "PFC priorities 3 4, 5 others PFC priority 3"),
    (with_dcb, on(NICS[0], "dcb-apptrust", dcb("apptrust", order=["pcp"])), "trust pcp, 5 others trust dscp"),
    (with_dcb, on(NICS[0], "dcb-app", dcb("app", dscp_prio=[])), "priorities of DSCP none, 5 others priorities of DSCP 26:3 48:6"),
    (with_dcb, on(NICS[0], "dcb-ets", dcb("ets", prio_tc=[0] * 8)),
     "traffic classes 0 0 0 0 0 0 0 0, 5 others traffic classes 1 0 2 3 4 5 6 7"),
    (with_mlnx_qos, on(NICS[0], "mlnx_qos", MLNX_QOS.format(trust="pcp", enabled=LOSSLESS)), "trust pcp, 5 others trust dscp"),
    (with_mlnx_qos, on(NICS[0], "mlnx_qos", MLNX_QOS.format(trust="dscp", enabled=LOSSY)), "PFC off, 5 others PFC priority 3"),
    (with_files, at("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", ""),
     "traffic class of port 1 as programs request, 5 others traffic class of port 1 106"),
    (with_files, at("/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos", "0"), "ToS of rdma_cm 0, 5 others ToS of rdma_cm 106"),
    (with_files, at(f"/sys/class/net/{NICS[0]}/ecn/roce_rp/enable/3", "0"),
     "ECN as sender priorities 0 1 2 4 5 6 7, 5 others ECN as sender priorities 0 1 2 3 4 5 6 7"),
]  # fmt: skip


@pytest.mark.parametrize(("basis", "change", "message"), FAULTS)
def test_a_host_that_differs_is_named_with_its_nic(tmp_path: Path, basis: Change, change: Change, message: str) -> None:
    found = wrong(results(tmp_path, basis, {"roce-03": change}))
    setting = message.partition(", 5 others ")[2]
    ((target, reported), hosts) = next(iter(found.items()))
    assert (hosts, reported, len(found)) == ({"roce-03"}, message, 1)
    assert target.startswith(f"{NICS[0]} ")
    assert setting.startswith(target.removeprefix(f"{NICS[0]} "))


def test_two_kinds_of_hosts_are_one_warning_and_no_fault_of_either(tmp_path: Path) -> None:
    changes = {f"roce-{number:02d}": on(NICS[0], "dcb-pfc", dcb("pfc", prio_pfc=[False] * 8)) for number in (1, 2, 3)}
    found = wrong(results(tmp_path, with_dcb, changes))
    assert set(found) == {(f"{NICS[0]} PFC", PINNED["two kinds: 3 x PFC off, 3"])}


def test_a_host_with_other_tools_is_not_said_to_lack_settings(tmp_path: Path) -> None:
    def another(host: Machine) -> None:
        for nic in NICS:
            for part in ("pfc", "ets", "app", "apptrust"):
                del host.commands[f"dcb-{part}/{nic}"]
        with_mlnx_qos(host)

    assert wrong(results(tmp_path, with_dcb, {"roce-02": another})) == {}


def test_hosts_without_tools_say_why(tmp_path: Path) -> None:
    found = results(tmp_path, lambda _: None, {}, 2)
    assert {(one.outcome, one.message) for one in found} == {(Outcome.SKIP, "dcb: no such output in the tree")}


def test_nics_of_ethernet_with_an_rdma_device_are_asked(tmp_path: Path) -> None:
    for device, nic, kind in (("mlx5_0", "ens3f0np0", "1"), ("mlx5_1", "ib0", "32"), ("", "eno1", "1")):
        (tmp_path / f"sys/class/net/{nic}").mkdir(parents=True)
        (tmp_path / f"sys/class/net/{nic}/type").write_text(kind)
        if device:
            (tmp_path / f"sys/class/infiniband/{device}/device/net/{nic}").mkdir(parents=True)
    assert roce_nics(Read(str(tmp_path), 5.0), ["eno1", "ens3f0np0", "ib0"]) == ["ens3f0np0"]

"""The InfiniBand fabric, from what infiniband-diags printed on a simulated one; and how it is asked and kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from preflight_help import host, of, outcomes, sample, wrong

from fablint.model import Cable, Switch, Topology
from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import Check
from fablint.preflight.checks.fabric.infiniband_fabric import FABRIC_BALANCE, FABRIC_ERRORS, FABRIC_LINKS, FABRIC_SM
from fablint.snapshot import CollectedSnapshots, Output, Snapshot, save_snapshots, snapshot_of
from fablint.system import System
from fablint.workflows.host_preflight import FABRIC, judge_snapshots, preflight_saved, query_fabric
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

NOTHING = Output("/usr/sbin/ibtool: iberror: failed: Failed to open port\n", "ibwarn: no UMAD port", 255)


def printed(kind: str, **changed: str | Output) -> Snapshot:
    """What the tools printed on the good or the bad fabric."""
    said: dict[str, str | Output] = {
        "ibnetdiscover": sample(f"fattree16-{kind}/ibnetdiscover.txt"),
        "ibqueryerrors": sample(f"ibsim/fattree16-{kind}/ibqueryerrors.txt"),
        "sminfo": sample(f"ibsim/fattree16-{kind}/sminfo.txt"),
        **changed,
    }
    outputs = {name: Output(text, status=0) if isinstance(text, str) else text for name, text in said.items()}
    return Snapshot("admin", level="fabric", commands=outputs)


def planned(**moved: str) -> Topology:
    """Four hosts on each of four leaves, two cables from each leaf to each spine."""
    hosts = {f"node{number + 1:03d}": f"leaf{number // 4 + 1}" for number in range(16)} | moved
    cables = [Cable(f"leaf{leaf}", f"spine{spine}") for leaf in range(1, 5) for spine in (1, 2) for _ in range(2)]
    names = {name for cable in cables for name in (cable.a, cable.b)}
    return Topology({name: Switch(name) for name in names}, hosts, tuple(cables))


@pytest.mark.parametrize("check", [FABRIC_LINKS, FABRIC_ERRORS, FABRIC_BALANCE, FABRIC_SM])
def test_a_good_fabric_is_silent(check: Check) -> None:
    assert set(outcomes(of(check, fabric=printed("good"), topology=planned()))) == {Outcome.PASS}


@pytest.mark.parametrize("check", [FABRIC_LINKS, FABRIC_ERRORS, FABRIC_BALANCE, FABRIC_SM])
def test_what_was_not_seen_never_passes(check: Check) -> None:
    silent = printed("good", ibnetdiscover=NOTHING, ibqueryerrors=NOTHING, sminfo=NOTHING)
    timed_out = Output(error="no answer in time")
    late = printed("good", ibnetdiscover=timed_out, ibqueryerrors=timed_out, sminfo=timed_out)
    odd = printed("good", ibnetdiscover="odd", ibqueryerrors="odd", sminfo="odd")
    assert outcomes(of(check)) == [Outcome.SKIP]
    assert outcomes(of(check, fabric=silent)) == [Outcome.SKIP], "this machine has no InfiniBand"
    assert outcomes(of(check, fabric=late)) == [Outcome.ERROR]
    assert outcomes(of(check, fabric=odd))[0] in (Outcome.ERROR, Outcome.SKIP)


def test_missing_parts_of_the_bad_fabric_are_named() -> None:
    found = {one[0]: one[2:] for one in wrong(of(FABRIC_LINKS, fabric=printed("bad"), topology=planned()))}
    assert found.keys() == {"leaf2", "leaf3", "node006", "node015"}
    assert found["node015"] == (Outcome.FAIL, "not on the fabric, expected on leaf4")
    assert found["leaf3"] == (Outcome.FAIL, "1 of 2 cables to spine2")
    assert wrong(of(FABRIC_BALANCE, fabric=printed("bad"))) == [
        ("leaf3", "", Outcome.WARN, "3 uplinks, 3 others 4"),
    ]


def placed(*hosts: str, **known: str) -> list[tuple[str, str, Outcome, str]]:
    """What is said of the good fabric where the plan differs."""
    fleet = [host(name) for name in hosts]
    return wrong(of(FABRIC_LINKS, *fleet, fabric=printed("good"), topology=planned(**known)))


def test_hosts_elsewhere_than_planned() -> None:
    assert placed(node004="leaf2", node005="leaf1") == [
        ("node004", "", Outcome.FAIL, PINNED["connected to leaf1, expected"]),
        ("node005", "", Outcome.FAIL, PINNED["connected to leaf2, expected"]),
    ]
    assert placed(node004="leaf2") == [("node004", "", Outcome.FAIL, "connected to leaf1, expected leaf2")]


def test_faults_of_other_hosts_are_warnings() -> None:
    assert placed("node001", node004="leaf2") == [("node004", "", Outcome.WARN, "connected to leaf1, expected leaf2")]
    assert placed("node004", node004="leaf2")[0][2] is Outcome.FAIL
    bad = {one[0]: one[2] for one in wrong(of(FABRIC_LINKS, host("node001"), fabric=printed("bad")))}
    assert bad == {"node006": Outcome.WARN, "leaf2": Outcome.FAIL}


def test_names_that_do_not_fit_have_no_finding() -> None:
    other = Topology({"leaf1": Switch("leaf1")}, {f"nid{number:06d}": "leaf1" for number in range(4)})
    assert not wrong(of(FABRIC_LINKS, fabric=printed("good"), topology=other))
    blocks = Topology({"block1": Switch("block1")}, {"node001": "block1", "node009": "block1"})
    assert not wrong(of(FABRIC_LINKS, host("node001"), fabric=printed("good"), topology=blocks))
    assert not wrong(of(FABRIC_LINKS, host("node001.site.org"), fabric=printed("good"), topology=planned()))


def test_a_host_that_does_not_tell_its_name_is_not_said_to_be_missing() -> None:
    unnamed = sample("fattree16-good/ibnetdiscover.txt").replace("node007 mlx5_0", "MT4123 ConnectX6")
    found = wrong(of(FABRIC_LINKS, fabric=printed("good", ibnetdiscover=unnamed), topology=planned()))
    message = "not on the fabric under its name; guid-0002c90300b00070 is connected to leaf2"
    assert found == [("node007", "", Outcome.WARN, message)]


def test_a_host_that_the_topology_does_not_know() -> None:
    topology = planned()
    hosts = {name: leaf for name, leaf in topology.host_switch.items() if name != "node007"}
    topology = Topology(topology.switches, hosts, topology.cables)
    found = wrong(of(FABRIC_LINKS, host("node007"), fabric=printed("good"), topology=topology))
    assert found == [("node007", "", Outcome.WARN, PINNED["connected to leaf2"])]


def errors(text: str, before: str | None = None) -> list[tuple[str, str, Outcome, str]]:
    earlier = printed("bad", ibqueryerrors=before) if before is not None else None
    return wrong(
        of(FABRIC_ERRORS, fabric=printed("bad", ibqueryerrors=text), fabric_before=[earlier] if earlier else [])
    )


def test_errors_by_port_without_the_sums_of_switches() -> None:
    text = sample("ibsim/fattree16-bad/ibqueryerrors.txt")
    first = errors(text)
    assert [one[:3] for one in first] == [
        ("node006", "mlx5_0/1", Outcome.WARN),
        ("leaf2", "port 21", Outcome.WARN),
        ("spine1", "port 3", Outcome.WARN),  # and not `port ALL`, which says 255 for 812
    ]
    assert first[0][3].startswith("symbol_error is saturated: >= 65535")
    assert PINNED["port_xmit_discards 812 since"] in first[2][3]


def test_old_errors_are_reported_once() -> None:
    text = sample("ibsim/fattree16-bad/ibqueryerrors.txt")
    assert [error[0] for error in errors(text, text)] == ["node006"], "only what is full, and has to be cleared"
    more = text.replace("SymbolErrorCounter == 4711", "SymbolErrorCounter == 4721")
    assert [error[3] for error in errors(more, text)][1:] == ["symbol_error 10 in 0.0 s"]
    fewer = text.replace("SymbolErrorCounter == 4711", "SymbolErrorCounter == 12")
    assert [error[3] for error in errors(fewer, text)][1:] == ["symbol_error 12 in 0.0 s"], "cleared in between"


def test_a_list_of_errors_that_was_cut_off_never_passes() -> None:
    text = sample("ibsim/fattree16-bad/ibqueryerrors.txt").partition("## Summary")[0]
    assert outcomes(of(FABRIC_ERRORS, fabric=printed("good", ibqueryerrors=text))) == [Outcome.ERROR]


def test_counters_that_were_not_read_never_pass() -> None:
    """Nodes that did not answer the discovery of ibqueryerrors, and ports that did not answer its requests."""
    text = sample("ibsim/fattree16-bad/ibqueryerrors.txt")
    assert errors(text.replace("21 nodes checked", "6 nodes checked"))[0] == (
        *("fabric", "", Outcome.ERROR),
        PINNED["ibqueryerrors reached 6"],
    )
    assert errors(text.replace("## Suppressed", "##          3 PMA query failures\n## Suppressed"))[0] == (
        *("fabric", "", Outcome.ERROR),
        PINNED["ibqueryerrors had no answer"],
    )


def test_a_fabric_without_a_master() -> None:
    standby = sample("ibsim/fattree16-good/sminfo.txt").replace("state 3 SMINFO_MASTER", "state 2 SMINFO_STANDBY")
    assert wrong(of(FABRIC_SM, fabric=printed("good", sminfo=standby))) == [
        ("fabric", "", Outcome.FAIL, "the subnet manager at LID 1 is STANDBY")
    ]
    none = Output("sminfo: iberror: failed: query\n", "ibwarn: _do_madrpc: recv failed", 255)
    assert wrong(of(FABRIC_SM, fabric=printed("good", sminfo=none))) == [
        ("fabric", "", Outcome.FAIL, "no subnet manager answers: query")
    ]


def test_a_dragonfly_has_no_uplinks_to_count() -> None:
    """Every switch has hosts."""
    lines = [
        'Switch\t4 "S-000000000000000a"\t\t# "s1" enhanced port 0 lid 1 lmc 0',
        '[1]\t"H-000000000000000c"[1](d)\t\t# "n1 mlx5_0" lid 3 4xEDR',
        '[2]\t"S-000000000000000b"[2]\t\t# "s2" lid 2 4xEDR',
        "",
        'Switch\t4 "S-000000000000000b"\t\t# "s2" enhanced port 0 lid 2 lmc 0',
        '[1]\t"H-000000000000000e"[1](f)\t\t# "n2 mlx5_0" lid 4 4xEDR',
        "",
        'Ca\t1 "H-000000000000000c"\t\t# "n1 mlx5_0"',
        "",
        'Ca\t1 "H-000000000000000e"\t\t# "n2 mlx5_0"',
    ]
    assert outcomes(of(FABRIC_BALANCE, fabric=printed("good", ibnetdiscover="\n".join(lines)))) == [Outcome.SKIP]


# ------------------------------------------------------------------------------------------------ asked and kept


class Manager(System):
    """A machine with some of the tools, each of which prints how it was called."""

    def __init__(self, folder: Path, *tools: str) -> None:
        self.folder = folder
        for tool in tools:
            script = folder / tool
            report = folder / "report.txt"
            script.write_text(f'#!/bin/sh\necho "{tool} $*"\necho "Check result {report}"\n')
            script.chmod(0o755)
            report.write_text("FAILURE: Node: nid001003-nmn device hsn0 NO-CARRIER")

    @property
    def environ(self) -> Mapping[str, str]:
        return {**super().environ, "PATH": f"{self.folder}:/bin", "FABLINT_HOME": str(self.folder / "home")}

    def which(self, name: str) -> Path | None:
        return self.folder / name if (self.folder / name).exists() else None


def test_the_tools_that_are_installed_are_asked_once(tmp_path: Path) -> None:
    assert not query_fabric(Manager(tmp_path), ["n1"])
    fmn = "fmn-update-compute-hsn-health"
    system = Manager(tmp_path, "ibqueryerrors", fmn)
    hosts = ["nid001003", "nid001001", "login1"]
    fabric = snapshot_of(query_fabric(system, hosts, ["hsn0", "hsn1"])[FABRIC])
    assert fabric.level == "fabric"
    assert fabric.command("ibqueryerrors").text.splitlines()[0] == "ibqueryerrors "
    assert [*fabric.commands_like(fmn)] == ["hsn0", "hsn1"]
    for nic, said in fabric.commands_like(fmn).items():
        asked, *_, failure = said.text.splitlines()
        assert asked == PINNED["fmn --start-nid 1001 --end-nid"].filled(fmn=fmn, nic=nic)
        assert failure.startswith("FAILURE: Node: nid001003"), "what it wrote to its report"


def document(errors: str) -> dict[str, object]:
    commands = {"ibqueryerrors": {"output": errors, "status": 1}}
    return {"fablint_snapshot": 1, "host": "admin", "level": "fabric", "time": 1.0, "commands": commands}


def named(results: list[Result]) -> list[str]:
    return [result.host for result in results if result.check == "fabric.errors" and result.outcome is Outcome.WARN]


def test_the_fabric_is_kept_for_the_next_time(tmp_path: Path) -> None:
    system, text = Manager(tmp_path), sample("ibsim/fattree16-bad/ibqueryerrors.txt")
    collected = CollectedSnapshots({FABRIC: document(text)})
    first, second = (judge_snapshots(system, collected).results for _ in range(2))
    assert named(list(first)) == ["node006", "leaf2", "spine1"]
    assert named(list(second)) == ["node006"]


def test_a_fabric_that_was_saved_is_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    save_snapshots([document(sample("ibsim/fattree16-bad/ibqueryerrors.txt"))], path)
    looked = preflight_saved(Manager(tmp_path), [path])
    assert named(list(looked.fitness.results)) == ["node006", "leaf2", "spine1"]
    assert not looked.fitness.hosts

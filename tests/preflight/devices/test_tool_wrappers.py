"""Tools of vendors: what they print must reach the result. Samples are synthetic: public formats, invented values."""

from __future__ import annotations

import json

import pytest
from preflight_help import host, of, outcomes, sample, sysroot, wrong

from fablint.model.preflight_results import Outcome, Result
from fablint.preflight.check import Check
from fablint.preflight.checks.fabric import fabric_manager
from fablint.preflight.checks.host import tools
from fablint.preflight.checks.slingshot import cxi_loopback
from fablint.preflight.host import Host
from fablint.snapshot import Output, Snapshot
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

SLINGSHOT = sysroot("cxi-2rail-good")
ABSENT = Output(error="not installed")
TIMED_OUT = Output(error="no answer in time")


def asked(**commands: str | Output) -> Host:
    """A Slingshot host that answered so; `DIAG_hsn0` stands for `slingshot-diag/hsn0`."""
    names = {"diag": "slingshot-diag", "loop": "cxi_gpu_loopback_bw"}
    said = {}
    for key, text in commands.items():
        tool, _, part = key.partition("_")
        said[f"{names[tool]}/{part}" if tool in names else key] = text
    return host(files=SLINGSHOT, commands=said, root=True)


# ------------------------------------------------------------------------------------------------ cxi_healthcheck


def test_a_health_check_that_passes() -> None:
    results = of(tools.CXI_HEALTH, asked(cxi_healthcheck=sample("slingshot/cxi_healthcheck-pass.txt")))
    assert [(result.target, result.outcome) for result in results] == [("cxi0", Outcome.PASS), ("cxi1", Outcome.PASS)]


def test_a_health_check_that_fails_with_its_warnings() -> None:
    text = sample("slingshot/cxi_healthcheck-fail.txt")
    ((_, target, outcome, message),) = wrong(of(tools.CXI_HEALTH, asked(cxi_healthcheck=text)))
    assert (target, outcome) == ("cxi1", Outcome.FAIL)
    assert PINNED["link_flap_check, dmesg_check"].begins(message)
    assert PINNED["A node reboot may be required"].ends(message)


def test_a_health_check_that_was_cut_off_never_passes() -> None:
    text = sample("slingshot/cxi_healthcheck-pass.txt")
    for end in range(len(text) - 1):
        results = of(tools.CXI_HEALTH, asked(cxi_healthcheck=text[:end]))
        assert Outcome.ERROR in outcomes(results), f"after {end} letters"
    (_, second) = of(tools.CXI_HEALTH, asked(cxi_healthcheck=text.partition("cxi1")[0]))
    assert (second.target, second.outcome) == ("cxi1", Outcome.ERROR)
    assert second.message == PINNED["no summary: the output"]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (ABSENT, Outcome.SKIP),
        (TIMED_OUT, Outcome.ERROR),
        (Output("", "cxi_healthcheck: must be run as root", 1), Outcome.SKIP),
        (Output("", "Traceback (most recent call last):", 1), Outcome.ERROR),
        (Output("", "", 0), Outcome.ERROR),
    ],
)
def test_without_an_answer_nothing_passes(said: Output, outcome: Outcome) -> None:
    one = asked(cxi_healthcheck=said, diag_hsn0=said, loop_cxi0=said, loop_cxi1=said)
    for check in (tools.CXI_HEALTH, tools.SLINGSHOT_DIAG, cxi_loopback.CXI_LOOPBACK_RATE):
        assert set(outcomes(of(check, one))) == {outcome}, check.id


# ------------------------------------------------------------------------------------------------ slingshot-diag


def test_warnings_of_slingshot_diag_reach_the_result_whatever_its_status() -> None:
    """Its loop over AER counters runs in a subshell, so that it ends with status 0."""
    text = sample("slingshot/slingshot-diag-aer.txt")
    assert wrong(of(tools.SLINGSHOT_DIAG, asked(diag_hsn0=Output(text, status=0)))) == [
        (
            "n1",
            "hsn0",
            Outcome.WARN,
            PINNED["PCI AER threshold exceeded"],
        )
    ]


def test_slingshot_diag_by_its_words_and_its_status() -> None:
    healthy = sample("slingshot/slingshot-diag-aer.txt").partition("\ncxi0")[2]
    one = asked(
        diag_hsn0=Output(healthy, status=0),
        diag_hsn1=Output(healthy, "exit status 1", 1),
        diag_hsn2=Output("ERROR: hsn2 has no device\n", "", 0),
        diag_hsn3=Output(healthy, "", 2),
        diag_hsn4=Output("hello", "", 0),
        diag_hsn5=sample("slingshot/slingshot-diag-ama-mismatch.txt"),
    )
    results = {result.target: result for result in of(tools.SLINGSHOT_DIAG, one)}
    assert [result.outcome.name for result in results.values()] == ["PASS", "WARN", "FAIL", "FAIL", "ERROR", "WARN"]
    assert PINNED["AMA for device hsn0 does"] in results["hsn5"].message


# ------------------------------------------------------------------------------------------------ dcgmi


def diagnostic(status: str, warnings: object = None) -> str:
    result = {"gpu_ids": "3", "status": status, **({"warnings": warnings} if warnings else {})}
    tests = [{"name": "Denylist", "results": [{"status": "Pass"}]}, {"name": "Row Remap", "results": [result]}]
    whole = {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": tests}]}}
    return f"Successfully ran diagnostic for group.\n{json.dumps(whole)}"


@pytest.mark.parametrize("warnings", ["rows are pending", [{"warning": "rows are pending", "error_id": 38}]])
def test_a_gpu_that_fails_its_diagnostic(warnings: object) -> None:
    assert wrong(of(tools.GPU_DIAG, asked(dcgmi=diagnostic("Fail", warnings)))) == [
        ("n1", "", Outcome.WARN, "GPU 3: Row Remap fail (rows are pending)")
    ]
    assert outcomes(of(tools.GPU_DIAG, asked(dcgmi=diagnostic("PASS")))) == [Outcome.PASS]
    assert outcomes(of(tools.GPU_DIAG, asked(dcgmi=diagnostic("Skip")))) == [Outcome.PASS]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (ABSENT, Outcome.SKIP),
        (Output("Error: unable to connect to localhost\n", "Error: unable to connect", 1), Outcome.SKIP),
        ("nothing of the kind", Outcome.ERROR),
        (diagnostic("Fail")[:-20], Outcome.ERROR),
    ],
)
def test_a_diagnostic_that_did_not_run(said: str | Output, outcome: Outcome) -> None:
    assert outcomes(of(tools.GPU_DIAG, asked(dcgmi=said))) == [outcome]


# ------------------------------------------------------------------------------------------------ fabric manager


def manager(check: Check, said: str | Output, *hosts: str) -> list[Result]:
    output = Output(said, status=0) if isinstance(said, str) else said
    commands = {name: output for name in ("fmn-update-compute-hsn-health", "fmn-show-status")}
    fleet = [host(name) for name in hosts]
    return of(check, *fleet, fabric=Snapshot("fmn", level="fabric", commands=commands))


HEALTH = sample("slingshot/fmn-update-compute-hsn-health.txt")


def test_failures_that_the_fabric_manager_names_and_those_that_it_only_counts() -> None:
    results = wrong(manager(fabric_manager.FMN_HEALTH, HEALTH))
    assert [result[:3] for result in results] == [
        ("nid001003", "hsn0", Outcome.FAIL),
        ("nid001007", "hsn0", Outcome.FAIL),
        ("nid001011", "hsn0", Outcome.WARN),  # only not known
        ("fabric", "", Outcome.ERROR),
    ]
    assert results[0][3] == "Compute node HSN NIC NO-CARRIER."
    assert results[3][3] == "4 hosts fail, but only 3 are named"


def test_a_host_that_is_not_named_passes_only_if_all_failures_are() -> None:
    results = manager(fabric_manager.FMN_HEALTH, HEALTH, "nid001003", "nid001004")
    assert [result.outcome for result in results if result.host == "nid001004"] == [Outcome.SKIP]
    assert not any(result.host == "nid001007" for result in results), "not a requested host"
    whole = HEALTH.replace("failure_computes:4", "failure_computes:3")
    results = manager(fabric_manager.FMN_HEALTH, whole, "nid001003", "nid001004")
    assert {result.host: result.outcome for result in results} == {"nid001003": Outcome.FAIL, "nid001004": Outcome.PASS}


def test_without_a_summary_no_host_passes() -> None:
    assert outcomes(manager(fabric_manager.FMN_HEALTH, "Compute Health test", "nid001003")) == [Outcome.ERROR]
    assert outcomes(manager(fabric_manager.FMN_HEALTH, TIMED_OUT, "nid001003")) == [Outcome.ERROR]
    assert outcomes(manager(fabric_manager.FMN_HEALTH, ABSENT, "nid001003")) == [Outcome.SKIP]


def test_every_nic_of_a_host_is_judged_by_the_report_on_it() -> None:
    """The fabric manager examines one NIC of all hosts at a time."""
    first = HEALTH.replace("failure_computes:4", "failure_computes:3")
    second = (
        "Compute Health test Summary Start Nid: 1001 End Nid: 1016 HSN NIC:hsn1\n"
        "Total Compute nodes Checked:16 success computes:15 failure_computes:1\n"
        "FAILURE: Node: nid001004-nmn device hsn1 Compute node HSN NIC NO-CARRIER.\n"
    )
    reports = {"hsn0": first, "hsn1": second, "hsn2": first[:60], "hsn3": Output("", "no answer in time")}
    commands = {
        f"fmn-update-compute-hsn-health/{nic}": Output(said, status=0) if isinstance(said, str) else said
        for nic, said in reports.items()
    }
    fleet = [host("nid001003"), host("nid001004")]
    results = of(fabric_manager.FMN_HEALTH, *fleet, fabric=Snapshot("fmn", level="fabric", commands=commands))
    assert {(one.host, one.target): one.outcome for one in results} == {
        ("nid001003", "hsn0"): Outcome.FAIL,
        ("nid001004", "hsn0"): Outcome.PASS,
        ("nid001003", "hsn1"): Outcome.PASS,
        ("nid001004", "hsn1"): Outcome.FAIL,
        ("fabric", "hsn2"): Outcome.ERROR,
        ("fabric", "hsn3"): Outcome.ERROR,
    }


def test_ports_that_are_down_by_name() -> None:
    assert wrong(manager(fabric_manager.FMN_STATUS, sample("slingshot/fmn-show-status-v1.txt"))) == [
        ("x1000c0r3b0", "j2p1", Outcome.WARN, "edge link is down"),
        ("x1001c0r7b0", "j9p0", Outcome.WARN, "edge link is down"),
        ("x1000c0r3b0", "j104p0", Outcome.WARN, "fabric link is down"),
        ("x1001c0r7b0", "j108p1", Outcome.WARN, "fabric link is down"),
    ]


def test_ports_that_are_down_by_number_and_health() -> None:
    text = sample("slingshot/fmn-show-status-v2.txt").replace("Traffic:HEALTHY", "Traffic:UNHEALTHY")
    assert wrong(manager(fabric_manager.FMN_STATUS, text)) == [
        ("fabric", "", Outcome.WARN, "edge ports online: 62 of 64"),
        ("fabric", "", Outcome.WARN, "fabric ports online: 22 of 24"),
        ("fabric", "", Outcome.WARN, "traffic: UNHEALTHY"),
    ]


def test_a_fabric_that_is_well() -> None:
    text = "Runtime:HEALTHY\nEdge Total: 64 Online: 64, Offline: 0\nPorts Reported: 88 / 88\n"
    assert outcomes(manager(fabric_manager.FMN_STATUS, text)) == [Outcome.PASS]
    assert outcomes(manager(fabric_manager.FMN_STATUS, "well, well")) == [Outcome.ERROR]
    (without,) = of(fabric_manager.FMN_STATUS, host("n1"))
    assert without.outcome is Outcome.SKIP

"""Whatever hosts and tools say, checks of fabric devices come to an end with results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from preflight_help import nested, sample, sysroot

from fablint.model import Cable, Switch, Topology
from fablint.model.preflight_results import Result
from fablint.preflight.check_registry import CHECKS
from fablint.preflight.checks.host import pcie, tools
from fablint.preflight.checks.infiniband import omnipath, ports
from fablint.preflight.checks.slingshot import cxi
from fablint.preflight.fleet import Fleet
from fablint.preflight.host import Host
from fablint.snapshot import Snapshot, snapshot_of

FAMILIES = ("cxi.", "ib.", "opa.", "pcie.", "tool.", "fabric.")
OURS = [check for check in CHECKS if check.id.startswith(FAMILIES)]
TREES = [sysroot(f"{name}-{kind}") for name in ("cxi-2rail", "mlx5-2rail") for kind in ("good", "bad")]
OUTPUTS = {
    "cxi_rh/cxi0": "active\n",
    "cxi_service": "cxi0\n ID: 1 (DEFAULT)\n   Enabled : Yes\n",
    "cxi_healthcheck": sample("slingshot/cxi_healthcheck-fail.txt"),
    "slingshot-diag/hsn0": sample("slingshot/slingshot-diag-aer.txt"),
    "cxi_gpu_loopback_bw/cxi0": sample("slingshot/cxi_gpu_loopback_bw.txt"),
    "ib_write_bw/mlx5_0": sample("misc/ib_write_bw-rxe0.txt"),
    "opainfo": sample("misc/opainfo.txt"),
    "dcgmi": '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "x", "results": [{"status": "Fail"}]}]}]}}',
    "ibnetdiscover": sample("fattree16-bad/ibnetdiscover.txt"),
    "ibqueryerrors": sample("ibsim/fattree16-bad/ibqueryerrors.txt"),
    "sminfo": sample("ibsim/fattree16-bad/sminfo.txt"),
    "fmn-update-compute-hsn-health": sample("slingshot/fmn-update-compute-hsn-health.txt"),
    "fmn-show-status": sample("slingshot/fmn-show-status-v1.txt"),
}
FIGURES = ["", "-1", "0", "1e999", "0x", "9" * 30, "9" * 4000, "9" * 5000, "1@nan", "7@1e400", "٣", "\x00", "\ufffd"]
TEXTS = st.sampled_from(FIGURES) | st.text(max_size=40)
ODD = (
    st.none() | st.integers() | st.just(["no"]) | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
)
TOPOLOGY = Topology(
    {name: Switch(name) for name in ("leaf1", "leaf2", "spine1")},
    {"node001": "leaf2", "n1": "leaf1", "node099": "leaf2"},
    (Cable("leaf1", "spine1"), Cable("leaf2", "leaf2")),
)


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A document whose files and outputs are others' in part, or cut off, or of another kind."""
    tree: dict[str, Any] = dict(draw(st.sampled_from(TREES)))
    later = dict(tree)
    for part in (tree, later):
        for path in draw(st.lists(st.sampled_from(sorted(tree)), max_size=12)):
            part[path] = draw(TEXTS | ODD)
    commands: dict[str, Any] = {}
    for name, text in OUTPUTS.items():
        at = draw(st.integers(0, len(text)))
        kept = draw(st.sampled_from([text, text[:at], text[:at] + draw(st.text(max_size=9)) + text[at:]]))
        commands[name] = {"output": kept, "status": draw(st.sampled_from([0, 1, 2, None])), "error": draw(TEXTS)}
    if draw(st.booleans()):
        commands[draw(st.sampled_from(sorted(OUTPUTS)))] = draw(ODD)
    files, counted = (
        nested({path: one for path, one in part.items() if isinstance(one, str)}) for part in (tree, later)
    )
    for path, one in tree.items():
        if not isinstance(one, str):
            _put(files, path, one)
    times = st.floats() | st.just(1767594000.0)
    return {
        **{"host": "n1", "files": files, "counters": files, "later": counted, "commands": commands},
        **{"time": draw(times), "window_s": draw(st.floats(0, 5) | st.just(4.0))},
        "folders": {"/sys/class/cxi/cxi0/device/net": [draw(st.text(max_size=6))]},
    }


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *folders, name = path.strip("/").split("/")
    for folder in folders:
        tree = tree.setdefault(folder, {})
    tree[name] = value


def every(fleet: Fleet) -> list[Result]:
    return [result for check in OURS for result in check.results(fleet)]


def sound(results: list[Result]) -> None:
    assert len({result.check for result in results}) == len(OURS), "every check says something"
    for result in results:
        assert result.host and len(result.message) < 500, (result.check, result.message[:99])


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
@given(st.lists(damaged(), min_size=1, max_size=3))
def test_damaged_hosts_and_tools_are_judged(documents: list[dict[str, Any]]) -> None:
    snapshots = [snapshot_of({**document, "host": f"n{number}"}) for number, document in enumerate(documents)]
    before = {"time": 0, "counters": documents[0]["files"]}
    hosts = [Host(snapshot, before if number else None) for number, snapshot in enumerate(snapshots)]
    sound(every(Fleet(hosts, {"n9": "no answer"}, TOPOLOGY, snapshots[0], snapshots[-1:])))


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(sorted(OUTPUTS)), st.text()), st.binary(max_size=200))
@example({name: "x" * 900 for name in OUTPUTS}, b"")
@example({"sminfo": "sm lid 9" * 500}, b"\xff\xfe[1]\t\x00")
def test_any_text_is_judged(texts: dict[str, str], raw: bytes) -> None:
    said = {**texts, "ibnetdiscover": raw.decode("utf-8", "replace")}
    document = {
        "host": "n1",
        "files": nested(TREES[0]),
        "commands": {key: {"output": one, "status": 0} for key, one in said.items()},
    }
    snapshot = snapshot_of(document)
    sound(every(Fleet([Host(snapshot)], {}, TOPOLOGY, snapshot)))


def test_all_of_ours_are_in_the_table() -> None:
    families = {check.id.partition(".")[0] for check in OURS}
    assert families >= {"cxi", "ib", "opa", "pcie", "tool", "fabric"}
    assert {cxi.CXI_LINK, ports.IB_PORT_STATE, omnipath.OMNI_PATH_PORT, pcie.PCIE_WIDTH, tools.CXI_HEALTH} <= set(OURS)
    assert all(len(check.id) <= 20 and check.remedy and check.rule for check in OURS)


def test_an_empty_snapshot_is_skipped() -> None:
    results = every(Fleet([Host(Snapshot("n1"))]))
    sound(results)
    assert {result.outcome.name for result in results} == {"SKIP"}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda one: repr(one[:9]))
@pytest.mark.parametrize("tree", TREES[::2])
def test_files_that_all_say_the_same_are_judged(tree: dict[str, str], figure: str) -> None:
    files, outputs = nested(dict.fromkeys(tree, figure)), {name: {"output": figure, "status": 0} for name in OUTPUTS}
    document = {"files": files, "counters": files, "later": files, "commands": outputs, "time": float("inf")}
    hosts = [Host(snapshot_of({**document, "host": f"n{number}", "window_s": 4.0})) for number in range(3)]
    sound(every(Fleet(hosts, {}, TOPOLOGY, hosts[0].snapshot)))

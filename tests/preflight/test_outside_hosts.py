"""Logs and states of hosts in the forms that people have published (tests/fixtures/outside)."""

from __future__ import annotations

from pathlib import Path

import pytest
from preflight_help import host, of

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.gpu.gpu_log import LOG_GPU
from fablint.preflight.checks.host.hardware_log import LOG_EDAC
from fablint.preflight.checks.infiniband.ports import IB_PORT_STATE
from fablint.preflight.checks.network.network_log import LOG_NIC
from fablint.snapshot.host_snapshot import Output

OUTSIDE = Path(__file__).parents[1] / "fixtures" / "outside"
FAIL, WARN = Outcome.FAIL, Outcome.WARN
UPTIME = {"/proc/uptime": "1900.00 5.0"}  # seconds, a minute after the last line with a time


def text_of(number: str) -> str:
    (path,) = OUTSIDE.glob(f"{number}-*")
    return path.read_text()


@pytest.mark.parametrize(
    ("number", "check", "expected"),
    [
        ("32", LOG_GPU, [("0000:b3:00", FAIL, "fallen off the bus")]),
        ("33", LOG_GPU, [("0000:dc:00", FAIL, "Xid 149"), ("0000:44:00", WARN, "Xid 144")]),
        ("35", LOG_NIC, [("ib0", WARN, "queue stalled, 2 times")]),
        ("36", LOG_GPU, [("0000:68:00.0", FAIL, "uncorrectable hardware error; reset failed")]),
        ("38", LOG_EDAC, [("MC3", FAIL, "uncorrected memory error")]),
    ],
)
def test_kernel_logs(number: str, check: Check, expected: list[tuple[str, Outcome, str]]) -> None:
    results = of(check, host("n1", UPTIME, kernel_log=Output(text_of(number), status=0)))
    assert [(one.target, one.outcome) for one in results] == [(target, outcome) for target, outcome, _ in expected]
    assert all(words in one.message for one, (*_, words) in zip(results, expected, strict=True))


def test_one_of_two_equal_ports_that_looks_for_its_partner() -> None:
    state = dict(line.rstrip().split(" ", 1) for line in text_of("40").splitlines())
    good = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand", "rate": "400 Gb/sec (4X NDR)"}
    files = {
        f"/sys/class/infiniband/{device}/ports/1/{name}": text
        for device, port in (("mlx5_0", good), ("mlx5_1", {**good, **state}))
        for name, text in port.items()
    }
    files |= {f"/sys/class/infiniband/mlx5_{number}/device/vendor": "0x15b3" for number in (0, 1)}
    results = {one.target: one for one in of(IB_PORT_STATE, host("n1", files))}
    assert results["mlx5_1/1"].outcome in (WARN, FAIL)
    assert "DOWN" in results["mlx5_1/1"].message

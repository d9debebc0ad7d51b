"""Network interfaces of the fabric."""

from __future__ import annotations

from preflight_help import host, nic, of, outcomes, wrong

from fablint.fitness import Outcome
from fablint.preflight.checks.links import LinkMtu


def test_an_odd_mtu_is_named_with_what_the_others_have() -> None:
    hosts = [host(f"n{index}", nic(mtu="1500" if index == 3 else "9000")) for index in range(16)]
    assert wrong(of(LinkMtu, *hosts)) == [("n3", "hsn0", Outcome.FAIL, "MTU 1500, 15 others 9000")]


def test_without_a_majority_nothing_is_said() -> None:
    results = of(LinkMtu, host("n1", nic(mtu="1500")), host("n2", nic(mtu="9000")))
    assert outcomes(results) == [Outcome.SKIP, Outcome.SKIP]

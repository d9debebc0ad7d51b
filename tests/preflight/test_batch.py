"""Results that processes exchange: each is after it exactly what it was before."""

from __future__ import annotations

import pickle

from fablint.model.preflight_results import Outcome, Result, Suppressed
from fablint.preflight.batch import Batch


def test_results_come_out_of_another_process_as_they_went_in() -> None:
    results = [
        Result("net.link.mtu", "n1", "hsn0", Outcome.PASS, value=9000),
        Result("net.link.mtu", "n2", "hsn0", Outcome.PASS, value=9000.0),
        Result("net.link.mtu", "n3", "hsn0", Outcome.PASS, value=True),
        Result("net.link.mtu", "n1", "hsn1", Outcome.WARN, "MTU 1500", 1500, 9000, "B", "switch s3"),
        Result(
            "host.bios", "n2", "", Outcome.SUPPRESSED, "1.2", suppressed=Suppressed(Outcome.WARN, "2026-12-31", "x")
        ),
        Result("host.bios", "n3", "", Outcome.SKIP, "no such file"),
    ]
    known = pickle.loads(pickle.dumps(Batch(results))).results
    assert known == results
    assert list(map(repr, known)) == list(map(repr, results))  # 9000, 9000.0 and True are equal


def test_what_results_have_in_common_is_sent_once() -> None:
    def size(hosts: int) -> int:
        results = [Result("host.os", f"n{host}", "", Outcome.PASS, "a long message", 1) for host in range(hosts)]
        return len(pickle.dumps(Batch(results)))

    assert size(2000) - size(1000) < 1000 * 40  # a name and two numbers of each

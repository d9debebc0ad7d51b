"""Results that processes exchange: each is after it exactly what it was before, and in order."""

from __future__ import annotations

import os
import pickle
import time

import pytest

from fablint.model.preflight_results import Outcome, Result, Suppressed
from fablint.preflight.batch import Batch
from fablint.system import System


class TwoCpus(System):
    def affinity(self) -> frozenset[int]:
        return frozenset({0, 1})


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

    assert size(2000) - size(1000) < 1000 * 12  # the name of each host; columns of one value are sent as that value


def test_this_process_and_another_share_the_items() -> None:
    def made(item: int) -> tuple[int, int]:
        time.sleep(0.01)
        return item, os.getpid()

    results = list(TwoCpus().forked_map(made, range(20)))
    assert [item for item, _ in results] == list(range(20))
    assert {pid for _, pid in results} > {os.getpid()}


@pytest.mark.parametrize("bad", [0, 19])  # the first item of the other process, and of this one
def test_an_error_of_either_process_is_raised(bad: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(TwoCpus().forked_map(lambda item: 1 / (item - bad), range(20)))

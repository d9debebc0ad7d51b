"""What several transports say together about a slow host; a transport that is slower than others is not a finding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cluster_cases import ALL, FABRIC, list_row, run_of

from fablint.analyse import diagnose
from fablint.model import Finding, Row, State
from fablint.text.evidence_sentences import sentences
from fact_cases import with_facts
from pinned import pinned_by

PINNED = pinned_by("analyse.toml", __file__)

SLOW = 5  # rank and host
KINDS = {"slow_over_all", "slow_over_some"}


def streams(transport: str, seconds: float, slowest: float = 0.0) -> Row:
    """Streams of all pairs over a transport; those of the slow host take at least `slowest` seconds a message."""

    def time(src: int, to: int) -> float:
        return max(seconds, slowest) if SLOW in (src, to) else seconds

    row = list_row(f"bandwidth-{transport}", ALL, time)
    return with_facts(row, transport=transport)


def round_trips(transport: str, seconds: float, added: float = 0.0) -> Row:
    row = list_row(f"latency-{transport}", ALL, lambda src, to: seconds + added * (SLOW in (src, to)))
    return with_facts(row, transport=transport)


Findings = Callable[..., list[Finding]]


@pytest.fixture
def faults() -> Findings:
    def call(*rows: Row) -> list[Finding]:
        found = diagnose(run_of(*rows), FABRIC).verdict.findings
        return [finding for finding in found if finding.state in (State.FAULT, State.SUSPECT)]

    return call


def words(finding: Finding) -> str:
    return sentences([one for one in finding.evidence if one.kind in KINDS])


def test_a_slow_wire_is_slow_over_every_transport(faults: Findings) -> None:
    (fault,) = faults(streams("mpi", 10e-6, 30e-6), streams("tcp", 20e-6, 30e-6))
    assert (fault.state, fault.hosts) == (State.FAULT, ("h05",))
    assert words(fault) == PINNED["slow over mpi, tcp: the cause"]


def test_a_host_that_is_slow_over_one_library_only(faults: Findings) -> None:
    (fault,) = faults(streams("mpi", 10e-6, 30e-6), streams("ucx", 10e-6, 30e-6), streams("tcp", 12e-6))
    assert (fault.state, fault.hosts) == (State.FAULT, ("h05",))
    assert PINNED["slow over mpi, ucx, not over"].begins(words(fault))
    assert PINNED["% longer, where the wire"] in words(fault)


def test_a_transport_that_is_slow_by_itself_does_not_exonerate_the_wire(faults: Findings) -> None:
    (fault,) = faults(streams("mpi", 10e-6, 30e-6), streams("tcp", 40e-6, 30e-6))
    assert fault.hosts == ("h05",)
    assert words(fault) == ""


def test_slow_sockets(faults: Findings) -> None:
    (fault,) = faults(streams("mpi", 10e-6), streams("tcp", 20e-6, 60e-6))
    assert "slow over tcp, not over mpi" in words(fault)
    assert "look at the TCP settings" in words(fault)


def test_the_same_delay_is_a_small_part_of_a_long_time(faults: Findings) -> None:
    """2 us more are twice the time over mpi, and 2 % over tcp: tcp shows neither that they are there nor that not."""
    (fault,) = faults(round_trips("mpi", 2e-6, 2e-6), round_trips("tcp", 100e-6, 2e-6))
    assert fault.hosts == ("h05",)
    assert words(fault) == ""


def test_a_slow_transport_is_no_finding(faults: Findings) -> None:
    rows = [streams(name, seconds) for name, seconds in (("mpi", 10e-6), ("tcp", 90e-6), ("ofi", 30e-6))]
    assert faults(*rows, round_trips("mpi", 2e-6), round_trips("tcp", 40e-6)) == []

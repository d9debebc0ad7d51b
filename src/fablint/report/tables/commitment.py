"""The rules of the LinkTest commitment run (references: JUPITER benchmark suite, LinkTest), checked on what was run.

Nothing is taken from the command line: hosts, NICs and ranks are those that the run recorded, messages and sizes those
that were measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fablint.model import Row, Run
from fablint.model.names import natural
from fablint.model.registry import TRANSPORTS
from fablint.report import run_facts
from fablint.report.tables.cells import blocks
from fablint.report.tables.traffic import messages, warmups
from fablint.snapshot.fabric_nics import message_nics
from fablint.text import units

MESSAGES, WARMUPS, SIZE = 25, 3, 16 << 20


@dataclass(frozen=True)
class CommitmentRule:
    """One rule, and what the run has to say to it."""

    name: str
    kept: bool
    found: str


def rules(run: Run, row: Row, index: int) -> list[CommitmentRule]:
    """All rules, for the row at size number `index`."""
    count, exact = messages(row, index)
    warm, size = warmups(row, index), row.sizes[index]
    measured, planned = run_facts.measured_pairs(row), run_facts.planned_pairs(row)
    many = len(set(run.rank_host))
    return [
        CommitmentRule("bisection pattern", row.pattern == "bisection", row.pattern),
        CommitmentRule("both directions at once", row.is_duplex, f"kernel {row.kernel}"),
        CommitmentRule("messages of 16 MiB", size == SIZE, units.size(size)),
        CommitmentRule(f"at least {MESSAGES} messages", count >= MESSAGES, f"{count}{'' if exact else ' or more'}"),
        CommitmentRule(f"at least {WARMUPS} messages to warm up", warm >= WARMUPS, str(warm)),
        CommitmentRule("an even number of ranks", run.ranks % 2 == 0, str(run.ranks)),
        CommitmentRule("more than one host", many > 1, units.plural(many, "host")),
        _one_rank_per_nic(run),
        _halves(run, row, index),
        CommitmentRule(
            "all pairs measured", measured == planned > 0, f"{measured:,} of {planned:,} cells, row {row.facts.state}"
        ),
        CommitmentRule("a real fabric", real(run, row), _origin(run, row)),
    ]


def real(run: Run, row: Row) -> bool:
    """Return whether the row was measured with real messages: neither simulated nor a test transport."""
    transport = TRANSPORTS.get(row.facts.carrier.transport)
    is_test = transport is not None and (transport.moves_nothing or transport.damages_payloads)
    return run.facts.simulated is None and not is_test


def _origin(run: Run, row: Row) -> str:
    transport = row.facts.carrier.transport
    return "simulated" if run.facts.simulated is not None else f"measured, transport {transport}"


def _one_rank_per_nic(run: Run) -> CommitmentRule:
    """Return as many ranks on a host as it has adapters, each with its own; one less in all where their number is
    odd.
    """
    name = "one rank per network adapter"
    near = run.facts.rank_nic or [""] * run.ranks
    adapters = {host: message_nics(run.facts.nics.get(host, ())) for host in run.hosts}
    nearest: dict[str, list[str]] = {host: [] for host in run.hosts}
    for host, nic in zip(run.rank_host, near, strict=True):
        nearest[host].append(nic)
    if unknown := [host for host in run.hosts if not adapters[host]]:
        return CommitmentRule(name, False, f"no adapter known on {units.fold(unknown, ', ')}")
    total = sum(map(len, adapters.values()))
    wrong = []
    for host, rank_nics in nearest.items():
        if len(rank_nics) != len(adapters[host]):
            wrong.append(
                f"{host} has {units.plural(len(rank_nics), 'rank')} and {units.plural(len(adapters[host]), 'adapter')}"
            )
        elif sorted(rank_nics) != sorted(adapters[host]):
            wrong.append(f"ranks of {host} are nearest to {', '.join(sorted(set(rank_nics))) or 'none'}")
    left_over = total % 2 and run.ranks == total - 1 and len(wrong) == 1
    if wrong and not left_over:
        return CommitmentRule(
            name, False, "; ".join(wrong[:3]) + (f"; and {len(wrong) - 3} more" if len(wrong) > 3 else "")
        )
    odd = ", one left over" if left_over else ""
    return CommitmentRule(name, True, f"{units.plural(run.ranks, 'rank')}, {units.plural(total, 'adapter')}{odd}")


def _halves(run: Run, row: Row, index: int) -> CommitmentRule:
    """Ranks 0 .. n/2 - 1 against the others, no host in both halves."""
    name, half, hosts = "equal halves, every host in one of them", run.ranks // 2, run.rank_host
    split = sorted(set(hosts[:half]) & set(hosts[half:]), key=natural)
    inside = next(_within(row, index, half), None)
    if split:
        return CommitmentRule(name, False, f"in both halves: {units.fold(split, ', ')}")
    if inside is not None:
        return CommitmentRule(name, False, f"ranks {inside[0]} and {inside[1]} of one half were a pair")
    return CommitmentRule(name, run.ranks % 2 == 0, f"{half} and {run.ranks - half} ranks")


def _within(row: Row, index: int, half: int) -> Iterator[tuple[int, int]]:
    """Pairs that do not cross the bisection."""
    for block in blocks(row, index, ()):
        inside = (block.src < half) == (block.dst < half)
        yield from zip(block.src[inside].tolist(), block.dst[inside].tolist(), strict=True)

"""Findings that the engine made by itself: damaged payloads and ranks that were lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from fablint.analyse.phrasing import next_step
from fablint.analyse.settings import FEWEST_PEERS
from fablint.model import ComponentRef, Endpoint, Finding, Row, Run, State
from fablint.model.component import in_series
from fablint.model.facts.failed_rank import FailedRank
from fablint.text import actions as advise, evidence as seen

ANYBODY = ""  # in place of the sender of a payload that several ranks made, as in a reduction


def damaged(run: Run) -> list[Finding]:
    """Payloads that arrived changed do not arise by chance: FAULT of the route, or of the end that all share."""
    routes: Counter[tuple[str, str]] = Counter()
    where: dict[tuple[str, str], tuple[str, str]] = {}
    for row in run.rows:
        for (src, dst), first in _damage(run, row):
            routes[src, dst] += 1
            where.setdefault((src, dst), (row.name, first))
    findings = _damaged_together(run, routes, where)
    for side, direction in ((0, "tx"), (1, "rx")):
        ends: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for route in routes:
            ends[route[side]].append(route)
        for host, shared in ends.items():
            if len(shared) >= FEWEST_PEERS:
                messages = sum(routes.pop(route) for route in shared)
                component = ComponentRef.of("host", host)
                findings.append(
                    Finding(
                        state=State.FAULT,
                        components=(component,),
                        direction="tx" if direction == "tx" else "rx",
                        evidence=(seen.damaged_host(messages, len(shared), *where[shared[0]]),),
                        ambiguity_group=(*in_series(host)[:2], ComponentRef.of("host", host, title="memory")),
                        next_step=advise.take_out_of_service(component) + next_step(component),
                    )
                )
    for (src, dst), messages in routes.items():
        both = ComponentRef.of("host", src), ComponentRef.of("host", dst)
        findings.append(
            Finding(
                state=State.FAULT,
                components=(ComponentRef.of("route", src, dst, directed=True),),
                evidence=(seen.damaged(messages, *where[src, dst]),),
                ambiguity_group=both,
                next_step=advise.validate_ends(*both),
            )
        )
    return findings


def _damaged_together(
    run: Run, routes: Counter[tuple[str, str]], where: Mapping[tuple[str, str], tuple[str, str]]
) -> list[Finding]:
    """Takes out the payloads that have no single sender: one finding, as one bad contribution damages all results."""
    common = [route for route in routes if route[0] == ANYBODY]
    if not common:
        return []
    payloads = sum(routes.pop(route) for route in common)
    hosts = sorted({dst for _, dst in common if dst != ANYBODY}) or run.hosts
    return [
        Finding(
            state=State.FAULT,
            components=(ComponentRef.of("route", Endpoint(), hosts, directed=True),),
            evidence=(seen.damaged_result(payloads, *where[common[0]]),),
            next_step=advise.validate_all_pairs(),
        )
    ]


def _damage(run: Run, row: Row) -> list[tuple[tuple[str, str], str]]:
    """Host pair and place of each damaged payload of a row; other tools state the size only."""
    host = run.rank_host
    damage = []
    for entry in row.facts.result.corrupt:
        src, dst = (host[end] if end >= 0 else ANYBODY for end in (entry.src, entry.dst))
        place = "" if entry.offset is None else f" at byte {entry.offset}"
        which = "a message" if entry.message is None else f"message {entry.message}"
        damage.append(((src, dst), f"{which} of {entry.size} B{place}"))
    return damage


def lost(run: Run) -> list[Finding]:
    """Ranks that stalled or ended: SUSPECT, since a crashed program and a dead host are indistinguishable here.

    In a complete run they say nothing: all that they lacked was measured afterwards, or has a finding of the launches.
    """
    if run.state == "complete":
        return []
    by_host: dict[str, list[FailedRank]] = defaultdict(list)
    for entry in run.facts.lost:
        by_host[entry.host or "an unknown host"].append(entry)
    findings = []
    for host, entries in by_host.items():
        first = entries[0]
        others = [_host_of(run, entry.partner) for entry in entries]
        partners = ["" if other == host else other for other in others]
        beside = partners[0]
        findings.append(
            Finding(
                state=State.SUSPECT,
                components=(ComponentRef.of("host", host),),
                evidence=(
                    seen.rank_failed(
                        ranks=len({entry.rank for entry in entries}),  # several ranks may report one
                        partners=tuple(dict.fromkeys(partners)),
                        rank=first.rank,
                        round=first.round,
                        reason=first.reason,
                    ),
                ),
                ambiguity_group=(
                    (ComponentRef.of("host", beside), ComponentRef.of("route", host, beside)) if beside else ()
                ),
                next_step=advise.inspect_failed_host(ComponentRef.of("host", host)),
            )
        )
    return findings


def _host_of(run: Run, rank: int | None) -> str:
    """Host of a rank; empty for None."""
    return run.rank_host[rank] if rank is not None and rank >= 0 else ""

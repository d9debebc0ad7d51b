"""Evidence about hosts that stall, or prevent a launch or its connections, ranks that failed, and damaged payloads."""

from __future__ import annotations

from typing import TypedDict, Unpack

from fablint.model.names import fold, plural
from fablint.text import units
from fablint.text.sentence_kind import Names, Plain, Sentence

stalled_at_times = Sentence[str]("""several launches stalled between it and {partners}; trials of two hosts alone
    did not""")
stalled_pair = Plain("the two stalled with each other, but not with other hosts")
starts_at_times = Plain("launches with it start at times only, and preflight finds its network at fault")
no_start_in_company = Sentence[int]("""launches that include it do not start: not with {others:#other host},
    which start without it""")
starts_with = Sentence[Names]("with {hosts:fold} alone it starts")
no_start_alone = Plain("its own ranks alone do not start either")
starts_alone = Plain("its own ranks alone do")
no_start_of_pair = Sentence[int]("no launch of the two starts; each starts with {others:#other host}")
launcher = Sentence[str]("the launcher: {said}")
excluded_to_connect = Sentence[Names]("""without it the ranks of the others connect: not all messages between it and
    {hosts:fold} arrive""")


@Sentence
def stalled_host(
    *, partners: str, bytes: int | None = None, transport: str | None = None, control: str | None = None
) -> str:
    over = f" over {transport}" if transport not in (None, "mpi") else ""
    failure = (
        "its launches end before the first message"
        if bytes is None
        else f"messages of {units.size(bytes)}{over} do not arrive"
    )
    arriving = "" if control is None else f"; control messages over {control} arrive"
    return f"{failure}: the measurement stalled, and again with {partners}{arriving}"


@Sentence
def stall_reported(*, host: str, cause: str) -> str:
    return f"{host} reports: {cause}" if host else cause


@Sentence
def no_start(*, others: int, fails_with: Names, starts_with: Names) -> str:
    partner = fails_with[0] if len(fails_with) == 1 else f"one of {', '.join(fails_with)}"
    starts = f", with {fold(starts_with)}: yes" if starts_with else ""
    return f"launches that include it do not start (with {partner}: no{starts}); {plural(others, 'other host')} start"


class PingFields(TypedDict):
    """Fields of lost pings: hosts at both sides, and numbers of their pairs."""

    first: Names
    second: Names
    dead: int
    tried: int


def _lost(pings: PingFields) -> str:
    between = f"between {fold(pings['first'])} and {fold(pings['second'])}"
    return f"{pings['dead']} of {plural(pings['tried'], 'pair')} {between}"


@Sentence
def no_ping(**pings: Unpack[PingFields]) -> str:
    return f"no ping is answered: {_lost(pings)}"


@Sentence
def no_long_ping(*, bytes: int, passes: int, **pings: Unpack[PingFields]) -> str:
    return f"frames of {bytes} bytes are lost, of {passes} pass: {_lost(pings)}"


rank_died = Sentence[str]("a rank on it {reason} in the middle of the measurement")
damaged = Sentence[int, str, str]("{payloads:#damaged payload}; first: {row_name}, {where}")
damaged_host = Sentence[int, int, str, str]("{payloads:#damaged payload}, {partners} partners; {row_name}, {where}")
damaged_result = Sentence[int, str, str]("""{payloads:#damaged payload}, of results that several ranks contribute
    to; first: {row_name}, {where}""")


@Sentence
def rank_failed(*, ranks: int, partners: Names, rank: int | None = None, round: int | None = None, reason: str) -> str:
    subject = ("one of its ranks" if rank is None else f"rank {rank}") + ("" if round is None else f" in round {round}")
    reporter = f", reported by {partners[0]}" if partners[0] else ""
    return f"{plural(ranks, 'rank')} lost: {subject}{reporter}: {reason}"

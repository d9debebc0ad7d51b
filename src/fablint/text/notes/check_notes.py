"""Notes on a check: its levels, its budget, and what preflight reported."""

from __future__ import annotations

from typing import Literal, TypedDict, Unpack

from fablint.model.names import fold, plural
from fablint.text.sentence_kind import Names, NoteKind
from fablint.text.units import share_text

missing_levels = NoteKind[Names]("""levels planned and never begun: {levels:list}: not judged (fablint resume measures
    them)""")
unmeasured_level = NoteKind[str, str]("{level} was not measured: {reason}")
unmeasured_last_level = NoteKind[str]("{level} was not measured: the launches came to an end before")
excluded_after = NoteKind[str, Names]("excluded after {level}: {hosts:list}")
included_again = NoteKind[str, str]("""{host} failed {level} and was excluded, is healthy by later measurements, and was
    measured again""")
ended_early = NoteKind[str]("not all was measured: {reason}")
repeated_launch = NoteKind[str]("""a launch ended early, no host is at fault by what was tried, and it was repeated:
    {why}""")
counters_not_read = NoteKind[str]("the counters of the hosts could not be read again after the measurement: {reason}")


@NoteKind
def duration(
    *,
    total_s: float,
    measuring_s: float,
    asking_s: float,
    planning_s: float,
    starting_s: float,
    early_s: float,
    judging_s: float,
    launches: int,
) -> str:
    start = f"for {plural(launches, 'launch')}"
    if early_s >= 0.5:
        start += f" ({early_s:.0f} s more beside asking)"
    stages = {
        "measuring": measuring_s,
        "asking hosts": asking_s,
        "planning": planning_s,
        start: starting_s,
        "judging": judging_s,
    }
    other_s = total_s - sum(stages.values())  # files of the run, transfer of requests, follow-ups that were planned
    shown = [
        f"{seconds:.0f} s {what}"
        for what, seconds in {**stages, "between": other_s}.items()
        if seconds >= 0.5 or what == start
    ]
    return f"{total_s:.0f} s in all: {', '.join(shown)}"


@NoteKind
def undecided(*, ended: str, components: Names, more: int) -> str:
    return f"undecided when {ended}: {_listed(components, more)} (a larger --budget decides more)"


@NoteKind
def not_measured_again(*, ended: str, components: Names, more: int) -> str:
    return f"not measured again when {ended}: {_listed(components, more)} (a larger --budget decides more)"


def _listed(components: Names, more: int) -> str:
    return ", ".join([*components, *([f"{more:,} more"] if more else [])])


@NoteKind
def loss_not_reached(*, until: float, why: str, loss: float | None = None) -> str:
    asked = share_text(until)
    smallest = f"the smallest loss that would be named is {share_text(loss)}" if loss else "none is named"
    return f"--until {asked} is not reached: {smallest}; {why}"


@NoteKind
def undecided_paths(*, paths: Names, more: int) -> str:
    shown = ", ".join(paths) + (f" and {more} more" if more else "")
    return f"undecided: {shown}: slower than streams on a switch, and not measured alone (a larger --budget does)"


@NoteKind
def slow_login(*, hosts: Names, longest_s: float, usual_s: float) -> str:
    takes = f"takes {longest_s:.1f} s" if len(hosts) == 1 else f"takes up to {longest_s:.1f} s"
    return (
        f"a login to {fold(hosts)} over ssh {takes}, {usual_s:.1f} s on most hosts: each launch waits for it (look at"
        " name resolution, PAM and directory services there)"
    )


class PreflightFields(TypedDict):
    """The most frequent message of a check, its hosts, and how many hosts have other messages."""

    check: str
    message: str
    hosts: Names
    others: int


@NoteKind
def preflight_warning(**fields: Unpack[PreflightFields]) -> str:
    return f"preflight warns: {_summary(fields)}"


@NoteKind
def preflight_not_understood(*, meanwhile: Literal[True] | None = None, **fields: Unpack[PreflightFields]) -> str:
    return f"{_when(meanwhile)}preflight does not understand: {_summary(fields)}"


@NoteKind
def preflight_suppressed(
    *,
    check: str,
    component: str,
    message: str,
    outcome: str,
    until: str,
    reason: str,
    meanwhile: Literal[True] | None = None,
) -> str:
    suppressed = f"{outcome}, suppressed until {until}: {reason}"
    return f"{_when(meanwhile)}preflight: {check}: {component}: {message} ({suppressed})"


def _summary(fields: PreflightFields) -> str:
    more = f", and {plural(fields['others'], 'host')} with other values" if fields["others"] else ""
    return f"{fields['check']}: {fields['message']} ({fold(fields['hosts'])}{more})"


def _when(meanwhile: Literal[True] | None) -> str:
    return "while the hosts were measured: " if meanwhile else ""

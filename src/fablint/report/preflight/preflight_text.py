"""What preflight found: for a terminal only what is wrong, grouped, with hosts folded; for programs all of it."""

from __future__ import annotations

import json
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fablint.model.names import fold, plural
from fablint.model.preflight_results import NETWORK, Fitness, Outcome, Result, hosts_by_result
from fablint.report.terminal_colours import coloured
from fablint.text import actions as advise, units
from fablint.text.actions import advice
from fablint.text.fitness_findings import findings, suppressed_findings, unseen_network
from fablint.text.notes import note_text
from fablint.text.sentences import finding_facts

WRONG = (Outcome.FAIL, Outcome.WARN, Outcome.ERROR)
_SHOWN = (*WRONG, Outcome.SUPPRESSED)
_STYLES = {Outcome.FAIL: "bold red", Outcome.WARN: "bold yellow", Outcome.ERROR: "bold cyan", Outcome.SUPPRESSED: "dim"}
_REPAIRABLE = (Outcome.FAIL, Outcome.WARN)
_MESSAGES = 4  # of a part that have a line each; more messages share a line
_LINES = 8  # of a check
_FOLDED = 100  # letters of a list of hosts: what is longer is cut, and counted
_REASON = 40  # letters of a reason why something was skipped
_REASON_LINES = 3
_INDENT = " " * 7
_quoted = json.encoder.encode_basestring_ascii
_encoded = json.JSONEncoder(separators=(",", ":"), default=str).encode


def fitness_json(level: str, fitness: Fitness) -> Iterator[str]:
    """The result as JSON (docs/how-to/preflight.md), piece by piece: of 10,000 hosts it is a gigabyte.

    What was found is indented; each of the results, which are more than anyone reads, is one line.
    """
    head, end = json.dumps(_facts(level, fitness), indent=2, default=str), "\n}"
    yield f'{head[: -len(end)]},\n  "results": ['
    between = "\n"
    for result in fitness.results:
        yield f"{between}    {_row(result)}"
        between = ",\n"
    yield f"\n  ]{end}\n"


def _row(result: Result) -> str:
    """A result as JSON. It is put together here: a general encoder takes three times as long, for millions of them."""
    message = _quoted(result.message) if result.message else '""'
    more = f',"suppressed":{_encoded(result.suppressed._asdict())}' if result.suppressed else ""
    return (
        f'{{"check":{_quoted(result.check)},"host":{_quoted(result.host)},"target":{_quoted(result.target)},'
        f'"outcome":"{result.outcome.value}","message":{message},"value":{_figure(result.value)},'
        f'"expected":{_figure(result.expected)},"unit":{_quoted(result.unit)},"cause":{_quoted(result.cause)}{more}}}'
    )


def _figure(value: object) -> str:
    if value is None:
        return "null"
    if type(value) is int:
        return repr(value)
    return _quoted(value) if type(value) is str else _encoded(value)


def _facts(level: str, fitness: Fitness) -> dict[str, Any]:
    """All but the results themselves."""
    return {
        "format": 1,
        "exit_code": fitness.exit_code,
        "level": level,
        "hosts": list(fitness.hosts),
        "silent": dict(fitness.silent),
        "unfit": dict(fitness.unfit),
        "not_examined": dict(fitness.not_examined),
        "not_pinged": fitness.not_pinged,
        "findings": [finding_facts(one) for one in findings(fitness)],
        "suppressed": [one.facts() for one in suppressed_findings(fitness)],
        "notes": [note_text(note) for note in fitness.notes],
    }


def fitness_table(fitness: Fitness, width: int = 80, *, color: bool = False) -> str:
    """Return what is wrong with which hosts as text, worst first.

    At the end are the number of hosts that are fit, and what could not be examined.

    Parameters
    ----------
    fitness
        Results of all checks.
    width
        Characters of a line.
    color
        Whether states are coloured.
    """
    problems = _problems(fitness)
    column = max((len(one.check) for one in problems), default=0)
    lines: list[str] = []
    with_remedy: set[str] = set()
    for problem in problems:
        for words in problem.lines:
            lines += _paint(
                _wrap(f"{problem.outcome:<6} {problem.check:<{column}}  {words}", width), problem.outcome, color
            )
        if problem.remedy and problem.check not in with_remedy:
            lines += _wrap(f"{_INDENT}remedy: {problem.remedy}", width)
            with_remedy.add(problem.check)
    notes = [line for note in fitness.notes for line in _wrap(note_text(note), width)]
    return "\n".join([*lines, *([""] if lines else []), *notes, *_summary(fitness, width, brief=not lines)]) + "\n"


def _wrap(line: str, width: int) -> list[str]:
    return textwrap.wrap(units.printable(line), width, subsequent_indent=_INDENT, break_on_hyphens=False)


def _paint(lines: list[str], outcome: Outcome, color: bool) -> list[str]:
    if not color:
        return lines
    head = lines[0].removeprefix(outcome)
    return [coloured(outcome, _STYLES[outcome]) + head, *lines[1:]]


# ------------------------------------------------------------------------------------------------ what is wrong


class _Problem(NamedTuple):
    """What a check says is wrong, with one outcome."""

    outcome: Outcome
    check: str
    lines: Sequence[str]
    remedy: str


def _problems(fitness: Fitness) -> list[_Problem]:
    """All that is wrong, worst first; within an outcome in the order of the checks."""
    results_by_outcome: dict[tuple[Outcome, str], list[Result]] = defaultdict(list)
    common: dict[str, list[Result]] = defaultdict(list)
    for item in fitness.results:
        if item.outcome in WRONG and item.cause:
            common[item.cause].append(item)
        elif item.suppressed is not None:
            results_by_outcome[item.outcome, item.check].append(
                item._replace(message=f"{item.message} ({item.suppressed.words})")
            )
        elif item.outcome in WRONG and item.check != NETWORK:  # the summary begins with that
            results_by_outcome[item.outcome, item.check].append(item)
    problems = [_of_cause(cause, results, fitness) for cause, results in common.items()]
    problems += [
        _Problem(outcome, check, _lines(results), _remedy(results, fitness) if outcome in _REPAIRABLE else "")
        for (outcome, check), results in results_by_outcome.items()
    ]
    silent: dict[str, list[str]] = defaultdict(list)
    for host, why in fitness.silent.items():
        silent[why].append(host)
    if silent:
        lines = [f"{shown_hosts(hosts)}: {why}" for why, hosts in silent.items()]
        problems.insert(0, _Problem(Outcome.FAIL, "no answer", _first(lines), advice(advise.log_in())))
    return sorted(problems, key=lambda one: _SHOWN.index(one.outcome))


def _remedy(results: Iterable[Result], fitness: Fitness) -> str:
    """Return what to do about the results of a check; several remedies where the results have several causes."""
    return "; ".join(dict.fromkeys(map(fitness.remedy, results)))


def _of_cause(cause: str, results: Sequence[Result], fitness: Fitness) -> _Problem:
    """One line for all that hosts with a common cause have: the gravest, and which other checks say something."""
    worst = min(results, key=lambda one: WRONG.index(one.outcome))
    checks = dict.fromkeys(one.check for one in results)
    others = f"; also {', '.join(check for check in checks if check != worst.check)}" if len(checks) > 1 else ""
    where = _where((one.host for one in results), fold({one.target for one in results if one.check == worst.check}))
    line = f"{where}: {worst.message}{others}: common to {cause}"
    return _Problem(worst.outcome, worst.check, [line], fitness.remedy(worst))


def _lines(results: Iterable[Result]) -> list[str]:
    """`nid[001003,001007] hsn0: MTU 1500, 14 others 9000`: hosts and parts of which the same is said share a line."""
    targets: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    for (_, target, _, message), hosts in hosts_by_result(results).items():
        targets[tuple(hosts), message].append(target)
    parts: dict[tuple[str, ...], list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for (names, message), lines in targets.items():
        parts[tuple(lines)].append((message, names))
    return _first([line for target_names, messages in parts.items() for line in _of_part(fold(target_names), messages)])


def _of_part(target: str, hosts_by_message: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    """A line for each message; one for all of them where they are many, as with counters."""
    if len(hosts_by_message) <= _MESSAGES:
        return [f"{_where(hosts, target)}: {message}" for message, hosts in hosts_by_message]
    all_hosts = [host for _, hosts in hosts_by_message for host in hosts]
    messages = [message for message, _ in sorted(hosts_by_message, key=lambda one: -len(one[1]))]
    return [f"{_where(all_hosts, target)}: {'; '.join(messages[:_MESSAGES])}; and {len(messages) - _MESSAGES} more"]


def _where(hosts: Iterable[str], target: str) -> str:
    return f"{shown_hosts(hosts)} {target}".rstrip()


def _first(lines: list[str]) -> list[str]:
    left = len(lines) - _LINES + 1
    return lines if left <= 1 else [*lines[: _LINES - 1], f"... and {left} more (--json has all)"]


def shown_hosts(names: Iterable[str]) -> str:
    """Hosts folded; where that is long, its beginning and how many they are."""
    names = list(dict.fromkeys(names))
    folded = fold(names)
    return folded if len(folded) <= _FOLDED else f"{units.shorten(folded, _FOLDED)} ({plural(len(names), 'host')})"


# ------------------------------------------------------------------------------------------------ summary


def _summary(fitness: Fitness, width: int, *, brief: bool) -> list[str]:
    """Return what was not looked at, how many hosts are fit, what the checks came to, why some were skipped."""
    total, unfit = len(fitness.hosts), fitness.unfit
    unclear = {one.host for one in fitness.results if one.outcome is Outcome.ERROR} & set(fitness.hosts) - set(unfit)
    unseen = unclear & set(fitness.not_examined)
    unclear -= unseen
    words = f"{plural(total, 'host')}: {total - len(unfit) - len(unclear) - len(unseen):,} fit"
    words += f", {len(unfit):,} unfit ({shown_hosts(unfit)})" if unfit else ""
    words += f", {len(unseen):,} not examined" if unseen else ""
    words += f", {len(unclear):,} unclear ({shown_hosts(unclear)})" if unclear else ""
    outcomes = _by_check(fitness)
    unlooked = [line for part in unseen_network(fitness, shown_hosts) for line in _wrap(f"network: {part}", width)]
    if not outcomes:
        return unlooked + _wrap(words, width)
    skipped = [check for check, outcomes_of_check in outcomes.items() if set(outcomes_of_check) == {Outcome.SKIP}]
    wrong = sum(bool(set(outcomes_of_check) & set(_SHOWN)) for outcomes_of_check in outcomes.values())
    everywhere = sum(set(outcomes_of_check) == {Outcome.PASS} for outcomes_of_check in outcomes.values())
    counts = {
        f"passed on every host{' that answered' if fitness.silent else ''}": everywhere,
        "on some": len(outcomes) - everywhere - wrong - len(skipped),
        "found something": wrong,
        "skipped": len(skipped),
    }
    counted = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    lines = _wrap(f"{words}; {plural(len(outcomes), 'check')}: {counted}", width)
    return unlooked + lines + _why_skipped(fitness, skipped, width, 1 if brief else _REASON_LINES)


def _by_check(fitness: Fitness) -> Mapping[str, Counter[Outcome]]:
    """Return how often each check came to which outcome; without those that had nothing to look at."""
    outcomes: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for result in fitness.results:
        outcomes[result.check][result.outcome] += 1
    return outcomes


def _why_skipped(fitness: Fitness, skipped: Sequence[str], width: int, limit: int) -> list[str]:
    """Reasons that have room in so many lines, those of most checks first."""
    said: dict[str, Counter[str]] = {check: Counter() for check in skipped}
    for result in fitness.results:
        if result.check in said:
            said[result.check][result.message] += 1
    counted = _reasons([messages.most_common(1)[0][0] for messages in said.values()]).most_common()
    words = [units.shorten(reason, _REASON) + (f" ({count})" if count > 1 else "") for reason, count in counted]
    for kept in range(len(words), 0, -1):
        rest = [units.plural(len(words) - kept, "more reason")] if kept < len(words) else []
        lines = _wrap("skipped: " + "; ".join([*words[:kept], *rest]), width)
        if len(lines) <= limit or kept == 1:
            return lines
    return []


def _reasons(messages: Sequence[str]) -> Counter[str]:
    """Return how many share a reason: `MTU 1500; no majority` and `lspci: not installed` count by their ends."""
    ends = [[message, message.rpartition("; ")[2], message.rpartition(": ")[2]] for message in messages]
    shared = Counter(end for ends_of_message in ends for end in dict.fromkeys(ends_of_message))
    return Counter(max(ends_of_message, key=lambda end: shared[end]) for ends_of_message in ends)

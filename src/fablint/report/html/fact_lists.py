"""Every fact of a run as lines of a list, and the port counters that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fablint.model import Run
from fablint.model.facts.json_objects import document_of

MOST_COUNTERS = 200
_SHOWN = frozenset({"environment", "counters", "simulated", "hosts", "command"})  # elsewhere on the page
_MADE_UP = frozenset({"started", "started_epoch_s"})  # of a simulated run
_LONGEST = 400  # characters of a value


def all_facts(run: Run) -> list[tuple[str, str]]:
    """Names and values of the facts of the run and of its rows; equal values of ranks or hosts stand once."""
    hidden = _SHOWN | (_MADE_UP if run.facts.simulated is not None else frozenset())
    facts = [*_flat("", {key: value for key, value in document_of(run.facts).items() if key not in hidden})]
    for row in run.rows:
        facts += [
            (f"row {row.name}: {name}", words) for name, words in _flat("", document_of(row.facts) | {"counters": None})
        ]
    return [(name, words) for name, words in facts if words]


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        same = list(value.values())
        if len(same) > 1 and all(one == same[0] for one in same) and isinstance(same[0], list | dict):
            yield from _flat(f"{name} of each of {len(same)}", same[0])
            return
        for key, inner in value.items():
            yield from _flat(f"{name} {key}".strip(), inner)
    elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        for number, inner in enumerate(value[:50]):
            yield from _flat(f"{name} {number + 1}", inner)
    elif isinstance(value, list | tuple):
        words = list(dict.fromkeys(map(str, value)))
        text = (
            f"{words[0]} ({len(value):,} times)" if len(words) == 1 and len(value) > 1 else ", ".join(map(str, value))
        )
        yield name, text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(value):,} values)"
    elif value is not None and value != "":
        yield name, str(value)


def changed_counters(run: Run) -> list[tuple[str, str, str]]:
    """Host and NIC, counter, and by how much it grew while the run was measured; those of traffic are left out."""
    before, after = run.facts.counters.before or {}, run.facts.counters.after or {}
    lines = [
        (f"{host} {nic}", name, value - old)
        for host, nics in after.items()
        for nic, values in nics.items()
        for name, value in values.items()
        if isinstance(old := before.get(host, {}).get(nic, {}).get(name), int) and value > old and _is_of_errors(name)
    ]
    lines.sort(key=lambda line: -line[2])
    return [(where, name, f"{change:,}") for where, name, change in lines[:MOST_COUNTERS]]


def _is_of_errors(name: str) -> bool:
    words = ("err", "drop", "discard", "retr", "timeout", "pause", "wait", "cnp", "ecn", "corrupt", "replay", "recover")
    return any(word in name.lower() for word in (*words, "uncor", "down", "congest", "nack", "rnr"))

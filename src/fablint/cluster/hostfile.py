"""Files that list hosts: Open MPI's `host slots=N`, MPICH's `host:N`, PBS's one line for each rank, plain names.

A host may be an IPv6 address: `2001:db8::1`, with a count `[2001:db8::1]:4`. A line that ends with a backslash
continues on the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fablint.cluster.host_names import address, unfold
from fablint.errors import UsageError
from fablint.model.host_name import unified

_SLOTS = re.compile(r"(?<![\w-])(?:slots|cpus?|count) *= *(\S*)")  # and not `max-slots=8`
_SETTING = re.compile(r"\S+ *= *\S*")
_LINE = re.compile(r"(?P<name>\[[^\]\s]*:[^\]\s]*\]|\S*:\S*:[^\s:]*|[^\s:]+)(?P<count>:\S*)?(?P<settings>\s.*)?")
_COMMENT = re.compile(r"#|//")
_HINT = "write one host per line: `n001`, `n001 slots=4` or `n001:4`"


def read_hostfile(path: Path) -> dict[str, int]:
    """Hosts in the order of the file, with the number of ranks for each; 0 if the file does not state it.

    A plain name on several lines has as many ranks, as in MPI launchers and PBS. `n1` and `n1.site.org` are one host,
    with the first of these names, unless the file has `n1` in another domain as well. A host with `slots=0` gets no
    rank, as in Open MPI: it is none of the hosts.

    Raises
    ------
    UsageError
        No such file, a line without a host, a host twice with counts.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise UsageError(f"cannot read {path}: {reason}", "give a file with one host per line") from None
    return parse_hostfile(text, str(path))


def parse_hostfile(text: str, source: str) -> dict[str, int]:
    """Hosts and ranks as in `read_hostfile`, from the text of a file; `source` names it in errors.

    Raises
    ------
    UsageError
        A line does not name hosts with a number of slots, or a host appears twice.
    """
    plain: dict[str, int] = {}
    counted: dict[str, int] = {}
    order: dict[str, None] = {}
    entries = [(where, *_entry(where, line)) for where, line in _lines(text, source)]
    spelled = unified(host for _, names, _ in entries for host in names)
    for where, names, count in entries:
        for host in map(spelled.__getitem__, names):
            if host in counted or (count is not None and host in order):
                raise UsageError(f"{where}: {host} appears twice", "give every host once, with all its slots")
            order[host] = None
            if count is None:
                plain[host] = plain.get(host, 0) + 1
            else:
                counted[host] = count
    repeated = any(lines > 1 for lines in plain.values())
    excluded = {host for host, count in counted.items() if count == 0}
    return {
        host: counted.get(host, plain[host] if repeated and host in plain else 0)
        for host in order
        if host not in excluded
    }


def _lines(text: str, source: str) -> Iterator[tuple[str, str]]:
    """Yield the lines without comments, each with its place; continued lines as one."""
    start, parts = 0, list[str]()
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        bare = _COMMENT.split(line, maxsplit=1)[0].strip()
        start = start if parts else number
        parts.append(bare.rstrip("\\"))
        if bare.endswith("\\") and number < len(lines):
            continue
        if joined := " ".join(parts).strip():
            yield f"{source} line {start}", joined
        parts = []


def _entry(where: str, line: str) -> tuple[tuple[str, ...], int | None]:
    """Hosts of a line, and its count."""
    parts = _LINE.fullmatch(line)
    if parts is None:
        raise UsageError(f"{where}: '{line[:80]}' names no host", _HINT)
    settings = parts["settings"] or ""
    slots = _SLOTS.search(settings)
    written = parts["count"][1:] if parts["count"] else slots[1] if slots else None
    if written is not None and not (written.isascii() and written.isdigit() and int(written[:7]) < 10**6):
        raise UsageError(f"{where}: '{written}' is not a number of slots", _HINT)
    if _SETTING.sub("", settings).strip():
        raise UsageError(f"{where}: '{line[:80]}' is more than one host", _HINT)
    try:
        hosts = _hosts(parts["name"])
    except ValueError as error:
        raise UsageError(f"{where}: {error}", _HINT) from None
    if not hosts:
        raise UsageError(f"{where}: '{line[:80]}' names no host", _HINT)
    return hosts, None if written is None else int(written)


def _hosts(name: str) -> tuple[str, ...]:
    return (address(name),) if ":" in name else unfold(name)

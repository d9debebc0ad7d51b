"""Snapshots: how they are taken on hosts, read from what the hosts print, kept in files."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fablint.errors import UsageError
from fablint.model import Answer
from fablint.snapshot.snapshot import Output, Snapshot

LIMITS_S = {"quick": 1.8, "full": 90.0, "fabric": 90.0}  # of a host, by level
WINDOWS_S = {"quick": 0.5, "full": 5.0, "fabric": 5.0}  # between two readings of its counters

_LONGEST = 100  # letters of what a host said instead
_PIECE = re.compile(r"fablint:(.*)\.\s*$")
_LARGEST = 1 << 26  # bytes of one snapshot
_MOST_BYTES = 1 << 30  # of a file of snapshots


@dataclass(frozen=True)
class Heard:
    """What came back from hosts: their snapshots, as documents and understood, and why others are silent."""

    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


def heard(answers: Iterable[Answer]) -> Heard:
    """The snapshots in the answers of hosts."""
    documents: dict[str, Mapping[str, Any]] = {}
    silent: dict[str, str] = {}
    for answer in answers:
        document = unpacked(answer.output)
        if document is None:
            silent[answer.host] = answer.error or _instead(answer.output)
        else:
            documents[answer.host] = {**document, "host": answer.host}
    return Heard(documents, {host: snapshot_of(document) for host, document in documents.items()}, silent)


def _instead(output: str) -> str:
    """What a host printed instead of an answer."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"it printed no facts, but {lines[-1][:_LONGEST]!r}" if lines else "it printed nothing"


def collector(level: str, sysroot: Path | None = None) -> tuple[list[str], str]:
    """The command that takes a snapshot on a host, and what it wants on its stdin: the program itself."""
    text = (Path(__file__).parent / "collector.py").read_text(encoding="utf-8")
    where = [str(sysroot)] if sysroot else []
    return ["python3", "-", level, f"{WINDOWS_S[level]:g}", f"{LIMITS_S[level]:g}", *where], text


def unpacked(printed: str) -> Mapping[str, Any] | None:
    """The snapshot in what a host printed, as a document; what others print around it is left out."""
    packed = "".join(piece for line in printed.splitlines() for piece in _PIECE.findall(line))
    try:
        inflate = zlib.decompressobj()
        document = json.loads(inflate.decompress(base64.b64decode(packed, validate=True), _LARGEST))
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        return None
    return document if _is_snapshot(document) else None


def snapshot_of(document: Mapping[str, Any]) -> Snapshot:
    """A document as a snapshot. What is not as it should be is left out."""
    names = _mapping(document.get("names"))
    log = _mapping(document.get("kernel_log"))
    return Snapshot(
        host=str(document.get("host", "")),
        time=_figure(document.get("time")),
        window_s=_figure(document.get("window_s")),
        level=str(document.get("level", "quick")),
        root=document.get("root") is True,
        kernel=str(document.get("kernel", "")),
        files=_mapping(document.get("files")),
        counters=_mapping(document.get("counters")),
        later=_mapping(document.get("later")),
        links={key: value for key, value in _mapping(document.get("links")).items() if isinstance(value, str)},
        folders={
            key: [name for name in value if isinstance(name, str)]
            for key, value in _mapping(document.get("folders")).items()
            if isinstance(value, list)
        },
        commands={name: _output(said) for name, said in _mapping(document.get("commands")).items()},
        kernel_log=_output({**log, "status": 0} if "output" in log else log),
        names_of={key: value if isinstance(value, str) else None for key, value in _mapping(names.get("of")).items()},
        addresses_of={
            key: [one for one in value if isinstance(one, str)]
            for key, value in _mapping(names.get("to")).items()
            if isinstance(value, list)
        },
        shared_memory={
            key: value for key, value in _mapping(document.get("shared_memory")).items() if isinstance(value, int)
        },
    )


def save_snapshots(documents: Iterable[Mapping[str, Any]], path: Path) -> None:
    """One document a line; packed where the name ends with `.gz`."""
    text = "".join(json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n" for document in documents)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def load_snapshots(path: Path) -> list[Mapping[str, Any]]:
    """The documents in a file. Raises UsageError where it holds none."""
    hint = "give a file that fablint preflight --save wrote"
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path}: too large for snapshots", hint)
        raw = path.read_bytes()
        with gzip.open(path) if raw[:2] == b"\x1f\x8b" else path.open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}", hint) from error
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            document = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            raise UsageError(f"{path}, line {number}: is no snapshot", hint) from None
        if document is None:
            continue
        if not _is_snapshot(document):
            raise UsageError(f"{path}, line {number}: is no snapshot", hint)
        found.append(document)
    if not found:
        raise UsageError(f"{path}: is empty", hint)
    return found


def _is_snapshot(document: object) -> bool:
    return isinstance(document, dict) and document.get("fablint_snapshot") == 1


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _figure(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _output(said: object) -> Output:
    if not isinstance(said, dict):
        return Output(error="is no output")
    text, error, status = said.get("output"), said.get("error"), said.get("status")
    return Output(
        text if isinstance(text, str) else "",
        error if isinstance(error, str) else "",
        status if isinstance(status, int) else None,
    )

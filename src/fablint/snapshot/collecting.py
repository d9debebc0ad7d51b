"""Collection of snapshots: the command for hosts, the parser of its output, and files of snapshots."""

from __future__ import annotations

import base64
import binascii
import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, TypeGuard

from fablint.errors import UsageError
from fablint.model import Answer
from fablint.model.names import plain
from fablint.snapshot.host_snapshot import Output, Snapshot
from fablint.snapshot.sharing import Sharing, parsed, written
from fablint.system import no_collection
from fablint.system.written_files import is_standard_output, opened_into, private_file, replaced

AIMS_S = {"quick": 1.7, "counters": 1.7, "full": 90.0, "fabric": 90.0}  # of a host, by level: time limit for programs
LIMITS_S = {"quick": 10.0, "counters": 10.0, "full": 100.0, "fabric": 90.0}  # time limit of the collector
RETRY_FACTOR = 3.0  # of the time limits, for a host with an incomplete snapshot
WINDOWS_S = {"quick": 0.5, "counters": 0.0, "full": 5.0, "fabric": 0.0}  # between two readings of its counters

# Isolated: without -I, `python3 -` imports modules from the current folder and from PYTHONPATH before its own, so that
# root would execute a base64.py of another user in the current folder.
PYTHON = ("python3", "-I", "-")  # executes stdin

_OWN_IMPORTS = re.compile(r"^from fablint\.[^(\n]*(?:\([^)]*\))?\n", re.MULTILINE)
_PREFIXES = {
    "collector": ("machine", "log_records", "tuning", "speed_probe", "journal", "loopback_tests"),
    "pinger": ("machine",),
}  # modules that precede a program, in order
_HINT = "use a file written by fablint preflight --save"
_LONGEST = 100  # characters of an unexpected output
_PIECE = re.compile(r"fablint:(.*)\.\s*$")
_LARGEST = 1 << 26  # bytes of one snapshot
_MOST_SECONDS = 1e12
_MOST_BYTES = 1 << 36  # of a file of snapshots: more than for 100,000 hosts
_PACKED = 1  # gzip level: six times as fast as the default, and a fifth larger


@dataclass(frozen=True)
class CollectedSnapshots:
    """Snapshots of hosts, as documents and parsed, and the reasons why other hosts are silent."""

    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    login_s: Mapping[str, float] = field(default_factory=dict)  # duration of the login by host, where it is known


def read_answers(answers: Iterable[Answer]) -> CollectedSnapshots:
    """Parse the snapshots in the answers of hosts."""
    documents: dict[str, Mapping[str, Any]] = {}
    silent: dict[str, str] = {}
    login_s: dict[str, float] = {}
    sharing = Sharing()
    with no_collection():
        for answer in answers:
            if answer.login_s is not None:
                login_s[answer.host] = answer.login_s
            document = unpack(answer.output)
            if document is None:
                silent[answer.host] = answer.error or _instead(answer.output)
            else:
                documents[answer.host] = sharing.of({**document, "host": answer.host})
        return CollectedSnapshots(
            documents, {host: snapshot_of(document) for host, document in documents.items()}, silent, login_s
        )


def with_nics(collected: CollectedSnapshots, names: Sequence[str]) -> CollectedSnapshots:
    """Return the snapshots with the NICs `names` marked as the NICs of the fabric."""
    documents = {host: {**document, "nics": list(names)} for host, document in collected.documents.items()}
    snapshots = {host: replace(one, nics=tuple(names)) for host, one in collected.snapshots.items()}
    return replace(collected, documents=documents, snapshots=snapshots)


def _instead(output: str) -> str:
    """Describe the output of a host without a snapshot."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"no snapshot in its output: {lines[-1][:_LONGEST]!r}" if lines else "no output"


def command_to_collect(
    level: str, sysroot: Path | None = None, managed: str = "", times: float = 1.0
) -> tuple[list[str], str]:
    """Return the command that takes a snapshot on a host.

    Parameters
    ----------
    level
        Level of preflight. At `counters` no programs are run. At `fabric` the Slingshot fabric manager is queried about
        `managed`.
    sysroot
        Folder that replaces `/`.
    managed
        NIDs and NICs, such as `1001-1016:hsn0,hsn1`.
    times
        Factor of the time limits.

    Returns
    -------
    tuple of (list of str, str)
        Words of the command, and its standard input: the program itself.
    """
    where = [str(sysroot or "/"), *filter(None, [managed])] if sysroot or managed else []
    limits = f"{times * AIMS_S[level]:g}:{times * LIMITS_S[level]:g}"
    return [*PYTHON, level, f"{WINDOWS_S[level]:g}", limits, *where], program("collector")


def program(name: str) -> str:
    """Return the source of the program `fablint.snapshot.agent.NAME` with the modules that it imports inserted.

    It runs on hosts without fablint, from Python 3.6 on.
    """
    texts = [
        (Path(__file__).parent / "agent" / f"{item}.py").read_text(encoding="utf-8")
        for item in (*_PREFIXES[name], name)
    ]
    return "".join(_OWN_IMPORTS.sub("", text) for text in texts)


def unpack(printed: str, mark: str = "fablint_snapshot") -> Mapping[str, Any] | None:
    """Return the document with the mark in an output of a host; other lines are skipped. None if there is none."""
    packed = "".join(piece for line in printed.splitlines() for piece in _PIECE.findall(line))
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(base64.b64decode(packed, validate=True), _LARGEST)
        document = parsed(text) if inflate.eof else None  # otherwise truncated, or too large
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        return None
    return document if _is_marked(document, mark) else None


def snapshot_of(document: Mapping[str, Any]) -> Snapshot:
    """Convert a document to a snapshot. Malformed values are skipped."""
    names = _mapping(document.get("names"))
    log = _mapping(document.get("kernel_log"))
    return Snapshot(
        host=plain(document.get("host", "")),
        time=_figure(document.get("time")),
        window_s=_figure(document.get("window_s")),
        level=_text(document.get("level")) or "quick",
        root=document.get("root") is True,
        kernel=_text(document.get("kernel")),
        files=_mapping(document.get("files")),
        counters=_mapping(document.get("counters")),
        later=_mapping(document.get("later")),
        links=_texts(document.get("links")),
        folders={
            key: [name for name in value if isinstance(name, str)]
            for key, value in _mapping(document.get("folders")).items()
            if isinstance(value, list)
        },
        commands={name: _output(value) for name, value in _mapping(document.get("commands")).items()},
        kernel_log=_output(log if "error" in log else {**log, "status": 0}),
        names_of={key: value if isinstance(value, str) else None for key, value in _mapping(names.get("of")).items()},
        addresses_of={
            key: [one for one in value if isinstance(one, str)]
            for key, value in _mapping(names.get("to")).items()
            if isinstance(value, list)
        },
        shared_memory={
            key: value for key, value in _mapping(document.get("shared_memory")).items() if isinstance(value, int)
        },
        nics=tuple(filter(None, map(plain, nics))) if isinstance(nics := document.get("nics"), list) else (),
        reach=_mapping(document.get("reach")),
        incomplete=_text(document.get("incomplete")),
    )


def save_snapshots(documents: Iterable[Mapping[str, Any]], path: Path, *, private: bool = False) -> None:
    """Write snapshots into a file.

    Parameters
    ----------
    documents
        Snapshots, one line each.
    path
        File to write, compressed if its name ends with `.gz`.
    private
        Only the owner can read the file. This also holds if a snapshot was taken by root, since it contains facts that
        are visible to root only, such as the kernel log. Otherwise the umask decides.
    """
    documents = list(documents)
    private = private or any(document.get("root") is True for document in documents)
    opened: AbstractContextManager[IO[bytes]]
    if is_standard_output(path):
        opened = opened_into(path)
    elif private and not _is_special_file(path):
        opened = private_file(path)
    else:
        opened = replaced(path, 0o600 if private else None)
    with opened as stream:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=_PACKED) as packed:
                _write(documents, packed)
        else:
            _write(documents, stream)


def _write(documents: Iterable[Mapping[str, Any]], stream: IO[bytes] | gzip.GzipFile) -> None:
    for document in documents:
        stream.write(written(document))
        stream.write(b"\n")


def _is_special_file(path: Path) -> bool:
    """Tell whether a path is a pipe or device, such as /dev/stdout, of this user or root, and must not be replaced."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return not stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid())


def load_snapshots(path: Path) -> list[Mapping[str, Any]]:
    """Read the documents in a file. Raises UsageError for an unreadable or empty file."""
    snapshots: list[Mapping[str, Any]] = []
    sharing = Sharing()
    try:
        with no_collection():
            for number, line in enumerate(_lines(path), 1):
                if line.strip():
                    snapshots.append(sharing.of(_document(line, f"{path}, line {number}")))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}", _HINT) from error
    if not snapshots:
        raise UsageError(f"{path}: the file is empty", _HINT)
    return snapshots


def _document(line: bytes, where: str) -> dict[str, Any]:
    """Parse a snapshot with the name of its host. Raises UsageError for other lines."""
    try:
        document = parsed(line)
    except (ValueError, RecursionError):
        document = None
    if not _is_marked(document, "fablint_snapshot") or not plain(document.get("host", "")):
        raise UsageError(f"{where}: not a snapshot", _HINT)
    return document


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, compressed or not. Raises UsageError for a file that is too large."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    read = 0
    with gzip.open(path) if packed else path.open("rb") as stream:
        while line := stream.readline(_LARGEST):
            read += len(line)
            if len(line) == _LARGEST or read > _MOST_BYTES:
                raise UsageError(f"{path}: too large for snapshots", _HINT)
            yield line


def _is_marked(document: object, mark: str) -> TypeGuard[dict[str, Any]]:
    return isinstance(document, dict) and document.get(mark) == 1


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _figure(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return float(value) if abs(value) < _MOST_SECONDS else 0.0  # also 0 for NaN


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> Mapping[str, str]:
    """Drop values that are not texts; return the same object if all are texts, since snapshots share it."""
    mapping = _mapping(value)
    if all(isinstance(one, str) for one in mapping.values()):
        return mapping
    return {key: one for key, one in mapping.items() if isinstance(one, str)}


def _output(value: object) -> Output:
    if not isinstance(value, dict):
        return Output(error="malformed output")
    text, error, status = value.get("output"), value.get("error"), value.get("status")
    return Output(_text(text), _text(error), status if isinstance(status, int) else None)

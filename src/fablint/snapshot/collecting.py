"""Snapshots: how they are taken on hosts, read from what the hosts print, kept in files."""

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
from fablint.snapshot.host_snapshot import Output, Snapshot
from fablint.snapshot.sharing import Sharing, parsed, written
from fablint.system import no_collection, private_file
from fablint.text.names import plain

AIMS_S = {"quick": 1.7, "full": 90.0, "fabric": 90.0}  # of a host, by level: programs are waited for no longer
LIMITS_S = {"quick": 10.0, "full": 100.0, "fabric": 90.0}  # then it ends, whatever was not read
MORE = 3.0  # times as long, for a host that was not read as a whole
WINDOWS_S = {"quick": 0.5, "full": 5.0, "fabric": 0.0}  # between two readings of its counters

# Isolated: without -I, `python3 -` imports modules from the current folder and from PYTHONPATH before its own, so that
# root would execute the base64.py of the user in whose folder it stands.
PYTHON = ("python3", "-I", "-")  # a program on its stdin

_OWN_IMPORTS = re.compile(r"^from fablint\.[^(\n]*(?:\([^)]*\))?\n", re.MULTILINE)
_BELOW = {
    "collector": ("machine", "tuning", "speed_probe", "journal"),
    "pinger": ("machine",),
}  # what a program builds on, in order
_HINT = "give a file that fablint preflight --save wrote"
_LONGEST = 100  # letters of what a host said instead
_PIECE = re.compile(r"fablint:(.*)\.\s*$")
_LARGEST = 1 << 26  # bytes of one snapshot
_REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_MOST_SECONDS = 1e12
_MOST_BYTES = 1 << 36  # of a file of snapshots: more than 100,000 hosts have
_PACKED = 1  # gzip's level: six times as fast as the usual one, and a fifth larger


@dataclass(frozen=True)
class CollectedSnapshots:
    """What came back from hosts: their snapshots, as documents and understood, and why others are silent."""

    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


def read_answers(answers: Iterable[Answer]) -> CollectedSnapshots:
    """The snapshots in the answers of hosts."""
    documents: dict[str, Mapping[str, Any]] = {}
    silent: dict[str, str] = {}
    sharing = Sharing()
    with no_collection():
        for answer in answers:
            document = unpack(answer.output)
            if document is None:
                silent[answer.host] = answer.error or _instead(answer.output)
            else:
                documents[answer.host] = sharing.of({**document, "host": answer.host})
        return CollectedSnapshots(
            documents, {host: snapshot_of(document) for host, document in documents.items()}, silent
        )


def with_nics(known: CollectedSnapshots, names: Sequence[str]) -> CollectedSnapshots:
    """The same snapshots, of whose hosts the NICs with these `names` are the fabric's."""
    documents = {host: {**document, "nics": list(names)} for host, document in known.documents.items()}
    snapshots = {host: replace(one, nics=tuple(names)) for host, one in known.snapshots.items()}
    return CollectedSnapshots(documents, snapshots, known.silent)


def _instead(output: str) -> str:
    """What a host printed instead of an answer."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"it printed no facts, but {lines[-1][:_LONGEST]!r}" if lines else "it printed nothing"


def command_to_collect(
    level: str, sysroot: Path | None = None, nids: str = "", times: float = 1.0
) -> tuple[list[str], str]:
    """The command that takes a snapshot on a host, and what it wants on its stdin: the program itself.

    With `times` it may take so many times as long as usual.
    At level `fabric` the Slingshot fabric manager is asked about the NIDs, as in `1001-1016`.
    """
    where = [str(sysroot or "/"), *filter(None, [nids])] if sysroot or nids else []
    limits = f"{times * AIMS_S[level]:g}:{times * LIMITS_S[level]:g}"
    return [*PYTHON, level, f"{WINDOWS_S[level]:g}", limits, *where], program("collector")


def program(name: str) -> str:
    """A program for hosts, behind what it builds on: hosts need no fablint."""
    texts = [
        (Path(__file__).parent / "agent" / f"{one}.py").read_text(encoding="utf-8") for one in (*_BELOW[name], name)
    ]
    return "".join(_OWN_IMPORTS.sub("", text) for text in texts)


def unpack(printed: str, mark: str = "fablint_snapshot") -> Mapping[str, Any] | None:
    """The document in what a host printed that bears the mark; what others print around it is left out."""
    packed = "".join(piece for line in printed.splitlines() for piece in _PIECE.findall(line))
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(base64.b64decode(packed, validate=True), _LARGEST)
        document = parsed(text) if inflate.eof else None  # else it was cut off, or is far too large
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        return None
    return document if _is_marked(document, mark) else None


def snapshot_of(document: Mapping[str, Any]) -> Snapshot:
    """A document as a snapshot. What is not as it should be is left out."""
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
        commands={name: _output(said) for name, said in _mapping(document.get("commands")).items()},
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
    """One document a line; packed where the name ends with `.gz`.

    With `private`, or where one of them was taken by root, only the owner can read the file: it holds what a host shows
    to root alone, such as the log of its kernel. Otherwise the umask decides.
    """
    documents = list(documents)
    private = private or any(document.get("root") is True for document in documents)
    if private and not _is_passage(path):
        opened: AbstractContextManager[IO[bytes]] = private_file(path)
    else:
        opened = os.fdopen(os.open(path, _REPLACE, 0o600 if private else 0o666), "wb")
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


def _is_passage(path: Path) -> bool:
    """Is it to be written into and not to be replaced: a pipe, /dev/stdout? Not where another user has put it there."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return not stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid())


def load_snapshots(path: Path) -> list[Mapping[str, Any]]:
    """The documents in a file. Raises UsageError where it holds none."""
    found: list[Mapping[str, Any]] = []
    sharing = Sharing()
    try:
        with no_collection():
            for number, line in enumerate(_lines(path), 1):
                if line.strip():
                    found.append(sharing.of(_document(line, f"{path}, line {number}")))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}", _HINT) from error
    if not found:
        raise UsageError(f"{path}: is empty", _HINT)
    return found


def _document(line: bytes, where: str) -> dict[str, Any]:
    """A snapshot with the name of its host. Raises UsageError."""
    try:
        document = parsed(line)
    except (ValueError, RecursionError):
        document = None
    if not _is_marked(document, "fablint_snapshot") or not plain(document.get("host", "")):
        raise UsageError(f"{where}: is no snapshot", _HINT)
    return document


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, packed or not. Raises UsageError where there is more than anybody saves."""
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
    return float(value) if abs(value) < _MOST_SECONDS else 0.0  # nor what is no number


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> Mapping[str, str]:
    """A mapping without what is no text; itself where all of it is, since many snapshots share it."""
    found = _mapping(value)
    if all(isinstance(one, str) for one in found.values()):
        return found
    return {key: one for key, one in found.items() if isinstance(one, str)}


def _output(said: object) -> Output:
    if not isinstance(said, dict):
        return Output(error="is no output")
    text, error, status = said.get("output"), said.get("error"), said.get("status")
    return Output(_text(text), _text(error), status if isinstance(status, int) else None)

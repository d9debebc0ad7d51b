"""Which format a file is of, told by what it says and never by its name, and how that format is read.

A new format is a module with a mark and a `read_...` function, and one line in the table.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from fablint.errors import UsageError
from fablint.store.importing import (
    clusterkit,
    hp2p,
    imb,
    linktest_cells,
    mpigraph,
    nccl_tests,
    net_sanitizer_cells,
    osu_cells,
    pairs_csv,
)
from fablint.store.importing.cells import Imported

HEAD = 1 << 20  # bytes; a file that does not say by then what it is, is not read any further
LARGEST = 2 << 30  # bytes of a file; its figures take several times as much memory


@dataclass(frozen=True)
class Format:
    """One line of the table. `recognise` sees the head of a file and its length."""

    name: str
    recognise: Callable[[bytes, int], bool]
    read: Callable[[bytes, Sequence[str]], Imported]
    binary: bool = False


def _says(mark: re.Pattern[bytes]) -> Callable[[bytes, int], bool]:
    return lambda head, _: mark.search(head) is not None


FORMATS = (
    Format("OSU", _says(osu_cells.MARK), osu_cells.read_osu),
    Format("net_sanitizer", _says(net_sanitizer_cells.MARK), net_sanitizer_cells.read_net_sanitizer),
    Format("LinkTest", _says(linktest_cells.MARK), linktest_cells.read_linktest),
    Format("mpiGraph", _says(mpigraph.MARK), mpigraph.read_mpigraph),
    Format("HP2P", _says(hp2p.MARK), hp2p.read_hp2p),
    Format("HP2P's page", _says(hp2p.PAGE), hp2p.read_hp2p_page),
    Format("IMB", _says(imb.MARK), imb.read_imb),
    Format("ClusterKit", _says(clusterkit.TEXT_MARK), clusterkit.read_clusterkit_text),
    Format("ClusterKit's JSON", _says(clusterkit.JSON_MARK), clusterkit.read_clusterkit_json),
    Format("nccl-tests", _says(nccl_tests.MARK), nccl_tests.read_nccl_tests),
    Format("CSV", _says(pairs_csv.MARK), pairs_csv.read_csv),
    Format(
        "LinkTest's SION file", lambda head, _: head.startswith(linktest_cells.SION), linktest_cells.read_sion, True
    ),
    Format("HP2P's binary file", lambda head, length: bool(hp2p.bin_layout(head, length)), hp2p.read_hp2p_bin, True),
)
KNOWN = "OSU, net_sanitizer, LinkTest, mpiGraph, HP2P, IMB, ClusterKit, nccl-tests or CSV"


def import_file(path: Path, hosts: Sequence[str] = ()) -> Imported:
    """Read one file.

    Raises:
        UsageError: it cannot be read, is of no known format, or holds nothing; the line names the file.
    """
    try:
        with path.open("rb") as file:
            return _read(file, hosts)
    except OSError as error:
        what = "is a directory" if path.is_dir() else f"cannot be read ({error.strerror})"
        raise UsageError(f"{path}: {what}", "give the file that a benchmark printed into") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from None


def _read(file: BinaryIO, hosts: Sequence[str]) -> Imported:
    status = os.fstat(file.fileno())
    head = file.read(HEAD)
    length = status.st_size if stat.S_ISREG(status.st_mode) else len(head)
    form = recognise(head, length)
    if length > LARGEST:
        raise UsageError(f"{length >> 20} MiB are more than is read at once ({LARGEST >> 20} MiB)", "split it")
    data = head + file.read(LARGEST + 1 - len(head)) if len(head) == HEAD else head
    found = form.read(data, hosts)
    why = "; ".join(filter(None, [found.missing, "" if form.binary else _unreadable(found, data)]))
    return replace(found, missing=why)


def _unreadable(found: Imported, data: bytes) -> str:
    """How many lines could not be read, where that makes the file incomplete: most of them, or one of a lost pair."""
    lost = len({one.line for one in found.left_out if one.line})
    lines = sum(1 for line in data.split(b"\n") if line.strip())
    return f"{lost:,} of {lines:,} lines cannot be read" if 2 * lost > lines or found.pairless else ""


def recognise(head: bytes, length: int) -> Format:
    """The format of a file that begins so and is so long.

    Raises:
        UsageError: none is known, or several.
    """
    if not head.strip():
        raise UsageError("the file is empty" if not head else "the file is blank", "give what a benchmark printed")
    binary = b"\0" in head
    fits = [form for form in FORMATS if form.binary == binary and form.recognise(head, length)]
    if not fits:
        what = "a binary file of a kind that is not known" if binary else "not the output of a known benchmark"
        hint = "read are SION files of LinkTest 1.2 and HP2P's .bin" if binary else f"read is output of {KNOWN}"
        raise UsageError(what, hint)
    if len(fits) > 1:
        raise UsageError(f"output of {' and of '.join(form.name for form in fits)} in one file", "split it")
    return fits[0]

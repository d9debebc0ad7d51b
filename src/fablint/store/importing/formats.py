"""Table of file formats: how each is recognised, by its contents and never by its name, and how it is read.

A new format is a module with a mark and a `read_...` function, and one line in the table.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from fablint.errors import UsageError
from fablint.model.names import plural
from fablint.store.importing import (
    clusterkit,
    hp2p,
    imb,
    linktest_cells,
    mpigraph,
    nccl_json,
    nccl_tests,
    net_sanitizer_cells,
    nvbandwidth,
    osu_cells,
    pairs_csv,
    perftest,
    rccl_file,
    run_csv,
)
from fablint.store.importing.cells import Imported
from fablint.store.importing.job_maps import job_hosts
from fablint.store.importing.launcher_text import (
    LABELS,
    as_plain,
    by_source,
    has_figures,
    is_mostly_figures,
    is_noise,
)
from fablint.store.importing.lines import numbered, text_of

HEAD = 1 << 20  # bytes; a file whose format is not recognised in them is not read any further
HEAD_OF_PAGE = 16 << 20  # bytes of an HTML page, whose scripts may come before its data
PACKED: Sequence[tuple[bytes, Any]] = (  # functions that open a file, by its first bytes
    (b"\x1f\x8b\x08", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\0", lzma.open),
)
LARGEST = 2 << 30  # bytes of a file; its figures take several times as much memory


@dataclass(frozen=True)
class Format:
    """One line of the table. `recognise` gets the head of a file and its length."""

    name: str
    recognise: Callable[[bytes, int], bool]
    read: Callable[[bytes, Sequence[str]], Imported]
    binary: bool = False
    general: bool = False  # documents of other tools have its mark as well: it counts if no other format fits

    @property
    def tool(self) -> str:
        """The program that writes it."""
        return self.name.partition("'s ")[0]


def _has_mark(mark: re.Pattern[bytes]) -> Callable[[bytes, int], bool]:
    return lambda head, _: mark.search(head) is not None


FORMATS = (
    Format("OSU", _has_mark(osu_cells.MARK), osu_cells.read_osu),
    Format("net_sanitizer", _has_mark(net_sanitizer_cells.MARK), net_sanitizer_cells.read_net_sanitizer),
    Format("LinkTest", _has_mark(linktest_cells.MARK), linktest_cells.read_linktest),
    Format("mpiGraph", _has_mark(mpigraph.MARK), mpigraph.read_mpigraph),
    Format("HP2P", _has_mark(hp2p.MARK), hp2p.read_hp2p),
    Format("HP2P's page", _has_mark(hp2p.PAGE), hp2p.read_hp2p_page),
    Format("IMB", _has_mark(imb.MARK), imb.read_imb),
    Format("ClusterKit", _has_mark(clusterkit.TEXT_MARK), clusterkit.read_clusterkit_text),
    Format("ClusterKit's JSON", _has_mark(clusterkit.JSON_MARK), clusterkit.read_clusterkit_json, general=True),
    Format("nccl-tests", _has_mark(nccl_tests.MARK), nccl_tests.read_nccl_tests),
    Format("nccl-tests's JSON", _has_mark(nccl_json.MARK), nccl_json.read_nccl_json),
    Format("rccl-tests's file", _has_mark(rccl_file.MARK), rccl_file.read_rccl_file),
    Format("perftest", _has_mark(perftest.MARK), perftest.read_perftest),
    Format("perftest's JSON", _has_mark(perftest.JSON_MARK), perftest.read_perftest_json),
    Format("nvbandwidth", _has_mark(nvbandwidth.MARK), nvbandwidth.read_nvbandwidth),
    Format("nvbandwidth's JSON", _has_mark(nvbandwidth.JSON_MARK), nvbandwidth.read_nvbandwidth_json),
    Format("CSV", pairs_csv.is_csv, pairs_csv.read_csv, general=True),
    Format("CSV's export of a run", run_csv.is_run_csv, run_csv.read_run_csv),
    Format(
        "LinkTest's SION file", lambda head, _: head.startswith(linktest_cells.SION), linktest_cells.read_sion, True
    ),
    Format("HP2P's binary file", lambda head, length: bool(hp2p.bin_layout(head, length)), hp2p.read_hp2p_bin, True),
)
TOOLS = tuple(dict.fromkeys(form.tool for form in FORMATS))


def import_file(path: Path, hosts: Sequence[str] = ()) -> Imported:
    """Read one file.

    Raises
    ------
    UsageError
        The file cannot be read, has an unknown format, or is empty; the message names the file.
    """
    try:
        with path.open("rb") as file:
            return _read(file, hosts)
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError):
        raise UsageError(
            f"{path}: the compressed data are damaged", "give the file that a benchmark printed into"
        ) from None
    except OSError as error:
        reason = "is a directory" if path.is_dir() else f"cannot be read ({error.strerror})"
        raise UsageError(f"{path}: {reason}", "give the file that a benchmark printed into") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from None


def _unpacked(file: BufferedReader) -> tuple[IO[bytes], int]:
    """Return a file without its compression, and its length; 0 where that is not known before it is read."""
    status = os.fstat(file.fileno())
    first = file.peek(8)
    opened = next((opened for magic, opened in PACKED if first.startswith(magic)), None)
    if opened is not None:
        return opened(file), 0
    return file, status.st_size if stat.S_ISREG(status.st_mode) else 0


def _read(packed: BufferedReader, hosts: Sequence[str]) -> Imported:
    file, length = _unpacked(packed)
    head = file.read(HEAD)
    if head.lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        head += file.read(HEAD_OF_PAGE - HEAD)
    start = as_plain(head)
    form, labels = recognise(start, length or len(head))
    data = (
        head + file.read(LARGEST + 1 - len(head)) if length <= LARGEST and len(head) in (HEAD, HEAD_OF_PAGE) else head
    )
    if (largest := max(length, len(data))) > LARGEST:
        problem = f"{largest >> 20} MiB exceed the largest file that is read ({LARGEST >> 20} MiB)"
        raise UsageError(problem, "split it")
    data = data if form.binary else as_plain(data)
    plain = _without(labels, data)
    imported = form.read(plain, hosts or (() if form.binary else job_hosts(text_of(start))))
    return imported if form.binary else _without_noise(imported, plain)


def _without(labels: Sequence[re.Pattern[bytes]], data: bytes) -> bytes:
    for label in labels:
        data = label.sub(b"", data)
    return data


def _without_noise(imported: Imported, data: bytes) -> Imported:
    """Leave out what launchers and libraries print; figures that cannot be read make the file incomplete.

    These are rows of numbers that are part of no table, lines that name no pair, and lines without a usable figure if
    they are most of the lines with figures. Headings are none of these.
    """
    kept = [line for line in imported.left_out if not (line.is_foreign and is_noise(line.text))]
    rows = sum(line.is_foreign and has_figures(line.text) for line in kept)
    left_out, foreign = ({line.line for line in kept if line.is_foreign is foreign} for foreign in (False, True))
    if imported.rows:
        lines, useless = imported.rows, len(left_out - {0})
    else:
        places = {number for number, line in numbered(text_of(data)) if is_mostly_figures(line)} - foreign
        lines, useless = len(places), len(left_out & places)
    most = 2 * useless > lines
    reasons = (
        imported.missing,
        f"{plural(rows, 'row')} of figures cannot be read" if rows else "",
        f"{useless:,} of {lines:,} lines cannot be read" if most or imported.pairless else "",
    )
    return replace(imported, left_out=tuple(kept), missing="; ".join(filter(None, reasons)))


def _labels_of(head: bytes) -> Iterator[tuple[re.Pattern[bytes], ...]]:
    """Yield what launchers may have put before the lines: nothing, one label, or one before another."""
    yield ()
    present = [label for label in LABELS if label.search(head)]
    yield from ((label,) for label in present)
    for first in present:
        plain = first.sub(b"", head)
        yield from ((first, second) for second in LABELS if second is not first and second.search(plain))


def recognise(head: bytes, length: int) -> tuple[Format, Sequence[re.Pattern[bytes]]]:
    """Return the format of a file, and the labels of launchers without which it has this format.

    Parameters
    ----------
    head
        First bytes of the file.
    length
        Its length in bytes.

    Raises
    ------
    UsageError
        No format or several formats match.
    """
    if not head.strip():
        raise UsageError("the file is empty" if not head else "the file is blank", "give the output of a benchmark")
    binary = b"\0" in head
    for labels in ((),) if binary else _labels_of(head):
        plain = _without(labels, head)
        fits = [form for form in FORMATS if form.binary == binary and form.recognise(plain, length)]
        fits = [form for form in fits if not form.general] or fits
        if len(fits) > 1:
            raise UsageError(f"output of {' and of '.join(form.name for form in fits)} in one file", "split it")
        if fits:
            _refuse_mixed(fits[0], labels, head, length)
            return fits[0], labels
    problem = "a binary file of unknown format" if binary else "not the output of a known benchmark"
    hint = (
        "supported binary files: SION files of LinkTest 1.2, .bin files of HP2P"
        if binary
        else f"supported: output of {', '.join(TOOLS[:-1])} or {TOOLS[-1]} with a heading (src,dst,size,bandwidth)"
    )
    raise UsageError(problem, hint)


def _refuse_mixed(form: Format, labels: Sequence[re.Pattern[bytes]], head: bytes, length: int) -> None:
    """Raise UsageError if labels show that several programs printed into the file: their pairs are not the same."""
    printed = [source for source, text in by_source(labels, head).items() if form.recognise(text, length)]
    if len(printed) > 1:
        names = " and ".join(text_of(name)[:40] for name in printed[:2])
        problem = f"output of {len(printed)} programs of {form.tool} in one file: {names}"
        raise UsageError(problem, "give the output of each program in its own file")

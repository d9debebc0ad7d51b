"""Compressed files, files of other encodings, colours, and labels of several programs."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from import_cases import FAULTY, NCCL_END, NCCL_HEAD, text_of, times_of, written

from fablint.errors import UsageError
from fablint.store import import_run
from fablint.store.importing.launcher_text import LABELS, as_plain, by_source

OSU = """# OSU MPI Bandwidth Test v7.2
# Size      Bandwidth (MB/s)
1                       5.50
1048576             12055.00
"""
CSV = "src,dst,size,bandwidth\r\nn1,n2,1048576,2097.152\r\nn2,n1,1048576,1048.576\r\n"
PERFTEST = """                    RDMA_Write BW Test
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             392.10             80.00              0.152588
"""


def in_bytes(folder: Path, data: bytes) -> list[float]:
    path = folder / "output"
    path.write_bytes(data)
    run = import_run([path], [])
    assert run.state == "complete"
    return times_of(run.rows[0])


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("text", [CSV, OSU, PERFTEST])
def test_a_compressed_file_is_read_as_the_file_in_it(
    tmp_path: Path, packed: Callable[[bytes], bytes], text: str
) -> None:
    assert in_bytes(tmp_path, packed(text.encode())) == in_bytes(tmp_path, text.encode())


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UsageError, match="the compressed data are damaged"):
        in_bytes(tmp_path, packed(OSU.encode())[:-12])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("text", [CSV, OSU, OSU.replace("\n", "\r\n"), PERFTEST])
def test_the_encoding_changes_no_figure(tmp_path: Path, encoding: str, text: str) -> None:
    assert in_bytes(tmp_path, text.encode(encoding)) == in_bytes(tmp_path, text.encode())


@pytest.mark.parametrize("text", [CSV, OSU, PERFTEST])
def test_colours_of_a_terminal_are_no_part_of_a_line(tmp_path: Path, text: str) -> None:
    coloured = "".join(f"\x1b[1;32m{line}\x1b[0m\x1b[K\n" for line in text.splitlines())
    assert in_bytes(tmp_path, coloured.encode()) == in_bytes(tmp_path, text.encode())
    assert as_plain(coloured.encode()).decode() == text.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "tag", ["[1,0]<stdout>:", "[prterun-n1-42@1,0]<stdout>: ", "[1,0][n1:42]<stdout>:", "[32761,1,0]<stdout>:"]
)
def test_tags_are_removed_from_the_middle_of_a_line(tmp_path: Path, tag: str) -> None:
    head = "# Collective test starting: all_reduce_perf\n" + NCCL_HEAD
    out, back = "    10.50    0.00    0.00      0", "    11.50    0.00    0.00      0"
    columns = f"#     size       count      type   redop    root{2 * '     time   algbw   busbw #wrong'}\n"
    begin = "        8             2     float     sum      -1"
    row, pieces = f"{begin}{out}{back}\n", f"{begin}{tag}{out}{tag}{back}\n"
    lines = [*(head + columns).splitlines(keepends=True), pieces, *NCCL_END.splitlines(keepends=True)]
    tagged = written(tmp_path, "".join(tag + line for line in lines))
    plain = written(tmp_path, head + columns + row + NCCL_END)
    assert [times_of(row) for row in tagged.rows] == [times_of(row) for row in plain.rows]
    assert tagged.state == plain.state == "complete"


@pytest.mark.parametrize(
    "label", ["{}: ", "[{}] ", "[1,{}]<stdout>:", "n{}: ", "w-{}  | ", "[pod/w-{}/c] ", "nid {}: "]
)
@pytest.mark.parametrize("text", [OSU, PERFTEST])
def test_labels_of_two_programs_are_refused(tmp_path: Path, label: str, text: str) -> None:
    first = [label.format(1) + line for line in text.splitlines()]
    second = [label.format(2) + line for line in text.splitlines()]
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    for lines in (mixed, first + second):
        with pytest.raises(UsageError, match=r"output of 2 programs of .* in one file: .*1.* and .*2"):
            written(tmp_path, "\n".join(lines) + "\n")


def test_other_ranks_and_times_are_no_programs(tmp_path: Path) -> None:
    lines = OSU.splitlines()
    noisy = [
        f"{at % 2 * 7}: {line}" for at, line in enumerate(["module loaded", *(w for o in lines for w in (o, "x"))], 1)
    ]
    assert times_of(written(tmp_path, "\n".join(noisy) + "\n").rows[0]) == times_of(written(tmp_path, OSU).rows[0])
    dated = "".join(f"2026-11-03T10:00:0{at}Z n1 osu_bw[{4711 + at}]: {line}\n" for at, line in enumerate(lines * 2))
    assert len(times_of(written(tmp_path, dated).rows[0])) == 4
    assert by_source(LABELS[:3], b"[1,0]<stdout>:a\n[1,1]<stderr>:b\n[1,0]<stderr>:c\nd") == {b"0": b"a\nc", b"1": b"b"}


@pytest.mark.parametrize("blanks", [" ", "    ", "\t\t"])
def test_blanks_for_the_tabs_of_mpigraph(tmp_path: Path, blanks: str) -> None:
    text = text_of("mpigraph", FAULTY.name)
    tabs, spaced = (written(tmp_path, text.replace("\t", separator)) for separator in ("\t", blanks))
    assert (times_of(spaced.rows[0]), spaced.rank_host) == (times_of(tabs.rows[0]), tabs.rank_host)


@pytest.mark.parametrize("label", ["[1,0]<stdout>:", "0: ", "n1: ", "[0] ", "> ", "\x1b[0m"])
@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("hp2p", "hp2p-4.1-random-np4.stdout.txt"),
        ("linktest", "linktest-1.2p1-serial-np4.stdout.txt"),
        ("net_sanitizer", "net_sanitizer-readme-verbose.txt"),
        ("mpigraph", FAULTY.name),
    ],
)
def test_labels_before_every_line_of_other_tools(tmp_path: Path, family: str, name: str, label: str) -> None:
    text = text_of(family, name)
    plain, labelled = (
        written(tmp_path, text),
        written(tmp_path, "".join(f"{label}{line}\n" for line in text.splitlines())),
    )
    assert [times_of(row) for row in labelled.rows] == [times_of(row) for row in plain.rows]
    assert (labelled.rank_host, labelled.state) == (plain.rank_host, plain.state)


def test_two_summaries_of_hp2p_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a second run of HP2P"):
        written(tmp_path, 2 * text_of("hp2p", "hp2p-4.1-random-np4.stdout.txt"))

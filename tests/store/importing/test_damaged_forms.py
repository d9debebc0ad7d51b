"""Damaged and cut texts of all forms that are imported: figures that can be true, or one line that refuses the file."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from import_cases import FIXTURES, files

from fablint.errors import UsageError
from fablint.store.importing.formats import import_file

FAMILIES = ("outside", "osu", "mpigraph", "hp2p", "imb", "clusterkit", "nccl_tests", "linktest", "nvbandwidth")
FORMS = [path for path in files(*FAMILIES, "net_sanitizer", "launchers") if path.is_file()]
MOST = 20_000  # bytes of a text: the beginning of a longer one
DAMAGES = 12  # of each form, the same in each run
WORDS = [b"nan", b"-1", b"1e999", b"9" * 40, b"\xff", b"\t", b'"', b"{", b"|", b"]", b"#", b":"]


def damaged(data: bytes, draw: random.Random) -> bytes:
    """A text that is cut off, or with words, lines or bytes changed, doubled, exchanged or left out."""
    lines = data.splitlines(keepends=True)
    first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
    at = draw.randrange(len(data))
    kind = draw.choice(["cut", "byte", "word", "drop", "double", "swap", "join"])
    if kind == "cut":
        return data[:at]
    if kind == "byte":
        return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    if kind == "word":
        words = lines[first].split(b" ")
        words[draw.randrange(len(words))] = draw.choice(WORDS)
        lines[first] = b" ".join(words)
    elif kind == "drop":
        del lines[first]
    elif kind == "double":
        lines.insert(second, lines[first])
    elif kind == "swap":
        lines[first], lines[second] = lines[second], lines[first]
    else:
        lines[first] = lines[first].rstrip(b"\r\n") + lines[second]
    return b"".join(lines)


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_damage_is_refused_in_one_line_or_leaves_figures_that_can_be_true(form: Path, tmp_path: Path) -> None:
    draw = random.Random(form.name)
    path = tmp_path / "damaged.out"
    for _ in range(DAMAGES):
        data = form.read_bytes()[:MOST]
        for _ in range(draw.randint(1, 3)):
            data = damaged(data, draw) or b"\n"
        path.write_bytes(data)
        try:
            imported = import_file(path)
        except UsageError as error:
            assert "\n" not in str(error) and str(path) in str(error)
            continue
        for seconds in (values for body in imported.bodies for values in body.cells.seconds.values()):
            assert not (seconds <= 0).any() and not np.isinf(seconds).any()


def test_each_format_is_among_the_forms() -> None:
    assert len(FORMS) > 50 and FIXTURES / "outside" / "51-nccl-json.txt" in FORMS

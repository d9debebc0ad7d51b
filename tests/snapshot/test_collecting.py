"""Snapshots out of what hosts print, and out of files."""

from __future__ import annotations

import base64
import gzip
import json
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.model import Answer
from fablint.snapshot import load_snapshots, read_answers, save_snapshots, snapshot_of
from fablint.snapshot.collecting import unpack
from snapshot_trees import nested, printed

DOCUMENT = {"fablint_snapshot": 1, "host": "n1", "files": nested({"/sys/class/net/hsn0/mtu": "9000\n"})}


def framed(octets: bytes) -> str:
    return f"fablint:{base64.b64encode(octets).decode()}.\n"


def test_a_snapshot_is_found_among_what_launchers_and_shells_print() -> None:
    lines = printed({**DOCUMENT, "kernel": "x" * 40 + "".join(map(str, range(2000)))}).splitlines()
    assert len(lines) > 3
    text = "module load\n" + "\r\nwarning: slow\n".join(f"0: {line}" for line in lines) + "\nlogout\n"
    said = read_answers([Answer("nid7", text)])
    assert not said.silent
    assert said.snapshots["nid7"].host == "nid7"  # as it was asked, not as it calls itself
    assert said.snapshots["nid7"].number("/sys/class/net/hsn0/mtu") == 9000


def test_a_program_that_failed_at_its_end_was_heard() -> None:
    assert not read_answers([Answer("n1", printed(DOCUMENT), error="exit status 1")]).silent


WHOLE = printed(DOCUMENT)
PACKED = zlib.compress(json.dumps(DOCUMENT).encode())


@pytest.mark.parametrize(
    "text",
    [
        *(WHOLE[:-cut] for cut in (2, 3, 10, 60)),
        framed(PACKED[:-1]),  # all of the text, but the sum at its end
        framed(PACKED[:-4] + b"xxxx"),
        framed(PACKED[:40]),
        framed(b"none"),
        framed(b""),
        "fablint:.\n",
        "fablint:äöü.\n",
        printed([1]),
        printed({"fablint_snapshot": 2}),
        printed({"another": 1}),
        framed(zlib.compress(b"[" * 100_000)),
        framed(zlib.compress(b'{"fablint_snapshot": 1, "time": ' + b"9" * 5000 + b"}")),
    ],
)
def test_what_was_cut_off_or_is_something_else_is_no_snapshot(text: str) -> None:
    assert unpack(text) is None
    assert "no snapshot in its output" in read_answers([Answer("n1", text)]).silent["n1"]


def test_a_text_that_unpacks_to_more_than_any_snapshot_has_is_refused() -> None:
    packer = zlib.compressobj()
    bomb = packer.compress(b'{"fablint_snapshot": 1, "kernel": "')
    for _ in range(65):
        bomb += packer.compress(b"x" * (1 << 20))
    bomb += packer.compress(b'"}') + packer.flush()
    assert len(bomb) < 1 << 17
    assert unpack(framed(bomb)) is None


def test_what_is_of_another_kind_is_left_out() -> None:
    strange = snapshot_of(
        {
            "host": "\x1b[2Jn 1",
            "time": 10**400,
            "window_s": float("nan"),
            "files": 3,
            "kernel": ["No such file or directory"],
            "links": {"/a": 1},
            "folders": {"/b": "x", "/c": [1, "d"]},
            "commands": {"ip": 7, "lldpcli": {"output": [], "status": "0"}},
            "names": {"of": {"10.0.0.1": ["no such name"]}, "to": []},
        }
    )
    assert (strange.host, strange.time, strange.window_s, strange.files) == ("2Jn-1", 0.0, 0.0, {})
    assert (strange.links, strange.folders) == ({}, {"/c": ["d"]})
    assert (strange.kernel, strange.level) == ("", "quick")
    assert not strange.command("ip").ran
    assert not strange.command("lldpcli").ran
    assert strange.names_of == {"10.0.0.1": None}


@pytest.mark.parametrize("log", [{"error": "Permission denied"}, {"output": "<6>[1] x", "error": "it did not end"}])
def test_a_log_that_was_not_read_to_its_end_is_none(log: dict[str, str]) -> None:
    assert not snapshot_of({"kernel_log": log}).kernel_log.ran
    assert snapshot_of({"kernel_log": {"output": ""}}).kernel_log.ran


# ------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("name", ["all.json", "all.json.gz"])
def test_what_was_saved_reads_back(name: str, tmp_path: Path) -> None:
    documents = [DOCUMENT, {**DOCUMENT, "host": "n2", "kernel": "\u2028\udcff"}]
    save_snapshots(documents, tmp_path / name)
    assert load_snapshots(tmp_path / name) == documents


LINE = json.dumps(DOCUMENT).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"\x7fELF\x00\xff\xfe\n", "line 1: not a snapshot"),
        (LINE + b"\n" + LINE[:-5], "line 2: not a snapshot"),
        (b'{"format": 1}', "line 1: not a snapshot"),
        (b'{"fablint_snapshot": 1, "host": "\\n"}', "line 1: not a snapshot"),
        (b"[" * 100_000, "line 1: not a snapshot"),
        (gzip.compress(LINE * 100, mtime=0)[:-20], "cannot be read: Compressed file ended"),
        (gzip.compress(LINE, mtime=0)[:12] + b"\xff" * 40, "cannot be read: "),
        (b"\x1f\x8b", "cannot be read: "),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(b" " * (1 << 26)), "too large for snapshots"),
    ],
)
def test_a_file_that_holds_no_snapshots_is_named_with_the_reason(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_snapshots(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "--save" in (caught.value.hint or "")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match="cannot be read"):
            load_snapshots(path)


# ------------------------------------------------------------------------------------------------ permissions


@pytest.fixture
def generous() -> Iterator[None]:
    """A umask that lets all users read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


OF_ROOT = {**DOCUMENT, "root": True}


@pytest.mark.parametrize("name", ["all.json", "all.json.gz"])
@pytest.mark.parametrize(
    ("documents", "private", "wanted"),
    [([DOCUMENT], True, 0o600), ([DOCUMENT, OF_ROOT], False, 0o600), ([DOCUMENT], False, 0o644)],
)
def test_what_root_saw_or_saved_is_for_its_owner_only(
    generous: None, tmp_path: Path, name: str, documents: list[dict[str, object]], private: bool, wanted: int
) -> None:
    path = tmp_path / name
    for _ in range(2):  # new, and in place of what all could read
        save_snapshots(documents, path, private=private)
        assert mode(path) == wanted
        path.chmod(0o644)
    assert load_snapshots(path) == documents
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_at_no_instant_can_others_read_it(generous: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that is opened for it is created with mode 0600: os.open is watched, and chmod is not called."""
    modes = []
    real = os.open

    def watched(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if flags & os.O_CREAT:
            modes.append(mode)
        return real(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", watched)
    save_snapshots([OF_ROOT], tmp_path / "all.json")
    assert modes == [0o600]
    assert mode(tmp_path / "all.json") == 0o600


def test_it_is_not_written_through_a_link_or_pipe_of_another_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a link in the name of another user")
    readable = tmp_path / "readable"
    readable.write_text("theirs")
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(readable)
    os.mkfifo(pipe)
    for path in (link, pipe):
        os.lchown(path, 65534, 65534)
        save_snapshots([OF_ROOT], path)
        assert stat.S_ISREG(path.lstat().st_mode) and mode(path) == 0o600
        assert load_snapshots(path) == [OF_ROOT]
    assert readable.read_text() == "theirs"


def test_it_is_written_into_a_link_of_ones_own(generous: None, tmp_path: Path) -> None:
    """As /dev/stdout is one: the file of a redirection must not be replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    save_snapshots([OF_ROOT], link)
    assert link.is_symlink() and load_snapshots(target) == [OF_ROOT]
    assert mode(target) == 0o600


def test_where_it_cannot_be_written_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        save_snapshots([OF_ROOT], tmp_path / "folder", private=True)
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]

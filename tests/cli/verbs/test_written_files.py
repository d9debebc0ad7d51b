"""Files that verbs write, where their name is a device, a pipe, a socket, a link or standard output.

The nodes are made in the folder of the test: no device of the machine is opened for writing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fablint.cli import main
from fablint.errors import UsageError
from fablint.snapshot.collecting import save_snapshots
from fablint.system.written_files import replace_octets, whole_file, written_beside
from fablint_command import COMMAND
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

DEVICE = stat.S_IFCHR | 0o666
NULL, FULL = os.makedev(1, 3), os.makedev(1, 7)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated run, which no verb changes, beside a history with it."""
    path = tmp_path_factory.mktemp("runs") / "night.run"
    assert exit_code(["simulate", "--host-count", "8", "-q", "-o", path]) == 0
    assert exit_code(["history", "add", path, "--db", path.with_name("history.sqlite")]) == 0
    return path


def exit_code(words: list[object]) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code)


def make_node(path: Path, kind: str) -> None:
    """Make a device, pipe or socket, or a link to a device."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "link":
        make_node(path.with_name("target"), "device")
        path.symlink_to(path.with_name("target"))
    else:
        try:
            os.mknod(path, DEVICE, FULL if kind == "full device" else NULL)
            path.open("wb").close()
        except PermissionError:
            pytest.skip("only root can make a device, and not in every container")


@contextlib.contextmanager
def reader_of(pipe: Path) -> Iterator[list[bytes]]:
    """What is written into a pipe while the block lasts."""
    content: list[bytes] = []
    thread = threading.Thread(target=lambda: content.append(pipe.read_bytes()))
    thread.start()
    yield content
    thread.join(timeout=60)


VERBS = {
    "report": ("report", "RUN", "-o", "NODE"),
    "pdf": ("report", "RUN", "--pdf", "-o", "NODE"),
    "png": ("report", "RUN", "--png", "topology", "-o", "NODE"),
    "compare": ("compare", "RUN", "RUN", "--html", "-o", "NODE"),
    "csv": ("export", "RUN", "--to", "csv", "-o", "NODE"),
    "netcdf": ("export", "RUN", "--to", "netcdf", "-o", "NODE"),
    "parquet": ("export", "RUN", "--to", "parquet", "-o", "NODE"),
    "history": ("history", "export", "--db", "DB", "-o", "NODE"),
    "prometheus": ("report", "RUN", "--prometheus", "NODE"),
    "junit": ("report", "RUN", "--junit", "NODE"),
}
BEGINNINGS = {
    "report": b"<!DOCTYPE html>",
    "pdf": b"%PDF",
    "png": b"\x89PNG",
    "compare": b"<!DOCTYPE html>",
    "csv": b"row,kernel,src",
    "netcdf": b"\x89HDF",
    "parquet": b"PAR1",
    "history": b"run,started,verdict",
    "prometheus": b"# HELP",
    "junit": b"<?xml",
}


def words_of(verb: str, run: Path, node: object) -> list[object]:
    return [{"RUN": run, "NODE": node, "DB": run.with_name("history.sqlite")}.get(word, word) for word in VERBS[verb]]


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_pipe_is_written_into(fablint, tmp_path, run, verb):
    node = tmp_path / "node"
    make_node(node, "pipe")
    with reader_of(node) as content:
        done = fablint(*words_of(verb, run, node))
    assert done.returncode in (0, 3), done.stderr
    assert content[0].startswith(BEGINNINGS[verb])
    assert stat.S_ISFIFO(node.lstat().st_mode)
    assert not list(tmp_path.glob(".node*"))


@pytest.mark.parametrize("kind", ["device", "full device", "link", "socket"])
@pytest.mark.parametrize("verb", ["report", "csv", "prometheus"])
def test_a_device_or_socket_is_never_replaced(fablint, tmp_path, run, verb, kind):
    node = tmp_path / "node"
    make_node(node, kind)
    before = node.lstat()
    names = sorted(entry.name for entry in tmp_path.iterdir())
    done = fablint(*words_of(verb, run, node))
    after = node.lstat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == names
    if kind in ("full device", "socket"):
        assert done.returncode in (2, 3)
        assert f"{node}" in done.stderr.splitlines()[-1]
    else:
        assert done.returncode in (0, 3)


@contextlib.contextmanager
def standard_output(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool = False) -> Iterator[io.BytesIO]:
    """Octets that are written to standard output."""
    octets = io.BytesIO()
    stream = io.TextIOWrapper(octets, encoding="utf-8")
    stream.isatty = lambda: is_terminal
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield octets
        stream.flush()
        stream.detach()


@pytest.mark.parametrize(("verb", "name"), [("report", "/dev/stdout"), *((verb, "-") for verb in VERBS)])
def test_standard_output_has_the_file_and_nothing_else(run, monkeypatch, capsys, verb, name):
    folder = sorted(run.parent.iterdir())
    with standard_output(monkeypatch) as octets:
        code = exit_code(words_of(verb, run, name))
    assert code in (0, 3), capsys.readouterr().err
    assert octets.getvalue().startswith(BEGINNINGS[verb])
    assert b"fablint: " not in octets.getvalue()[:200]
    assert sorted(run.parent.iterdir()) == folder  # no file of that name


@pytest.mark.parametrize("kind", ["yaml", "json", "slurm"])
def test_a_topology_on_standard_output(monkeypatch, tmp_path, capsys, kind):
    source = tmp_path / "given.yaml"
    source.write_text("format: 1\nswitches: {s1: {}, s2: {}}\nhosts: {'n[1-2]': s1, 'n[3-4]': s2}\n")
    words = ["discover", "--from", source, *(("--to", kind) if kind != "yaml" else ()), "-o", "-"]
    with standard_output(monkeypatch) as octets:
        code = exit_code(words)
    assert code in (0, 3), capsys.readouterr().err
    text = octets.getvalue().decode()
    assert {"yaml": "hosts:", "json": '"hosts":', "slurm": "SwitchName=s1 Nodes=n[1-2]"}[kind] in text
    assert "n[1-2]" in capsys.readouterr().err  # the tree
    assert exit_code(["discover", "--from", source, "--to", "hostfiles", "-o", "-"]) == 2


def test_a_plan_on_standard_output_is_a_plan_file(monkeypatch, capsys):
    with standard_output(monkeypatch) as octets:
        assert exit_code(["plan", "--local", "4", "-o", "-"]) == 0
    assert all("--" in line for line in octets.getvalue().decode().splitlines())


@pytest.mark.parametrize("verb", ["pdf", "png", "netcdf", "parquet"])
def test_a_file_that_is_no_text_is_not_printed_on_a_terminal(run, monkeypatch, capsys, verb):
    with standard_output(monkeypatch, is_terminal=True) as octets:
        assert exit_code(words_of(verb, run, "-")) == 2
    assert PINNED["is not printed on a terminal"] in capsys.readouterr().err
    assert not octets.getvalue()


def test_npy_is_a_folder_and_json_needs_standard_output(run, capsys):
    assert exit_code(["export", run, "--to", "npy", "-o", "-"]) == 2
    assert "npy is a folder of files" in capsys.readouterr().err
    assert exit_code(["report", run, "--json", "-o", "-"]) == 2
    assert PINNED["--json and a file on standard"] in capsys.readouterr().err
    assert exit_code(["check", "--local", "2", "--json-lines", "--junit", "-"]) == 2
    assert (
        json.loads(capsys.readouterr().out)["text"]
        == PINNED["--json and a file on standard"].replace("--json", "--json-lines") + ": name a file"
    )


def test_output_before_the_file_is_kept_where_standard_output_is_a_file(tmp_path, run):
    log = tmp_path / "log"
    with log.open("w") as stream:
        stream.write("before\n")
        stream.flush()
        command = [*COMMAND, "export", str(run), "--to", "csv", "-o", "-"]
        subprocess.run(command, stdout=stream, check=True, timeout=60)
    assert log.read_text().startswith("before\nrow,kernel,src")


# ------------------------------------------------------------------------------------------------ the function


def test_a_link_to_a_regular_file_stays_and_its_file_is_replaced(tmp_path):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    target.write_text("old")
    before = target.stat().st_ino
    link.symlink_to(target)
    replace_octets(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_ino != before
    assert [entry.name for entry in target.parent.iterdir()] == ["target"]


def owned_by_another_user(link, monkeypatch):
    if os.geteuid() == 0:
        os.lchown(link, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


@pytest.mark.parametrize("is_chain", [False, True])
@pytest.mark.parametrize("target", ["file", "/dev/null", "missing"])
def test_a_link_of_another_user_is_never_followed(tmp_path, monkeypatch, target, is_chain):
    (tmp_path / "file").write_text("old")
    link, path = tmp_path / "link", tmp_path / "path"
    link.symlink_to(target)
    path.symlink_to("link")
    owned_by_another_user(link, monkeypatch)
    given = path if is_chain else link
    with pytest.raises(OSError, match="a link of another user"):
        replace_octets(given, b"new")
    with pytest.raises(UsageError, match="a link of another user"), written_beside(given):
        pass
    with pytest.raises(OSError, match="a link of another user"):
        save_snapshots([{"host": "n1"}], given)
    assert (tmp_path / "file").read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "link", "path"]


def test_links_that_name_each_other_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        replace_octets(tmp_path / "a", b"new")


@pytest.mark.parametrize("write", [whole_file, written_beside])
def test_no_other_user_can_make_or_guess_the_temporary_file(tmp_path, write):
    """A link with the name of a process in the shared folder leads to a file of the user; it is not written."""
    (tmp_path / "victim").write_text("old")
    (tmp_path / f".new.{os.getpid()}").symlink_to("victim")
    folders = set()
    for _ in range(2):
        with write(tmp_path / "new") as temporary:
            temporary.write_text("new")
            folders.add(temporary.parent.name)
            assert stat.S_IMODE(temporary.parent.stat().st_mode) == 0o700
        assert (tmp_path / "new").read_text() == "new"
        (tmp_path / "new").unlink()
    assert (tmp_path / "victim").read_text() == "old"
    assert len(folders) == 2
    assert not any((tmp_path / name).exists() for name in folders)


def test_a_block_that_fails_writes_nothing(tmp_path):
    path, pipe = tmp_path / "file", tmp_path / "pipe"
    path.write_text("old")
    os.mkfifo(pipe)
    for target in (path, pipe):
        with pytest.raises(ZeroDivisionError), whole_file(target) as temporary:
            temporary.write_text("new")
            raise ZeroDivisionError
    assert path.read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "pipe"]


def test_a_new_file_replaces_no_file_and_no_folder(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder"):
        with pytest.raises(UsageError, match="exists already"), written_beside(tmp_path / name):
            pass
    with pytest.raises(OSError, match="Is a directory"):
        replace_octets(tmp_path / "folder", b"new")
    assert (tmp_path / "file").read_text() == "old"

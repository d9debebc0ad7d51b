"""What a snapshot is taken with: nothing on a host may stop it, and nothing outside of a tree may get in."""

from __future__ import annotations

import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fablint.snapshot.agent import machine
from fablint.snapshot.agent.machine import Late, Machine, output, output_of_client, stop

FOREVER = 3600.0


def write(root: Path, path: str, text: str = "x\n") -> None:
    at = root / path.lstrip("/")
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(text)


def filled(root: Path, *patterns: str) -> dict[str, object]:
    tree: dict[str, object] = {}
    Machine(str(root), FOREVER).fill(tree, patterns)
    return tree


# ------------------------------------------------------------------------------------------------ files


def test_braces_and_stars_are_as_in_a_shell(tmp_path: Path) -> None:
    for path in ("/sys/a/1/x", "/sys/a/1/y", "/sys/a/2/x", "/sys/a/2/z"):
        write(tmp_path, path)
    assert filled(tmp_path, "/sys/a/*/{x,y}") == {"sys": {"a": {"1": {"x": "x", "y": "x"}, "2": {"x": "x"}}}}


def test_the_folder_of_a_tree_may_have_any_name(tmp_path: Path) -> None:
    odd = tmp_path / "a[0]* {b}"
    write(odd, "/etc/hostname", "n1\n")
    assert filled(odd, "/etc/{hostname,os-release}") == {"etc": {"hostname": "n1"}}


def test_the_reason_for_a_missing_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert Machine(str(tmp_path), FOREVER).read("/none") == ["No such file or directory"]
    assert filled(tmp_path, "/*") == {"loop": ["Too many levels of symbolic links"]}


def test_only_the_beginning_of_a_large_file_is_read(tmp_path: Path) -> None:
    write(tmp_path, "/proc/version", "é" * 20000)
    text = Machine(str(tmp_path), FOREVER).read("/proc/version")
    assert len(text) == machine.LETTERS / 2


def test_links_do_not_lead_out_of_a_tree(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    write(outside, "net/hsn9/mtu", "1500")
    write(outside, "secret")
    write(root, "/sys/devices/hsn0/mtu", "9000")
    (root / "sys/class").mkdir()
    (root / "sys/class/net").mkdir()
    (root / "sys/class/net/hsn0").symlink_to("../../devices/hsn0")
    (root / "sys/class/net/hsn1").symlink_to(outside / "net/hsn9")
    (root / "sys/class/net/hsn2").symlink_to("../../../../outside/net/hsn9")
    (root / "etc").symlink_to(outside)
    write(root, "/run/cxi/cxi0")
    (root / "run/cxi/cxi1").symlink_to(outside / "secret")
    (root / "run/cxi/cxi2").symlink_to("/etc/hostname")
    tree = filled(root, "/sys/class/net/*/mtu", "/etc/secret", "/run/cxi/*")
    assert tree == {"sys": {"class": {"net": {"hsn0": {"mtu": "9000"}}}}, "run": {"cxi": {"cxi0": "x"}}}
    here = Machine(str(root), FOREVER)
    assert here.read("/run/cxi/cxi2") == ["leads out of the folder"]
    assert here.links(["/sys/class/net/*"]) == {"/sys/class/net/hsn0": "../../devices/hsn0"}
    assert here.folders(["/etc", "/run/cxi"]) == {"/run/cxi": ["cxi0", "cxi1", "cxi2"]}
    assert "size" not in here.shared_memory()  # of the disk that the tree is on


def test_what_is_no_regular_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    os.mkfifo(tmp_path / "etc/pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "etc/socket"))
        tree = filled(tmp_path, "/etc/*")
    assert tree["etc"]["pipe"] == ["is not a regular file"]  # type: ignore[index]
    assert isinstance(tree["etc"]["socket"], list)  # type: ignore[index]
    if os.geteuid() == 0:
        os.mknod(tmp_path / "etc/zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        assert Machine(str(tmp_path), FOREVER).read("/etc/zero") == ["is not a regular file"]
    assert Machine("/", FOREVER).read("/dev/zero") == ["is not a regular file"]


def test_a_tree_that_is_a_link_itself_is_one(tmp_path: Path) -> None:
    write(tmp_path / "real", "/etc/hostname")
    (tmp_path / "link").symlink_to("real")
    assert filled(tmp_path / "link", "/etc/*") == {"etc": {"hostname": "x"}}


def test_interfaces_of_containers_are_left_out_and_the_others_are_not_many(tmp_path: Path) -> None:
    for name in (*(f"veth{n}" for n in range(300)), *(f"vlan{n:02}" for n in range(60)), "docker0", "lo"):
        write(tmp_path, f"/sys/class/net/{name}/mtu")
        write(tmp_path, f"/proc/sys/net/ipv4/conf/{name}/rp_filter")
    for name in ("hsn0", "zz9"):
        write(tmp_path, f"/sys/class/net/{name}/device/numa_node")
    write(tmp_path, "/proc/sys/net/ipv4/conf/all/rp_filter")
    write(tmp_path, "/sys/class/net/bonding_masters")
    (tmp_path / "sys/class/net/a{b,c}").mkdir()
    here = Machine(str(tmp_path), FOREVER)
    assert here.nics[:3] == ["hsn0", "zz9", "vlan00"]
    assert len(here.nics) == machine.MOST_NICS
    assert len(here.names("/sys/class/net/*/mtu")) == machine.MOST_NICS - 2
    assert here.find("/proc/sys/net/ipv4/conf/*/rp_filter")[0] == "/proc/sys/net/ipv4/conf/all/rp_filter"


def test_time_that_is_up_ends_the_reading(tmp_path: Path) -> None:
    write(tmp_path, "/a/b")
    late = Machine(str(tmp_path), 0.0)
    with pytest.raises(Late):
        late.fill({}, ["/a/*"])
    assert late.doing == "looking for /a/*"


# ------------------------------------------------------------------------------------------------ programs


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], list[str]]]:
    """Makes a program of a shell script."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(script: str, name: str = "tool") -> list[str]:
        write(tmp_path, name, f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
        return [name]

    yield make
    stop()


def is_running(pid: int) -> bool:
    """Does it run? One that was ended may be still to be waited for by its parent."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def _wait_until_gone(pid: int) -> None:
    for _ in range(1000):
        if not is_running(pid):
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} still runs")


def test_what_a_program_prints_and_how_it_ends(program: Callable[[str], list[str]]) -> None:
    assert output(program('echo "$LC_ALL"; echo no >&2'), 30.0) == {"status": 0, "output": "C\n"}
    failed = output(program("echo a; echo; echo '  no device' >&2; echo more >&2; exit 3"), 30.0)
    assert failed == {"status": 3, "output": "a\n\n", "error": "no device"}
    assert output(program("exit 4"), 30.0)["error"] == "exit status 4"
    assert output(program("kill -9 $$"), 30.0)["error"] == "exit status -9"
    assert output(program(r"printf 'a\377b'"), 30.0)["output"] == "a\ufffdb"
    assert output(["no-such-program"], 30.0) == {"error": "not installed"}


def test_a_program_that_cannot_be_started_says_so(program: Callable[[str], list[str]], tmp_path: Path) -> None:
    words = program("")
    (tmp_path / "tool").write_bytes(b"\x00")
    assert output(words, 30.0) == {"error": "Exec format error"}


def test_a_stalled_program_is_ended_with_its_children(program: Callable[[str], list[str]], tmp_path: Path) -> None:
    said = output(program(f"sleep 1000 & echo $! >{tmp_path}/pid; echo beginning; wait"), 1.0)
    assert said == {"error": "no answer in time"}
    _wait_until_gone(int((tmp_path / "pid").read_text()))


def test_one_that_hears_no_signal_is_ended_as_well(program: Callable[[str], list[str]]) -> None:
    assert output(program("trap '' TERM INT HUP; exec sleep 1000"), 0.5) == {"error": "no answer in time"}


def test_a_program_that_leaves_a_child_behind_has_answered(program: Callable[[str], list[str]]) -> None:
    assert output(program("sleep 5 & echo done"), 1.0) == {"status": 0, "output": "done\n"}


@pytest.mark.parametrize("script", ["exec yes", "yes >&2"])
def test_one_that_never_stops_printing_is_ended(program: Callable[[str], list[str]], script: str) -> None:
    assert output(program(script), FOREVER) == {"error": "it printed more than 400000 letters"}


def test_one_that_prints_much_to_both_does_not_block(program: Callable[[str], list[str]]) -> None:
    said = output(program("head -c 200000 /dev/zero >&2; head -c 200000 /dev/zero"), 30.0)
    assert len(said["output"]) == 200000


def test_programs_are_not_taken_from_the_folder_that_we_are_in(
    program: Callable[[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = program("echo wrong")
    monkeypatch.chdir(tmp_path)
    for path in ("", "/nowhere"):
        monkeypatch.setenv("PATH", path)
        assert output(words, 30.0) == {"error": "not installed"}


def test_those_that_still_run_are_ended_at_the_end(program: Callable[[str], list[str]]) -> None:
    said: list[dict[str, object]] = []
    thread = threading.Thread(target=lambda words: said.append(output(words, FOREVER)), args=(program("sleep 1000"),))
    started = len(machine.RUNNING)
    thread.start()
    while len(machine.RUNNING) == started:
        time.sleep(0.01)
    stop()
    thread.join()
    assert said == [{"status": -9, "output": "", "error": "exit status -9"}]


# ------------------------------------------------------------------------------------------------ client and server

SERVER = """
import os, socket, sys
listener = socket.socket()
listener.bind(("", int(sys.argv[-1])))
listener.listen(1)
open({folder!r} + "/server", "w").write(str(os.getpid()))
peer, _ = listener.accept()
{then}
"""
CLIENT = """
import socket, sys
peer = socket.create_connection((sys.argv[-1], int(sys.argv[-2])))
print(" ".join(sys.argv[1:3]), peer.recv(9).decode())
{then}
"""


@pytest.fixture
def pair(program: Callable[[str], list[str]], tmp_path: Path) -> Callable[..., list[str]]:
    """Makes a program that is a server, or a client if it has a host argument."""

    def make(server: str = "peer.send(b'hello')", client: str = "") -> list[str]:
        (tmp_path / "server.py").write_text(SERVER.format(folder=str(tmp_path), then=server))
        (tmp_path / "client.py").write_text(CLIENT.format(then=client))
        python = f"exec {sys.executable} -S {tmp_path}"
        return [*program(f'case "$*" in *127.0.0.1) {python}/client.py "$@";; *) {python}/server.py "$@";; esac'), "-d"]

    return make


def test_of_a_client_and_its_server_the_client_is_heard(pair: Callable[..., list[str]]) -> None:
    said = output_of_client([*pair("print('Waiting'); peer.send(b'hello')"), "rxe0"], 30.0)
    assert said == {"status": 0, "output": "-d rxe0 hello\n"}


@pytest.mark.parametrize("stalled", [{"server": "import time; time.sleep(1000)"}, {"client": "peer.recv(9); input()"}])
def test_neither_outlives_the_other(
    stalled: dict[str, str], pair: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "RUNNING", [])
    output_of_client(pair(**stalled), 3.0)
    assert len(machine.RUNNING) == 2
    assert all(one.poll() is not None for one in machine.RUNNING)
    _wait_until_gone(int((tmp_path / "server").read_text()))


def test_a_stalled_client_has_not_answered_and_its_server_is_ended(
    pair: Callable[..., list[str]], tmp_path: Path
) -> None:
    words = pair("import time; peer.send(b'x'); time.sleep(1000)", "import time; time.sleep(1000)")
    assert output_of_client(words, 2.0) == {"error": "no answer in time"}
    _wait_until_gone(int((tmp_path / "server").read_text()))


def test_a_server_that_does_not_start_says_why(program: Callable[[str], list[str]]) -> None:
    said = output_of_client(program("echo 'no device' >&2; exit 1"), 30.0)
    assert said == {"status": 1, "output": "", "error": "no device"}
    assert output_of_client(program("exec sleep 1000"), 0.5) == {"error": "no answer in time"}
    assert output_of_client(["no-such-program"], 30.0) == {"error": "not installed"}


def test_a_server_ends_even_without_its_collector(
    pair: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "kill", lambda _: None)
    output_of_client(pair("import time; time.sleep(1000)", "sys.exit(1)"), 1.0)
    _wait_until_gone(int((tmp_path / "server").read_text()))


def test_below_a_root_outputs_are_files(tmp_path: Path) -> None:
    write(tmp_path, "/commands/ethtool-i/hsn0", "driver: cxi\n" + "x" * 20000)
    here = Machine(str(tmp_path), FOREVER)
    assert here.ask("ethtool-i/hsn0", ["false"], 1.0) == {"status": 0, "output": "driver: cxi\n" + "x" * 20000}
    assert here.ask("ip-addr", ["ip"], 1.0) == {"error": "no such output in the tree"}


# ------------------------------------------------------------------------------------------------ names

OWN = '[{"addr_info": [{"local": "10.0.0.1", "scope": "global"}, {"local": "fe80::1", "scope": "link"}]}]'


def looked_up(text: str, limit_s: float = FOREVER) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {"of": {}, "to": {}}
    Machine("/", FOREVER).look_up(found, text, limit_s)
    return found


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Names of a host n1 with one address."""
    monkeypatch.setattr(socket, "gethostname", lambda: "n1")
    monkeypatch.setattr(socket, "gethostbyaddr", lambda _: ("n1.site.org", [], []))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", ("10.0.0.1", 0))] * 3)
    return monkeypatch


def test_own_addresses_have_names_and_these_have_addresses(resolver: pytest.MonkeyPatch) -> None:
    assert looked_up(OWN) == {
        "of": {"10.0.0.1": "n1.site.org"},
        "to": {"n1": ["10.0.0.1"], "n1.site.org": ["10.0.0.1"]},
    }


def test_an_address_without_a_name_says_why(resolver: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> None:
        raise socket.herror(1, "Unknown host")

    resolver.setattr(socket, "gethostbyaddr", unknown)
    assert looked_up(OWN)["of"] == {"10.0.0.1": ["Unknown host"]}


def test_a_name_server_that_is_silent_is_left_alone(resolver: pytest.MonkeyPatch) -> None:
    answer = threading.Event()

    def silent(*_: object) -> None:
        answer.wait()
        raise OSError

    for function in ("gethostbyaddr", "getaddrinfo"):
        resolver.setattr(socket, function, silent)
    assert looked_up(OWN, 0.2) == {"of": {}, "to": {}}  # and not: it has none
    answer.set()


@pytest.mark.parametrize("text", ["", "[", "3", "[3]", "[{}]", '[{"addr_info": 3}]', '[{"addr_info": [{"local": 3}]}]'])
def test_what_ip_does_not_say_is_not_looked_up(resolver: pytest.MonkeyPatch, text: str) -> None:
    assert looked_up(text)["of"] == {}

"""The program that pings: what it makes of ping's output, and what it does on this machine."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fablint.snapshot.agent import pinger as program
from fablint.snapshot.collecting import unpack
from fablint.snapshot.pinging import PAUSE_S, pinger

HEAD = "PING 10.0.0.2 (10.0.0.2) from 10.0.0.1 : 8972(9000) bytes of data.\n"
FINE = f"""{HEAD}8980 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.234 ms

--- 10.0.0.2 ping statistics ---
3 packets transmitted, 3 received, 0% packet loss, time 402ms
rtt min/avg/max/mdev = 0.034/0.234/0.534/0.100 ms
"""
BUSYBOX = """PING 10.0.0.2 (10.0.0.2): 56 data bytes
--- 10.0.0.2 ping statistics ---
3 packets transmitted, 1 packets received, 66% packet loss
round-trip min/avg/max = 0.111/0.333/0.666 ms
"""
UNHEARD = f"{HEAD}\n--- 10.0.0.2 ping statistics ---\n3 packets transmitted, 0 received, 100% packet loss, time 402ms\n"
GONE = UNHEARD.replace(" 0 received,", " 0 received, +3 errors,")
UNREACHABLE = GONE.replace("\n\n", "\nFrom 10.0.0.1 icmp_seq=1 Destination Host Unreachable\n\n", 1)
FRAGMENTED = GONE.replace("\n\n", "\nFrom 10.0.0.9 icmp_seq=1 Frag needed and DF set (mtu = 1500)\n\n", 1)
NO_NETWORK = GONE.replace("\n\n", "\nFrom 10.0.0.9 icmp_seq=1 Destination Net Unreachable\n\n", 1)


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ({"output": FINE, "status": 0}, "", None),
        ({"output": BUSYBOX, "status": 0}, "", None),
        ({"output": UNHEARD, "status": 1, "error": HEAD}, "no answer", ""),
        ({"error": "no answer in time"}, "no answer", ""),
        ({"output": UNREACHABLE}, "unreachable", "From 10.0.0.1 icmp_seq=1 Destination Host Unreachable"),
        ({"output": FRAGMENTED}, "mtu", "From 10.0.0.9 icmp_seq=1 Frag needed and DF set (mtu = 1500)"),
        ({"output": NO_NETWORK}, "no route", "From 10.0.0.9 icmp_seq=1 Destination Net Unreachable"),
        ({"output": "", "error": "ping: connect: Network is unreachable"}, "no route", None),
        ({"output": GONE, "error": "ping: local error: message too long, mtu=1500"}, "too long", None),
        ({"output": GONE, "error": "ping: local error: Message too long, mtu=1500"}, "too long", None),
        ({"output": GONE, "error": "ping: sendmsg: No route to host"}, "no route", "ping: sendmsg: No route to host"),
        (
            {"output": GONE.replace("\n\n", "\nFrom fd00::1 icmp_seq=1 Destination unreachable: No route\n\n", 1)},
            "no route",
            None,
        ),
        (
            {
                "output": GONE.replace(
                    "\n\n", "\nFrom fd00::1%eth0 icmp_seq=1 Destination unreachable: Address unreachable\n\n"
                )
            },
            "unreachable",
            None,
        ),
        ({"output": GONE.replace("\n\n", "\nFrom fd00::9 icmp_seq=1 Packet too big: mtu=1500\n\n", 1)}, "mtu", None),
        ({"output": FINE.replace("10.0.0.2: icmp", "fd00::2: icmp")}, "", None),
        ({"error": "not installed"}, "not run", "not installed"),
        ({"output": "", "error": "ping: socket: Operation not permitted"}, "not run", None),
        ({"output": "", "error": "ping: bind: Cannot assign requested address"}, "not run", None),
        ({"output": "\ufffd" * 10}, "not run", ""),
        ({}, "not run", ""),
    ],
)
def test_what_ping_prints(said, kind, text):
    found = program.understood(said)
    assert found["kind"] == kind
    if text is not None:
        assert found["text"] == text


def test_the_shortest_time_counts():
    assert program.understood({"output": FINE})["rtt_us"] == 34
    assert program.understood({"output": BUSYBOX})["rtt_us"] == 111


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (FINE, (2, 2)),
        (FINE.replace("3 received", "1 received"), (2, 1)),
        (FINE.replace("3 received", "1 received").replace("icmp_seq=1", "icmp_seq=3"), (2, 0)),
        (BUSYBOX, (3, 1)),
        (UNHEARD, (3, 0)),
        (UNREACHABLE, (3, 0)),
        ("nothing", (0, 0)),
    ],
)
def test_what_was_sent_and_what_came_back_is_counted(text, counts):
    """The last ping is not counted if any was answered."""
    found = program.understood({"output": text})
    assert (found["sent"], found["received"]) == counts


# ------------------------------------------------------------------------------------------------ sizes


def counted(text: str, sent: int, received: int) -> str:
    """What ping prints, with other figures; the last ping has the answer that is printed."""
    return (
        text.replace("icmp_seq=1 ttl", f"icmp_seq={sent} ttl")
        .replace("3 packets transmitted, 3", f"{sent} packets transmitted, {received}")
        .replace("3 packets transmitted, 0", f"{sent} packets transmitted, {received}")
    )


class Wire:
    """Stands for ping: answers frames up to so many bytes, from the n-th time on; of `lossy` sizes so many."""

    def __init__(
        self,
        largest: int,
        deaf: int = 0,
        otherwise: str = UNHEARD,
        error: str = "",
        lossy: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self.largest, self.deaf, self.said = largest, deaf, {"output": otherwise, "error": error}
        self.sizes: list[int] = []
        self.counts: list[int] = []
        self.lossy = {size: list(every) for size, every in (lossy or {}).items()}

    def __call__(self, argv: list[str], limit_s: float) -> dict[str, Any]:
        if argv[0] != "ping":
            return {"error": "not installed"}
        size = int(argv[argv.index("-s") + 1]) + 28
        self.sizes.append(size)
        assert argv[argv.index("-M") + 1] == "do"
        sent = int(argv[argv.index("-c") + 1])
        self.counts.append(sent)
        if self.lossy.get(size):
            received = self.lossy[size].pop(0)
            return {"output": counted(FINE if received else UNHEARD, sent, received)}
        passes = size <= self.largest and len(self.sizes) > self.deaf
        return (
            {**self.said, "output": counted(self.said["output"], sent, 0)}
            if not passes
            else {"output": counted(FINE, sent, sent)}
        )


def request(table: Sequence[Mapping[str, Any]], offsets: Sequence[int], **others: Any) -> dict[str, Any]:
    """Instructions of the first pass, with 3 pings per peer."""
    usual = {"count": 3, "limit_s": 60.0, "pause_s": 0.0, "lossy": []}
    return {"hosts": table, "offsets": offsets, **usual, **others}


def probed(monkeypatch: pytest.MonkeyPatch, wire: Wire, mtu: int, count: int = 3, limit_s: float = 60.0) -> list[Any]:
    """The row of the one peer that this machine has: kind, time, size that passes, text, sent and received."""
    monkeypatch.setattr(program, "output", wire)
    table = [row("me", socket.gethostname(), "10.0.0.1", mtu=mtu), row("b", "b", "10.0.0.2", mtu=mtu)]
    (found,) = program.reach(request(table, [1], count=count, limit_s=limit_s))["pings"]
    return list(found[2:])


@pytest.mark.parametrize(
    ("wire", "mtu", "kind", "passes"),
    [
        (Wire(9000), 9000, "", 0),
        (Wire(9000, deaf=1), 9000, "", 0),
        (Wire(8999), 9000, "mtu", 1500),
        (Wire(1499), 9000, "mtu", 84),
        (Wire(1499), 1500, "mtu", 84),
        (Wire(0), 9000, "no answer", 0),
        (Wire(1500, error="ping: local error: message too long, mtu=1500"), 9000, "too long", 1500),
        (Wire(0, otherwise=UNREACHABLE), 9000, "unreachable", 0),
        (Wire(65535), 65536, "", 0),
    ],
)
def test_black_hole_and_silence_are_reported_apart(monkeypatch, wire, mtu, kind, passes):
    found = probed(monkeypatch, wire, mtu)
    assert (found[0], found[2]) == (kind, passes)
    assert max(wire.sizes) == min(mtu, 65535)


def test_one_that_answers_is_not_asked_again(monkeypatch):
    wire = Wire(9000)
    assert probed(monkeypatch, wire, 9000) == ["", 34, 0, "", 2, 2]
    assert wire.sizes == [9000]


def test_as_many_pings_are_sent_as_the_front_end_wants(monkeypatch):
    wire = Wire(9000)
    assert probed(monkeypatch, wire, 9000, count=50) == ["", 34, 0, "", 48, 48]
    assert wire.counts == [3, 47]


def test_no_more_than_fit_into_the_time(monkeypatch):
    wire = Wire(9000)
    sent = probed(monkeypatch, wire, 9000, count=1000, limit_s=8.0)[4]
    assert 3 < sent <= 3 + 8.0 / program.GAP_S


@pytest.mark.parametrize(
    ("full", "smaller", "kind", "counts"),
    [
        ([0, 2], {1500: [9], 84: [9]}, "", (11, 1)),  # some full frames come: it is not a black hole
        ([0, 0], {1500: [2], 84: [1]}, "", (28, 1)),  # as much is lost of short ones
        ([0, 0], {1500: [9], 84: [9]}, "mtu", (12, 0)),
        ([0, 0], {1500: [0], 84: [8]}, "mtu", (12, 0)),  # a black hole beside some loss
        ([0, 0], {1500: [0], 84: [0]}, "no answer", (12, 0)),
    ],
)
def test_loss_is_no_black_hole(monkeypatch, full, smaller, kind, counts):
    found = probed(monkeypatch, Wire(0, lossy={9000: full, **smaller}), 9000)
    assert (found[0], tuple(found[4:])) == (kind, counts)
    assert (found[2] > 0) == (kind == "mtu")


def second_pass(monkeypatch: pytest.MonkeyPatch, me: str, *lossy: tuple[str, str]) -> dict[str, Any]:
    """Output of the second pass of a host of four with two rails each."""
    monkeypatch.setattr(program, "output", Wire(9000))
    monkeypatch.setattr(program, "place", lambda table: "abcd".index(me))
    table = [row(name, name, f"10.0.0.{number}", f"10.1.0.{number}") for number, name in enumerate("abcd", 1)]
    return program.reach(request(table, [1, 2], count=5, lossy=lossy))


@pytest.mark.parametrize(
    ("me", "pinged"),
    [
        ("a", [["b", "r1"], ["c", "r1"]]),
        ("b", []),
        ("c", [["a", "r1"]]),
        ("d", [["a", "r1"]]),
    ],
)
def test_the_second_pass_has_all_pairs_of_the_ends_with_losses(monkeypatch, me, pinged):
    found = second_pass(monkeypatch, me, ("a", "r1"))
    assert [one[:2] for one in found["pings"]] == pinged
    assert all(one[6:] == [4, 4] for one in found["pings"])
    assert found["names"] == []  # known from the first pass


def test_the_second_pass_begins_after_a_pause(monkeypatch):
    steps: list[Any] = []
    monkeypatch.setattr(program.time, "sleep", steps.append)
    monkeypatch.setattr(program, "place", lambda table: steps.append("begin") or 0)
    monkeypatch.setattr(program, "output", Wire(9000))
    text = pinger([row("a", "a", "10.0.0.1"), row("b", "b", "10.0.0.2")], [1], 3, "quick", [("a", "r0")])[1]
    program.reach(ast.literal_eval(text.rpartition("main(")[2].rstrip(")\n")))
    assert steps == [PAUSE_S, "begin"]
    assert PAUSE_S > 1.0


# ------------------------------------------------------------------------------------------------ own row


def row(name: str, own: str, *rails: str, mtu: int = 9000) -> dict[str, Any]:
    return {"host": name, "own": own, "rails": {f"r{n}": [one, mtu] for n, one in enumerate(rails)}}


def test_it_finds_itself_by_name_before_address():
    table = [row("a", "other", "127.0.0.1"), row("b", socket.gethostname(), "192.0.2.77")]
    assert program.place(table) == 1


def test_it_finds_itself_by_address_where_names_do_not_tell():
    assert program.place([row("a", "x", "192.0.2.77"), row("b", "x", "127.0.0.9")]) == 1
    own = socket.gethostname()
    assert program.place([row("a", own, "192.0.2.77"), row("b", own, "127.0.0.9")]) == 1


def test_a_host_without_a_row_is_an_error():
    said = program.reach(request([row("a", "x", "192.0.2.77")], [1]))
    assert "cannot find itself" in said["error"]


def test_partners_are_those_of_the_rounds_with_the_smaller_frame():
    table = [row("a", "a", "10.0.0.1"), row("b", "b", "10.0.0.2", mtu=1500), row("c", "c"), row("d", "d", "10.0.0.4")]
    assert list(program.pairs(table, 3, [1, 2, 3, 4])) == [
        ("a", "r0", "10.0.0.4", "10.0.0.1", 9000),
        ("b", "r0", "10.0.0.4", "10.0.0.2", 1500),
    ]


def test_partners_with_addresses_of_ipv6_and_none_of_the_other_kind():
    table = [row("a", "a", "fd00::1"), row("b", "b", "FD00:0::2", mtu=1500), row("c", "c", "10.0.0.3")]
    assert list(program.pairs(table, 0, [1, 2])) == [("b", "r0", "fd00::1", "fd00::2", 1500)]


def test_frames_of_ipv6_have_a_longer_header(monkeypatch):
    sizes = {}
    monkeypatch.setattr(program, "output", lambda argv, _: sizes.update({argv[-1]: argv[argv.index("-s") + 1]}) or {})
    program.ping("10.0.0.1", "10.0.0.2", 9000)
    program.ping("fd00::1", "fd00::2", 9000)
    assert sizes == {"10.0.0.2": "8972", "fd00::2": "8952"}


@pytest.mark.parametrize(
    "address", ["-f", "fd00::1%eth0;x", "fd00::1/64", "10.0.0.1;reboot", "", "example.org", "10.0.0.1 "]
)
def test_what_is_no_address_never_reaches_a_command_line(address):
    with pytest.raises(ValueError):
        program.pairs([row("a", "a", "10.0.0.1"), row("b", "b", address)], 0, [1])


def test_a_cut_off_host_does_not_try_everybody(monkeypatch):
    wire = Wire(0)
    monkeypatch.setattr(program, "output", wire)
    monkeypatch.setattr(program, "AT_ONCE", 1)
    own = socket.gethostname()
    table = [row("me", own, "10.0.0.1"), *(row(f"n{n}", f"n{n}", f"10.0.1.{n}") for n in range(1, 101))]
    said = program.reach(request(table, list(range(1, 101))))
    assert [one[2] for one in said["pings"]] == ["no answer"] * program.HOPELESS
    assert said["untried"] == 100 - program.HOPELESS


@pytest.mark.parametrize(
    ("text", "unsent"),
    [
        ("Ip: Forwarding\nIp: 1\nIcmp: InMsgs OutMsgs OutErrors\nIcmp: 9 8 7\nIcmpMsg: InType0\nIcmpMsg: 5\n", 7),
        ("Icmp: InMsgs OutMsgs\nIcmp: 9 8\n", 0),
        ("Icmp: InMsgs OutErrors\nIcmp: 9\n", 0),
        ("Icmp: OutErrors", 0),
        ("", 0),
    ],
)
def test_replies_that_the_kernel_could_not_send_are_counted(text, unsent):
    assert program.unsent_of(text) == unsent


def test_only_replies_of_the_pass_are_reported(monkeypatch):
    counts = iter([5, 12])
    monkeypatch.setattr(program, "unsent_replies", lambda: next(counts))
    monkeypatch.setattr(program, "output", Wire(9000))
    table = [row("me", socket.gethostname(), "10.0.0.1"), row("b", "b", "10.0.0.2")]
    assert program.reach(request(table, [1]))["unsent"] == 7


# ------------------------------------------------------------------------------------------------ for real


def test_it_runs_on_old_hosts():
    text = pinger([row("a", "a", "10.0.0.1")], [1], 3, "quick")[1]
    assert "fablint." not in "".join(line for line in text.splitlines() if line.startswith(("import", "from")))
    ast.parse(text, feature_version=(3, 6))


def run(table: list[dict[str, Any]], steps: list[int], **environ: str) -> Any:
    """What the program prints, as a host runs it: without fablint."""
    argv, text = pinger(table, steps, 3, "quick")
    there = {**os.environ, "PYTHONPATH": "", **environ}
    done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60, check=False, env=there, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) < 500
    return unpack(done.stdout, "fablint_reach")


@pytest.mark.skipif(shutil.which("ping") is None, reason="there is no ping")
def test_it_pings_on_this_machine():
    table = [row("me", socket.gethostname(), "127.0.0.1"), row("b", "b", "127.0.0.2"), row("c", "c", "127.0.0.3")]
    said = run(table, [1, 2])
    assert [one[:3] for one in said["pings"]] == [["b", "r0", ""], ["c", "r0", ""]]
    assert all(one[6] >= 2 for one in said["pings"])
    assert all(0 <= one[3] < 1e6 for one in said["pings"])
    assert said["untried"] == 0
    assert [one[:2] for one in said["names"]] == [["b", "127.0.0.2"], ["c", "127.0.0.3"]]


@pytest.mark.skipif(
    shutil.which("ping") is None or not program.is_mine("::1"), reason="there is no ping, or no address of IPv6"
)
def test_it_pings_addresses_of_ipv6_on_this_machine():
    table = [row("me", "x", "::1"), row("b", "b", "::1")]
    program_row = {**table[0], "own": socket.gethostname()}
    said = run([program_row, table[1]], [1])
    assert [one[:3] for one in said["pings"]] == [["b", "r0", ""]]
    assert [one[:2] for one in said["names"]] == [["b", "::1"]]


def test_without_ping_it_says_so(tmp_path):
    python = tmp_path / "python3"
    python.symlink_to(shutil.which("python3") or "")
    ping = tmp_path / "ping"
    ping.write_text("#!/bin/sh\necho 'ping: socket: Operation not permitted' >&2\nexit 2\n")
    ping.chmod(0o755)
    table = [row("me", socket.gethostname(), "127.0.0.1"), row("b", "b", "127.0.0.2")]
    said = run(table, [1], PATH=f"{tmp_path}:/bin")
    assert said["pings"] == [["b", "r0", "not run", None, 0, "ping: socket: Operation not permitted", 0, 0]]


@pytest.mark.parametrize("name", ["it's", '"""', "a\nb", "\\", "{x}", "é", "\x00"])
def test_names_are_data(name):
    said = run([row(name, socket.gethostname(), "127.0.0.1"), row(f"{name}2", "b", "127.0.0.2")], [1])
    assert [one[0] for one in said["pings"]] == [f"{name}2"]

"""The kernel log of a host: its records as lines, and the lines of a long log that are kept."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from fablint.snapshot.agent.log_records import LOG_LETTERS, last_records, records

FOREVER = 3600.0


def kmsg(*reads: bytes | OSError) -> Callable[[], bytes]:
    """Reads of /dev/kmsg, one after the other; then there is nothing more."""
    left = list(reads)

    def read() -> bytes:
        one = left.pop(0) if left else BlockingIOError()
        if isinstance(one, OSError):
            raise one
        return one

    return read


def test_records_have_priority_and_moment() -> None:
    said = records(
        kmsg(b"3,100,1500000,-;mce: [Hardware Error]\n SUBSYSTEM=cpu\n", b"30,101,2000000,c,x=1;caf\xc3\xa9; a\xff"),
        time.monotonic() + FOREVER,
    )
    assert said == {"output": "<3>[    1.500000] mce: [Hardware Error]\n<6>[    2.000000] café; a\ufffd"}


def test_what_was_overwritten_or_is_no_record_is_left_out() -> None:
    said = records(
        kmsg(BrokenPipeError(), b"", b"nonsense", b"6,1;x", b"6,1,y,-;x", b"6,7,0,-;kept\n"),
        time.monotonic() + FOREVER,
    )
    assert said == {"output": "<6>[    0.000000] kept"}


def test_a_log_that_cannot_be_read_says_why() -> None:
    said = records(kmsg(b"6,7,0,-;x", PermissionError(errno.EPERM, "Operation not permitted")), time.monotonic() + 60)
    assert said == {"error": "Operation not permitted"}


def test_a_log_without_an_end_is_given_up_and_is_no_log() -> None:
    said = records(lambda: b"3,1,1,-;again\n", time.monotonic() + 0.2)
    assert said["error"] == "it did not end in time"
    assert "again" in said["output"]
    assert len(said["output"]) <= LOG_LETTERS
    assert records(lambda: b"", time.monotonic() - 1) == {"output": "", "error": "it did not end in time"}


def test_of_a_long_log_the_end_is_kept_and_no_error_is_washed_away() -> None:
    news = [b"6,%d,%d,-;%s" % (n, n * 1000000, b"x" * 1000) for n in range(600)]
    lines = records(kmsg(b"2,0,0,-;first", *news, b"4,9,600000000,-;last"), time.monotonic() + FOREVER)["output"]
    first, *middle, last = lines.splitlines()
    assert (first, last) == ("<2>[    0.000000] first", "<4>[  600.000000] last")
    assert 80 < len(middle) < 100
    assert middle == sorted(middle)
    assert middle[-1].startswith("<6>[  599.0")


def test_the_line_that_names_the_memory_of_an_oom_kill_is_kept_in_a_long_log() -> None:
    """The kernel writes that line at the priority of news: a link that flaps displaced it from a real log."""
    news = [b"6,%d,%d,-;%s" % (n, n * 1000000, b"x" * 1000) for n in range(600)]
    kill = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null)"
    of_device = records(kmsg(f"6,0,0,-;{kill}".encode(), *news), time.monotonic() + FOREVER)["output"]
    of_program = last_records("\n".join([f"<6>[    0.000000] {kill}", *(["<6>[    1.000000] " + "x" * 1000] * 600)]))
    for log in (of_device, of_program):
        assert log.splitlines()[0] == f"<6>[    0.000000] {kill}"
        assert len(log) <= LOG_LETTERS

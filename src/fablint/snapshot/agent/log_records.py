# ruff: noqa: UP006, UP031, UP035
"""Reading of the kernel log: from /dev/kmsg, else from dmesg. Of a long log the last records are kept.

Sent to every host after machine.py: standard library only, Python 3.6, no files are written.
"""

import os
import re
import time
from collections import deque
from typing import Callable, Deque, Dict, List, Set, Tuple

from fablint.snapshot.agent.machine import LARGE, Machine

LOG_LETTERS = 200000  # characters that are kept
NEWS = 6  # first priority below warnings
OUT_OF_MEMORY = "oom-kill:"  # begins the one line that says whose memory ran out; its priority is that of news


def read_kernel_log(machine: Machine, limit_s: float) -> Dict[str, str]:
    """Return the kernel's records since boot as lines `<PRIORITY>[SECONDS] text`; the end of a long log."""
    if machine.root:
        text = machine.read("/var/log/dmesg", LARGE["dmesg"])
        return {"output": last_records(text)} if isinstance(text, str) else {"error": text[0]}
    try:
        device = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        answer = machine.ask("dmesg", ["dmesg", "--raw"], limit_s)
        if answer.get("status") == 0:
            return {"output": last_records(answer["output"])}
        return {"error": str(error.strerror)}
    try:
        return records(lambda: os.read(device, 8192), time.monotonic() + limit_s)
    finally:
        os.close(device)


def records(read: Callable[[], bytes], end: float) -> Dict[str, str]:
    """Read the records of /dev/kmsg; of too many the last below warnings and the last of the others."""
    log = Log()
    while time.monotonic() < end:
        try:
            record = read()
            head, _, text = record.decode("utf-8", "replace").partition(";")
            priority, _, moment = head.split(",")[:3]
            log.add(int(priority) & 7, int(moment) / 1e6, text.partition("\n")[0])
        except (BrokenPipeError, ValueError):
            continue  # overwritten, or not a record: continue with the next
        except BlockingIOError:
            return {"output": log.text()}
        except OSError as error:
            return {"error": str(error.strerror)}
    return {"output": log.text(), "error": "it did not end in time"}


class Log:
    """The last lines of two kinds, so that many informational lines do not displace errors."""

    def __init__(self) -> None:
        self.kept: Dict[bool, Deque[Tuple[int, str]]] = {True: deque(), False: deque()}
        self.letters = {True: 0, False: 0}
        self.count = 0

    def add(self, priority: int, moment: float, text: str) -> None:
        """Add a line; drop the oldest lines of its kind above the limit."""
        news, line = _is_news(priority, text), "<%d>[%12.6f] %s" % (priority, moment, text)
        self.count += 1
        self.kept[news].append((self.count, line))
        self.letters[news] += len(line) + 1
        while self.letters[news] > LOG_LETTERS / 2:
            self.letters[news] -= len(self.kept[news].popleft()[1]) + 1

    def text(self) -> str:
        """Return all lines in order."""
        return "\n".join(line for _, line in sorted(self.kept[True] + self.kept[False]))


def last_records(text: str) -> str:
    """Return the end of a log of `dmesg --raw`: up to half for warnings and errors, the rest for other lines."""
    if len(text) <= LOG_LETTERS:
        return text
    lines = text.splitlines()
    worse = [index for index, line in enumerate(lines) if not _is_line_of_news(line)]
    kept = _last(lines, worse, LOG_LETTERS // 2)
    room = LOG_LETTERS - sum(len(lines[index]) + 1 for index in kept)
    kept |= _last(lines, sorted(set(range(len(lines))) - set(worse)), room)
    return "\n".join(lines[index] for index in sorted(kept))


def _is_news(priority: int, text: str) -> bool:
    return priority >= NEWS and OUT_OF_MEMORY not in text


def _is_line_of_news(line: str) -> bool:
    head = re.match(r"<(\d+)>", line)
    return _is_news(NEWS if head is None else int(head.group(1)) & 7, line)


def _last(lines: List[str], among: List[int], letters: int) -> Set[int]:
    """Return the indices of the last lines that fit into a number of characters."""
    kept = set()
    for index in reversed(among):
        letters -= len(lines[index]) + 1
        if letters < 0:
            break
        kept.add(index)
    return kept

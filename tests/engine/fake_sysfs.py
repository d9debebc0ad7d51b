"""Copies of /sys of machines that are not here: tests/fixtures/sysfs, whose README.md says where they come from."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sysfs"
TICK_S = 0.02  # between two counts


class FakeSysfs:
    """A sysfs in a folder of the test's own."""

    def __init__(self, root: Path, fixture: str) -> None:
        self.root = root
        for line in (FIXTURES / f"{fixture}.txt").read_text().splitlines():
            name, sign, text = ([*line.split(maxsplit=2), ""])[:3]
            if sign == "=":
                self.set(name, text)
            elif sign == "->":
                link = root / name
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(text)

    def set(self, name: str, text: str) -> None:
        """Write an attribute, as a whole."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name("new")
        beside.write_text(f"{text}\n")
        beside.rename(file)

    @contextmanager
    def counting(self, name: str, first: int) -> Iterator[None]:
        """A counter of Slingshot's telemetry that goes up all the time."""
        ended = threading.Event()

        def count() -> None:
            value = first
            while not ended.wait(TICK_S):
                value += 1
                self.set(name, f"{value}@{value}.000000000")

        counter = threading.Thread(target=count)
        counter.start()
        try:
            yield
        finally:
            ended.set()
            counter.join()

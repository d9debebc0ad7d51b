"""Host name blocks: without any other source, every N hosts with consecutive numbers are assumed to share a switch."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from fablint.discover.facts import Attachment, Facts, Origin, SwitchFact
from fablint.errors import UsageError

_NUMBERED = re.compile(r"(.*?)(\d{1,18})(\D*)")


def name_blocks(hosts: Sequence[str], size: int) -> Facts:
    """Return one switch per `size` consecutive numbers, counted from the lowest; missing numbers count as well.

    Raises UsageError for a size below 1.
    """
    if size < 1:
        raise UsageError(f"--blocks {size}: not a positive number", "give the number of hosts on a switch")
    series: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for host in hosts:
        if match := _NUMBERED.fullmatch(host):
            series[match[1], match[3]].append((int(match[2]), host))
    places = []
    blocks: dict[tuple[str, str, int], str] = {}
    for key, numbered in sorted(series.items()):
        lowest = min(number for number, _ in numbered)
        for number, host in sorted(numbered):
            block = blocks.setdefault((*key, (number - lowest) // size), f"block{len(blocks)}")
            places.append(Attachment(host, block, Origin.BLOCKS))
    return Facts(tuple(places), switches=tuple(SwitchFact(name, Origin.BLOCKS) for name in blocks.values()))

"""Host name blocks: where nobody tells the switches, N hosts with neighbouring numbers are taken to share one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from fablint.discover.facts import Attachment, Facts, SwitchFact, Told
from fablint.errors import UsageError

_NUMBERED = re.compile(r"(.*?)(\d{1,18})(\D*)")


def name_blocks(hosts: Sequence[str], size: int) -> Facts:
    """A switch for each `size` numbers, counted from the lowest of the hosts; gaps stay gaps.

    Raises UsageError for a size below 1.
    """
    if size < 1:
        raise UsageError(f"--blocks {size}: no block", "give the number of hosts on a switch")
    alike: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for host in hosts:
        if match := _NUMBERED.fullmatch(host):
            alike[match[1], match[3]].append((int(match[2]), host))
    places = []
    blocks: dict[tuple[str, str, int], str] = {}
    for key, numbered in sorted(alike.items()):
        lowest = min(number for number, _ in numbered)
        for number, host in sorted(numbered):
            block = blocks.setdefault((*key, (number - lowest) // size), f"block{len(blocks)}")
            places.append(Attachment(host, block, Told.BLOCKS))
    return Facts(tuple(places), switches=tuple(SwitchFact(name, Told.BLOCKS) for name in blocks.values()))

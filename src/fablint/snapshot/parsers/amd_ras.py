"""Parser of the files that amdgpu has in DEVICE/ras: errors by block since the driver was loaded, and bad pages.

Linux, Documentation/gpu/amdgpu/ras.rst: `umc_err_count` has the lines `ue: 0` and `ce: 0`, since Linux 6.10 also
`de: 0`; `gpu_vram_bad_pages` has a line `0x00000001 : 0x00001000 : R` for each page (R reserved, P pending, F failed).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

_COUNT = re.compile(r"^(ue|ce|de): *(\d{1,18})$", re.MULTILINE)
_PAGE = re.compile(r"^0x[0-9a-f]+ : 0x[0-9a-f]+ : ([RPF])$", re.MULTILINE | re.IGNORECASE)


class BlockErrors(NamedTuple):
    """Errors of a block of a GPU."""

    uncorrectable: int
    corrected: int
    deferred: int


def block_errors(text: str | None) -> BlockErrors | None:
    """Parse the errors of a block; None if the driver does not report them."""
    counts = {kind: int(count) for kind, count in _COUNT.findall(text or "")}
    return BlockErrors(counts["ue"], counts.get("ce", 0), counts.get("de", 0)) if "ue" in counts else None


class BadPages(NamedTuple):
    """Numbers of bad pages of the memory of a GPU."""

    reserved: int  # no longer in use
    pending: int  # in use until the next reset
    failed: int  # still in use


def bad_pages(text: str | None) -> BadPages:
    """Count the bad pages."""
    states = Counter(state.upper() for state in _PAGE.findall(text or ""))
    return BadPages(states["R"], states["P"], states["F"])

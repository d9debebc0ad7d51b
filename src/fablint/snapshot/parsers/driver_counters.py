"""Parser of `ethtool -S`: counters of NIC drivers, each of which has names of its own.

One pattern for each kind of error, with the names of Linux 5.6 and 6.18: mlx5 (rx_symbol_err_phy, rx_crc_errors_phy,
rx_discards_phy, rx_out_of_buffer), bnxt_en (rx_fcs_err_frames, rx_align_err_frames, rx_pcs_symbol_err,
rx_fec_uncorrectable_blocks, rx_total_discard_pkts), ice (rx_crc_errors.nic, illegal_bytes.nic, tx_timeout.nic), ena
(tx_timeout, wd_expired, reset_fail, ena_admin_q_no_completion, bw_in_allowance_exceeded), gve (tx_timeouts,
adminq_timeouts).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

_COUNTER = re.compile(r"^\s*([\w. -]{1,80}): (\d{1,20})\s*$", re.MULTILINE)
_PLAIN = re.compile(r"[\w.]{1,80}")
_DAMAGED = re.compile(r"symbol_err|fcs_err|crc_err|align_err|illegal_bytes|fec_uncorrectable", re.IGNORECASE)
_TIMEOUT = re.compile(r"(?<!hwtstamp_)timeouts?(?:\.nic)?$|wd_expired|reset_fail|no_completion")
_DROPPED = re.compile(r"(?<!hwtstamp_)discard|out_of_buffer|allowance_exceeded", re.IGNORECASE)
_QUEUE = re.compile(r"^(?:[rt]x|ch|xdp)?_?(?:queue_)?\[?\d")  # of one queue: counted in the NIC's sum as well
_PAUSE = re.compile("pause|pfc|xoff", re.IGNORECASE)


@lru_cache(maxsize=4096)
def error_counters(text: str) -> Mapping[str, int]:
    """Return the error counters of the NIC as a whole, without those of single queues."""
    return {
        name: int(value)
        for name, value in _COUNTER.findall(text)
        if _is_error(name) and _PLAIN.fullmatch(name) and not _QUEUE.match(name)
    }


def _is_error(name: str) -> bool:
    return is_damage(name) or is_timeout(name) or _DROPPED.search(name) is not None


def is_damage(name: str) -> bool:
    """Tell whether an error counter counts damaged symbols or frames."""
    return _DAMAGED.search(name) is not None


def is_timeout(name: str) -> bool:
    """Tell whether an error counter counts queues and commands that the NIC did not serve in time."""
    return _TIMEOUT.search(name) is not None


class PauseGrowth(NamedTuple):
    """Counters of pause frames of a NIC: their growth between two readings, or since the boot."""

    sent: int
    received: int
    storms: int


def pause_growth(first: str, last: str) -> PauseGrowth | None:
    """Return the growth of the pause counters; None if the readings have no such counter."""
    before, after = (dict(_COUNTER.findall(text)) for text in (first, last))
    return _summed({name: int(after[name]) - int(before[name]) for name in before if name in after})


def pause_totals(text: str) -> PauseGrowth | None:
    """Return the pause counters since the boot; None if the reading has no such counter."""
    return _summed({name: int(count) for name, count in _COUNTER.findall(text)})


def _summed(counts: Mapping[str, int]) -> PauseGrowth | None:
    sums = {"sent": 0, "received": 0, "storms": 0}
    counters = [name for name in counts if _is_pause_count(name)]
    for name in counters:
        kind = "storms" if "storm" in name else "sent" if "tx" in name.lower() else "received"
        sums[kind] += max(counts[name], 0)
    return PauseGrowth(**sums) if counters else None


def _is_pause_count(name: str) -> bool:
    """Tell whether a counter counts pause frames, not their duration in microseconds or transitions."""
    return _PAUSE.search(name) is not None and "duration" not in name and "transition" not in name

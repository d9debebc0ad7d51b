"""How far the counters of a port moved during a run, and what that is a symptom of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fablint.snapshot.counter_widths import CODE_WORD_BITS, CXI_BITS, OLD_BITS

Symptom = Literal[
    "line_rx", "line_tx", "marked", "poisoned", "late", "down", "again", "loopback", "rails", "neighbours"
]

TCP_LOST = "tcp_segments_lost"  # no counter of a NIC: what TCP sent again, by the rows of a run
CXI_PREFIXES = ("hni_", "pct_")
# Counters by symptom, and how much they must move: what happens now and then on healthy links does not count. Names are
# those of the cxi driver's telemetry, of InfiniBand's counters/ and mlx5's hw_counters/, and of Linux' net statistics/
# (struct rtnl_link_stats64). One that ends in * is a family.
MEANS: Mapping[Symptom, Mapping[str, int]] = {
    "line_rx": {
        "hni_pcs_uncorrected_cw": 1,
        "hni_llr_rx_replay_event": 10,
        "symbol_error": 10,
        "port_rcv_errors": 1,
        "local_link_integrity_errors": 1,
        "rx_crc_errors": 1,
        "rx_frame_errors": 1,
    },
    "line_tx": {"hni_llr_tx_replay_event": 10, "hni_llr_tx_discard": 1},
    "marked": {"hni_rx_bad_opt": 1, "hni_rx_bad_ieee": 1, "port_rcv_remote_physical_errors": 1},
    "poisoned": {"hni_tx_poisoned_opt": 1, "hni_tx_poisoned_ieee": 1, "tx_fifo_errors": 1, "tx_aborted_errors": 1},
    "late": {
        "hni_discard_cntr_*": 1,
        "hni_pfc_fifo_oflw_cntr_*": 1,
        "pct_no_tct_nacks": 1,
        "pct_no_trs_nacks": 1,
        "pct_no_mst_nacks": 1,
        "out_of_buffer": 1,
        "rnr_nak_retry_err": 1,
        "excessive_buffer_overrun_errors": 1,
        "rx_missed_errors": 1,
        "rx_fifo_errors": 1,
        "rx_over_errors": 1,
    },
    "down": {"carrier_changes": 1, "link_downed": 1, "link_error_recovery": 1},
    "again": {
        "pct_sct_timeouts": 1,
        "pct_spt_timeouts": 1,
        "pct_tct_timeouts": 1,
        "pct_retry_srb_requests": 10,
        "pct_bad_seq_nacks": 10,
        "local_ack_timeout_err": 1,
        "packet_seq_err": 10,
        "out_of_sequence": 10,
        "implied_nak_seq_err": 10,
        "roce_adp_retrans": 10,
        TCP_LOST: 10,
    },
}
WORST_LINE = 1e-8  # corrected code words per bit; healthy ones have 1e-12 to 1e-9


@dataclass(frozen=True)
class CounterSteps:
    """What the counters of one port counted in the run, by their own names. What saturated is not among them."""

    by: Mapping[str, int]

    def symptoms(self) -> dict[Symptom, bool]:
        """Which symptoms these counters show, and which they show to be absent; the others nobody counted."""
        seen: dict[Symptom, bool] = {}
        for symptom, counters in MEANS.items():
            counted = [self.by[name] >= least for name, least in self._those(counters)]
            if counted:
                seen[symptom] = any(counted)
        if self._corrects_much():
            seen["line_rx"] = True
        if seen.get("line_rx") and "marked" in seen:
            del seen["marked"]  # bad packets come of bad code words then
        return seen

    def _those(self, counters: Mapping[str, int]) -> list[tuple[str, int]]:
        """Names that were read, and how much each must move."""
        found = [(name, least) for name, least in counters.items() if name in self.by]
        families = [(name[:-1], least) for name, least in counters.items() if name.endswith("*")]
        return found + [(name, least) for name in self.by for start, least in families if name.startswith(start)]

    def _corrects_much(self) -> bool:
        """Does the forward error correction have more to do than on a healthy line?"""
        corrected, good = self.by.get("hni_pcs_corrected_cw", 0), self.by.get("hni_pcs_good_cw", 0)
        return corrected >= 10 and corrected > WORST_LINE * CODE_WORD_BITS * (corrected + good)


def count_steps(counters: Mapping[str, Any], host: str, nic: str) -> CounterSteps | None:
    """What a NIC counted between `before` and `after`, as the run's `counters` attribute has them; None if nothing."""
    before, after = ((counters.get(when) or {}).get(host, {}).get(nic) for when in ("before", "after"))
    if not before or not after:
        return None
    moved = {name: _step(name, before[name], after[name]) for name in after if name in before}
    return CounterSteps({name: step for name, step in moved.items() if step is not None})


def _step(name: str, before: int, after: int) -> int | None:
    """How far a counter moved; None where it stood at its maximum all the time, so that nobody knows."""
    largest = (1 << OLD_BITS[name]) - 1 if name in OLD_BITS else None
    if largest is not None and before >= largest and after >= largest:
        return None
    if after >= before:
        return after - before
    around = after - before + (1 << CXI_BITS)
    # Less than half way round it wrapped; else somebody cleared it, and it counted what it shows.
    return around if name.startswith(CXI_PREFIXES) and around < 1 << (CXI_BITS - 1) else after

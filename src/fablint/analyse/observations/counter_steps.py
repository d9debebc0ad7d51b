"""Differences of port counters during a run, and the symptoms that they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fablint.analyse.settings import WORST_LINE
from fablint.model.facts.run_attributes import PortCounters
from fablint.snapshot.counter_widths import CODE_WORD_BITS, CXI_BITS, OLD_BITS

Symptom = Literal[
    "line_rx", "line_tx", "marked", "poisoned", "late", "down", "again", "loopback", "rails", "neighbours", "cpu_wait"
]

TCP_LOST = "tcp_segments_lost"  # segments that TCP sent again, from the rows of a run; not a counter of a NIC
CXI_PREFIXES = ("hni_", "pct_")
# Counters by symptom, and the smallest difference that counts: a few events occur on healthy links. Names are those of
# the telemetry of the cxi driver, of InfiniBand's counters/ and mlx5's hw_counters/, and of Linux' net statistics/
# (struct rtnl_link_stats64). A name that ends in * stands for all names with that beginning.
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


@dataclass(frozen=True)
class CounterSteps:
    """Differences of the counters of one port during the run, by name. Counters that saturated are missing."""

    by: Mapping[str, int]

    def symptoms(self) -> dict[Symptom, bool]:
        """Return for each symptom whether it was observed; a symptom without counters is missing."""
        observed: dict[Symptom, bool] = {}
        for symptom, counters in MEANS.items():
            counted = [self.by[name] >= least for name, least in self._read_counters(counters)]
            if counted:
                observed[symptom] = any(counted)
        if self._is_corrected_often():
            observed["line_rx"] = True
        if observed.get("line_rx") and "marked" in observed:
            del observed["marked"]  # bad code words explain bad packets
        return observed

    def _read_counters(self, counters: Mapping[str, int]) -> list[tuple[str, int]]:
        """Return the counters of a symptom that were read, with the smallest difference that counts."""
        exact = [(name, least) for name, least in counters.items() if name in self.by]
        prefixes = [(name[:-1], least) for name, least in counters.items() if name.endswith("*")]
        return exact + [(name, least) for name in self.by for start, least in prefixes if name.startswith(start)]

    def _is_corrected_often(self) -> bool:
        """Return whether forward error correction has more to do than on a healthy line."""
        corrected, good = self.by.get("hni_pcs_corrected_cw", 0), self.by.get("hni_pcs_good_cw", 0)
        return corrected >= 10 and corrected > WORST_LINE * CODE_WORD_BITS * (corrected + good)


def count_steps(counters: PortCounters, host: str, nic: str) -> CounterSteps | None:
    """Return how far the counters of a NIC moved between the start and the end of a run.

    Parameters
    ----------
    counters
        Counters of the run, by host and NIC.
    host, nic
        Names of the host and of its NIC.

    Returns
    -------
    CounterSteps or None
        None if the counters were not read both times.
    """
    before, after = ((table or {}).get(host, {}).get(nic) for table in (counters.before, counters.after))
    if not before or not after:
        return None
    steps = {name: _step(name, before[name], after[name]) for name in after if name in before}
    return CounterSteps({name: step for name, step in steps.items() if step is not None})


def _step(name: str, before: int, after: int) -> int | None:
    """Return the difference of a counter; None if it stood at its maximum all the time and the difference is
    unknown.
    """
    largest = (1 << OLD_BITS[name]) - 1 if name in OLD_BITS else None
    if largest is not None and before >= largest and after >= largest:
        return None
    if after >= before:
        return after - before
    wrapped = after - before + (1 << CXI_BITS)
    # A difference of less than half the range is a wrap. Otherwise the counter was cleared, and its value is the count.
    return wrapped if name.startswith(CXI_PREFIXES) and wrapped < 1 << (CXI_BITS - 1) else after

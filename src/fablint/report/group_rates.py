"""Rates of all ranks together: those of nccl-tests, and the total of pairs that send at the same time."""

from __future__ import annotations

from fablint.model import Row
from fablint.model.registry import KERNELS
from fablint.text import units


def group_rates(row: Row) -> dict[str, float]:
    """Bytes that each rate of a row counts for each byte of the message size, by name, the principal rate first.

    `busbw` and `algbw` of a collective over NCCL, as nccl-tests defines them; `total of 8 pairs` and `per pair` where a
    file has one figure for all pairs. Empty for other rows.
    """
    if row.pattern != "world":
        return {}
    if pairs := row.facts.schedule.pairs:
        pair_bytes = float(row.counted_bytes(1))
        return {f"total of {units.plural(pairs, 'pair')}": pairs * pair_bytes, "per pair": pair_bytes}
    kernel = KERNELS.get(row.kernel)
    if kernel is None or not kernel.nccl_test or row.facts.carrier.transport != "nccl":
        return {}
    members = row.facts.schedule.collective_ranks or row.arrays["count"].shape[0]
    algorithm = float(members if kernel.is_of_parts else 1)
    return {"busbw": algorithm * kernel.bus_share(members), "algbw": algorithm}


def group_figures(row: Row, size: int, seconds: float | None) -> dict[str, str]:
    """The rates of a row at a size in words, and the time of a collective; empty where there are none."""
    rates = group_rates(row) if seconds else {}
    figures = {name: units.rate(factor * size / seconds) for name, factor in rates.items() if seconds}
    if rates and seconds and not units.is_rate(row.quantity):
        figures["time"] = units.duration(seconds)
    return figures

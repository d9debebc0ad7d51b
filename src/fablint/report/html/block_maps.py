"""Medians over the pairs of two switches, of two groups, or of two blocks of hosts: few rounds make a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from fablint.model import Placement, Row
from fablint.model.figures.grouped_values import GroupedValues
from fablint.model.names import natural
from fablint.report.drawings.scales import bulk_scale, deviation_scale
from fablint.report.html.packing import coded, packed
from fablint.report.survey.measured_cells import MeasuredCells
from fablint.text import units

MOST_BLOCKS = 1024  # of a matrix, where a page has the matrices of so many rows:
_ROWS = 2  # of more, matrices are smaller: a cell takes about 13 bytes of page
_FEWEST_PAIRS = 6  # of two blocks of hosts, on average
_FRAMED = 0.2  # share of a cell's measurements from which it is framed


@dataclass(frozen=True)
class Blocks:
    """A division of the axes: name and first place of each block."""

    what: str
    names: tuple[str, ...]
    starts: tuple[int, ...]  # and the number of ranks at the end
    fewest: int = 2  # blocks that are worth a matrix

    def code(self, place: np.ndarray) -> np.ndarray:
        """(n,) block of each rank; `place` of each rank in the order of the axes."""
        return np.searchsorted(np.array(self.starts), place, side="right") - 1


def divisions(placement: Placement, order: np.ndarray, cells: int, rows: int = 1) -> list[Blocks]:
    """Divisions worth a matrix, the finest first. `cells` are those measured of the row, `rows` all of the page."""
    hosts = []
    most = int(MOST_BLOCKS * min(1.0, (_ROWS / rows) ** 0.5))
    for what, code, names in (
        ("switch", placement.switch, placement.switches),
        ("group", placement.group, placement.groups),
    ):
        if len(names) > 1:
            hosts.append(_runs(what, code[order], names))
    if len(hosts) > 1 and hosts[0].names == hosts[1].names:
        del hosts[1]
    if not hosts or placement.ranks > len(hosts[-1].names) >= most:
        hosts.append(_hosts(placement, order, cells, most))
    return [one for one in hosts if one.fewest <= len(one.names) < min(most, placement.ranks)]


def _runs(what: str, code: np.ndarray, names: tuple[str, ...]) -> Blocks:
    starts = [0, *(np.flatnonzero(np.diff(code)) + 1).tolist()]
    labels = tuple(names[code[start]] if code[start] >= 0 else f"no {what}" for start in starts)
    return Blocks(what, labels, (*starts, code.size))


def _hosts(placement: Placement, order: np.ndarray, cells: int, most: int) -> Blocks:
    """Blocks of as many consecutive ranks as have a few pairs with another block."""
    n = order.size
    side = int(np.clip(np.ceil(n * np.sqrt(_FEWEST_PAIRS / max(cells, 1))), 1, n))
    side = max(side, -(-n // (most - 1)))
    starts = np.linspace(0, n, -(-n // side) + 1).round().astype(int).tolist()
    hosts = [[placement.hosts[code] for code in placement.host[order[a:b]]] for a, b in pairwise(starts)]
    return Blocks("block of hosts", tuple(map(_block_name, hosts)), tuple(starts), fewest=3)


def _block_name(hosts: Sequence[str]) -> str:
    """`n[001-016]`, or where that is longer the first and the last host: `n003..x17`."""
    ends = hosts[0] if hosts[0] == hosts[-1] else f"{hosts[0]}..{hosts[-1]}"
    return min(units.fold(sorted({*hosts}, key=natural)), ends, key=len)


@dataclass(frozen=True)
class BlockCells:
    """The cells of a matrix of blocks that have measurements, and the measurements of each."""

    blocks: Blocks
    used: np.ndarray  # (u,) cells, line by line
    group: np.ndarray  # (k,) of each measurement the position in `used`
    pairs: np.ndarray  # (u,) measurements

    @classmethod
    def of(cls, cells: MeasuredCells, blocks: Blocks, place: np.ndarray) -> Self:
        code, count = blocks.code(place), len(blocks.names)
        used, group = np.unique(code[cells.src].astype(np.int64) * count + code[cells.dst], return_inverse=True)
        return cls(blocks, used, group, np.bincount(group, minlength=used.size))

    def frames(self, measured: Sequence[tuple[np.ndarray, bool]]) -> Frames:
        """Cells that are framed, for each finding; `measured` are its measurements, and whether it is about hosts.

        Those of which a good part crosses its component. Where no cell has so many, a host is `diluted`: the cells of
        which any measurement crosses it.
        """
        shares = [np.bincount(self.group[one], minlength=self.used.size) / self.pairs for one, _ in measured]
        diluted = [
            is_of_hosts and not (share >= _FRAMED).any()
            for share, (_, is_of_hosts) in zip(shares, measured, strict=True)
        ]
        framed = [share > 0 if few else share >= _FRAMED for share, few in zip(shares, diluted, strict=True)]
        return Frames(framed, diluted)


@dataclass(frozen=True)
class Frames:
    """The cells of BlockCells that are framed; one item for each finding."""

    framed: Sequence[np.ndarray]  # (k,) of the measured cells: is it framed?
    diluted: Sequence[bool]

    def facts(self, used: np.ndarray) -> dict[str, Any]:
        """Return the facts for the page; `used` (k,) are the places of the measured cells in the matrix."""
        return {
            "framed": [packed(used[one], "<i4") for one in self.framed],
            "diluted": [bool(one) for one in self.diluted],
        }


def block_map(row: Row, size: int, cells: MeasuredCells, block_cells: BlockCells, frames: Frames) -> dict[str, Any]:
    """One matrix for the page: medians of the times and of the residuals."""
    used = block_cells.used
    time, residual = (
        GroupedValues.of(item, block_cells.group, used.size).medians() for item in (cells.time, cells.residual)
    )
    finite_residuals = residual[np.isfinite(residual)]
    return common_facts(row, size, block_cells.blocks.what, block_cells.blocks.names) | {
        "label": f"{row.name}, {units.size(size)}: {_title(block_cells.blocks)}",
        **planes(used, time, residual, block_cells.pairs),
        **frames.facts(used),
        "fitted": bool(finite_residuals.size),
        "raw_scale": bulk_scale(time[np.isfinite(time)]),
        "residual_scale": (scale := deviation_scale(finite_residuals)),
        "noise": scale / 8,
    }


def planes(at: np.ndarray, time: np.ndarray, residual: np.ndarray, pairs: np.ndarray) -> dict[str, Any]:
    """Values of the cells `at` (k,) of a matrix, line by line: the others hold nothing."""
    counts = packed(np.minimum(pairs, 65535), "<u2")
    return {"at": packed(at, "<i4"), "time": coded(time), "residual": coded(residual), "pairs": counts}


def late_map(
    row: Row, size: int, block_cells: BlockCells, late: tuple[np.ndarray, float], frames: Frames
) -> dict[str, Any]:
    """Return the same for the share of late messages, the mean over pairs.

    The scale ends at six standard deviations of the bulk, or at the largest share of a cell that is framed.
    """
    share = np.bincount(block_cells.group, late[0], block_cells.used.size) / block_cells.pairs
    middle = float(np.median(share)) if share.size else 0.0
    high = middle + max(0.02, 6 * 1.4826 * float(np.median(np.abs(share - middle))) if share.size else 0.0)
    high = max(high, *(float(share[one].max(initial=0.0)) for one in frames.framed), 0.0)
    return common_facts(row, size, block_cells.blocks.what, block_cells.blocks.names) | {
        "label": f"{row.name}, {units.size(size)}: late messages, {_title(block_cells.blocks)}",
        **planes(block_cells.used, share, np.full(block_cells.used.size, np.nan), block_cells.pairs),
        **frames.facts(block_cells.used),
        "fitted": False,
        "late": late[1],
        "raw_scale": [max(0.0, 2 * middle - high), min(1.0, high)],
        "residual_scale": 1.0,
    }


def _title(blocks: Blocks) -> str:
    return f"{blocks.what} x {blocks.what}" if blocks.what != "block of hosts" else "blocks of hosts"


def common_facts(row: Row, size: int, kind: str, names: Sequence[str]) -> dict[str, Any]:
    """Entries that all matrices of medians have."""
    return {
        "kind": kind,
        "row": row.name,
        "size": size,
        "rate": units.is_rate(row.quantity),
        "bytes": row.counted_bytes(size),
        "payload": row.payload,
        "names": names,
        "noise": 0.0,
    }

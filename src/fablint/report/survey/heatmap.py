"""A matrix as an image: cells in the order of the topology, thinned out so that the worst cell of a block survives.

A cell carries its time as a 16-bit code of the logarithm, split over two planes of bytes; code 0 is a cell that was not
measured. Where cells stand for blocks, further planes say which cell of the block is shown, so that the page can name
the pair. Each plane is compressed by itself: codes are shifted so that the median lies in the middle of a byte, and the
high bytes of the bulk are all the same. (HiGlass, Genome Biology 2018, shows matrices of this size as tiles of means; a
mean would hide the one bad pair of a block.)
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fablint.model import Placement
from fablint.model.names import natural

EDGE = 1500  # cells a side that a page draws at most
PIXELS = 2_700_000  # of all maps of a page together; one pixel costs about 5 bytes of page
BLOCK_PIXELS = 1_600_000  # of maps of blocks, which have two layers and the places in the blocks: about 10 bytes each
_FINEST_STEP = 1e-3  # of the logarithm: a time is shown to 0.05 %
_CODES = 65_000
_BYTE = 256


def topological_order(placement: Placement) -> np.ndarray:
    """Ranks sorted by group, switch, host: (n,) int32. Where no topology is known, by host. All by name."""
    keys = (
        np.arange(len(placement.host)),
        _natural_places(placement.hosts)[placement.host],
        _natural_places(placement.switches)[placement.switch],
        _natural_places(placement.groups)[placement.group],
    )
    return np.lexsort(keys).astype(np.int32)


def _natural_places(names: tuple[str, ...]) -> np.ndarray:
    """Place of every name in natural order; one more at the end, for index -1 (unknown)."""
    places = np.full(len(names) + 1, len(names))
    places[sorted(range(len(names)), key=lambda index: natural(names[index]))] = np.arange(len(names))
    return places


def block_side(ranks: int, maps: int) -> int:
    """Ranks per cell side, so that `maps` maps of `ranks` x `ranks` fit into one page."""
    if ranks <= min(EDGE, int((PIXELS / max(1, maps)) ** 0.5)):
        return 1
    return -(-ranks // min(EDGE, int((BLOCK_PIXELS / max(1, maps)) ** 0.5)))


class Layer:
    """The worst measured pair of every block, by a key that grows with badness.

    Lines are blocks of source ranks; across lie blocks of destinations, or rounds.
    """

    def __init__(self, lines: int, across: int) -> None:
        self.key = np.full((lines, across), -np.inf, dtype=np.float32)
        self.log_time = np.full((lines, across), np.nan, dtype=np.float32)
        self.source = np.zeros((lines, across), dtype=np.uint8)  # place of the source inside its block
        self.partner = np.full((lines, across), -1, dtype=np.int32)  # place of the destination in the order

    def offer(self, line: int, source: int, key: np.ndarray, log_time: np.ndarray, partner: np.ndarray) -> None:
        """Keep what is worse than what the line had; arrays are (across,)."""
        better = key > self.key[line]
        self.key[line, better] = key[better]
        self.log_time[line, better] = log_time[better]
        self.source[line, better] = source
        self.partner[line, better] = partner[better]


class HeatMap:
    """Collects one map from blocks of source ranks in any order.

    `order` (n,) are the ranks in the order of the axes, `side` the ranks per cell; `rounds` is given for a run with a
    pair list, whose map has a round per row and a source per column.
    """

    def __init__(self, order: np.ndarray, side: int, rounds: int | None = None) -> None:
        self.order, self.side, self.rounds = order, side, rounds
        self.place = np.empty_like(order)
        self.place[order] = np.arange(len(order), dtype=order.dtype)
        self.lines = -(-len(order) // side)
        self.across = self.lines if rounds is None else rounds
        names = ("raw",) if side == 1 else ("raw", "residual")
        self.layers = {name: Layer(self.lines, self.across) for name in names}

    def add(self, src: np.ndarray, dst: np.ndarray, log_time: np.ndarray, residual: np.ndarray) -> None:
        """Add source ranks `src` (b,): partners (b or 1, m), log times and residuals (b, m), NaN where missing."""
        for name, layer in self.layers.items():
            badness = log_time if name == "raw" else np.nan_to_num(residual, nan=-1e30)  # measured, but no model
            key = np.where(np.isnan(log_time), -np.inf, badness)
            if self.rounds is None:
                cells = self._thin(key.astype(np.float32), log_time)
            else:
                partner = np.where(dst >= 0, self.place[np.maximum(dst, 0)], -1)
                cells = key, log_time, partner
            for index, place in enumerate(self.place[src]):
                layer.offer(place // self.side, place % self.side, *(part[index] for part in cells))

    def _thin(self, key: np.ndarray, log_time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return of every block of destinations the worst: key, log time, place of the destination, each (b,
        across).
        """
        spare = self.lines * self.side - len(self.order)
        columns = np.pad(self.order, (0, spare), mode="edge")  # a cell twice in its block changes nothing
        shape = (len(key), self.lines, self.side)
        blocks = key[:, columns].reshape(shape)
        inside = blocks.argmax(axis=2)
        place = np.minimum(inside + np.arange(self.lines) * self.side, len(self.order) - 1)
        rank = self.order[place]
        return np.take_along_axis(key, rank, 1), np.take_along_axis(log_time, rank, 1), place

    def bulk(self, shares: Sequence[float]) -> list[float]:
        """Quantiles of the log times of the cells: of blocks they are those of the worst pairs, which are slower."""
        times = self.layers["raw"].log_time
        quantile: list[float] = np.quantile(times[np.isfinite(times)], shares).tolist()
        return quantile

    def encode(self) -> dict[str, Any]:
        """Return what the page needs to draw the map, as JSON-able values."""
        times = np.concatenate([layer.log_time[np.isfinite(layer.log_time)] for layer in self.layers.values()])
        low, middle, high = np.quantile(times, (0.0, 0.5, 1.0)).tolist() if times.size else (0.0, 0.0, 0.0)
        step = max(_FINEST_STEP, (high - low) / _CODES)
        low -= step * ((_BYTE // 2 - 1 - round((middle - low) / step)) % _BYTE)
        return {
            "layout": "matrix" if self.rounds is None else "list",
            "width": self.across if self.rounds is None else self.lines,
            "height": self.lines if self.rounds is None else self.rounds,
            "side": self.side,
            "low": low,
            "step": step,
            "layers": {name: self._planes(layer, low, step) for name, layer in self.layers.items()},
        }

    def _planes(self, layer: Layer, low: float, step: float) -> dict[str, str]:
        """Planes by name, line by line, as base64 of what zlib makes of them."""
        measured = np.isfinite(layer.log_time)
        code = np.where(measured, 1 + np.rint((np.nan_to_num(layer.log_time) - low) / step), 0).astype(np.int64)
        planes = {"high": code >> 8, "low": code & 255}
        if self.side > 1:
            planes["source"] = layer.source.astype(np.int64)
        if self.rounds is not None:
            partner = np.maximum(layer.partner, 0).astype(np.int64)
            planes |= {f"partner{byte}": (partner >> 8 * byte) & 255 for byte in range(3)}
        elif self.side > 1:
            planes["partner"] = np.where(measured, layer.partner - np.arange(self.across) * self.side, 0)
        if self.rounds is not None:
            planes = {name: plane.T for name, plane in planes.items()}
        return {name: base64.b64encode(_compressed(plane)).decode() for name, plane in planes.items()}


def _compressed(plane: np.ndarray) -> bytes:
    """The bytes of a plane in the format of zlib: by repeated strings, or where those are noise by frequencies only."""
    content, attempts = plane.astype(np.uint8).tobytes(), []
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        stream = zlib.compressobj(6, memLevel=9, strategy=strategy)
        attempts.append(stream.compress(content) + stream.flush())
    return min(attempts, key=len)

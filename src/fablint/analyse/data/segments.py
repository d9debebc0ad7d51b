"""TCP segments of each directed pair of hosts, and how many of them were lost: what the rows' attribute `tcp` holds.

The sender counts what it sends again. What the receiver had already (the acknowledgement was lost, or late) is not
lost: the receiver says so, and it is subtracted. So what is left was lost on the way from the sender to the receiver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fablint.analyse.data.rank_places import Codes, Places
from fablint.model import Row, Run

PATTERNS = frozenset({"pair", "pairs", "all-pairs", "bisection", "random", "rounds"})  # where no two send to one host
CALM_BYTES = 8192  # a message that fits into TCP's first window fills no queue of a switch
LITTLE = 0.02  # share of a host's segments, which an interface that carries no messages does not reach
MOST_LOST = 0.5  # share of the reports of a direction that is allowed for
ROUNDS = 3  # in which the losses of both directions of a pair are told apart
MOST_MATRIX_RANKS = 4096  # of a matrix whose pairs are read

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Segments:
    """Directed pairs of hosts that were measured, and their segments in some rows.

    `sent` and `spurious` are known of pairs with losses only: of the others 0. `total` is known of all together.
    """

    hosts: Codes  # (u, 2) sender and receiver
    ranks: Codes  # (u, 2) a rank of each
    switches: Codes  # (u, 2) -1 where unknown, or where the ranks of a host have several
    sent: Codes  # (u,)
    lost: Codes  # (u,)
    spurious: Codes  # (u,)
    interfaces: tuple[frozenset[str], ...]  # of each host, by code: those that carry messages
    lossy: tuple[frozenset[tuple[str, str]], ...]  # (u,) of each pair: interfaces between which segments were lost
    knows_spurious: bool  # False: kernels of some hosts do not say what the receiver had already
    total: int  # segments that all hosts sent

    @property
    def share(self) -> npt.NDArray[np.float64]:
        """(u,) share of the segments that was lost."""
        return self.lost / np.maximum(self.sent, 1)


def segments_of(run: Run, places: Places, *, calm: bool) -> Segments | None:
    """The segments of all calm rows, or of all others; None where TCP lost none, or was not used.

    Rows are calm when a message is on its way alone and is short: what they lose is no congestion of their own.
    """
    rows = [row for row in run.rows if _counts(row) and _is_calm(row) is calm]
    if not any(row.attributes["tcp"].get("pairs") for row in rows):
        return None
    hosts, ranks = _measured(rows, places)
    size = len(places.hosts)
    position = {(int(a), int(b)): at for at, (a, b) in enumerate(hosts.tolist())}
    table = np.zeros((len(hosts), 3), np.int64)  # sent, sent again, spurious
    traffic: list[Counter[str]] = [Counter() for _ in range(size)]
    lossy: list[set[tuple[str, str]]] = [set() for _ in range(len(hosts))]
    code = {name: number for number, name in enumerate(places.hosts)}
    for row in rows:
        tcp = row.attributes["tcp"]
        ends = [_end(text, code) for text in tcp["ends"]]
        for end, sent in zip(ends, tcp["sent"], strict=True):
            if end is not None:
                traffic[end[0]][end[1]] += sent
        for src, dst, sent, again, spurious in tcp["pairs"]:
            here, there = ends[src], ends[dst]
            at = position.get((here[0], there[0])) if here and there else None
            if at is not None and here and there:
                table[at] += (sent, again, spurious)
                lossy[at].add((here[1], there[1]))
    return Segments(
        hosts,
        ranks,
        _switches(places)[hosts],
        table[:, 0],
        _lost(table, hosts, size),
        table[:, 2],
        tuple(map(_used, traffic)),
        tuple(map(frozenset, lossy)),
        all(row.attributes["tcp"].get("knows_spurious", False) for row in rows),
        sum(sum(one.values()) for one in traffic),
    )


def _lost(table: Codes, hosts: Codes, size: int) -> Codes:
    """(u,) segments that were lost, at least: what was sent again, less what had arrived already.

    A report that a segment had arrived already may be lost itself, with the share of the opposite direction: those
    that were not heard of are subtracted as well, with three standard deviations of their number.
    """
    again, spurious = table[:, 1].astype(float), table[:, 2].astype(float)
    known = np.maximum(table[:, 0], 1)
    opposite = _opposite(hosts, size)
    lost = again - spurious
    for _ in range(ROUNDS):
        share = np.where(opposite >= 0, (lost / known)[opposite], 0.0)
        share = np.clip(share, 0.0, MOST_LOST)
        heard = np.maximum(1 - share, 1 - MOST_LOST)
        lost = np.where(spurious > 0, again - spurious / heard - 3 * np.sqrt(again * share), again)
        lost = np.maximum(lost, 0.0)
    return np.asarray(np.rint(lost), np.int64)


def _opposite(hosts: Codes, size: int) -> Codes:
    """(u,) position of the pair from the receiver to the sender; -1 where it was not measured."""
    key, turned = hosts[:, 0] * size + hosts[:, 1], hosts[:, 1] * size + hosts[:, 0]
    at = np.minimum(np.searchsorted(key, turned), max(key.size - 1, 0))  # `hosts` are sorted by this key
    return np.asarray(np.where(key[at] == turned, at, -1))


def _counts(row: Row) -> bool:
    """Were segments counted while messages moved between two hosts at a time?"""
    said: Any = row.attributes.get("tcp")
    return bool(said) and row.pattern in PATTERNS and row.attributes.get("transport") != "null"


def _is_calm(row: Row) -> bool:
    windows = row.attributes.get("windows") or [0]
    return row.quantity == "latency" and set(windows) == {1} and max(row.sizes) <= CALM_BYTES


def _end(text: str, code: dict[str, int]) -> tuple[int, str] | None:
    """Host and interface of `nid001/hsn0`; None for a host that is not of the run."""
    host, _, interface = text.rpartition("/")
    return (code[host], interface) if host in code else None


def _used(traffic: Mapping[str, int]) -> frozenset[str]:
    """Interfaces that carry messages: a launcher's connection, over another network, has a few segments."""
    every = sum(traffic.values())
    return frozenset(name for name, sent in traffic.items() if sent > LITTLE * every)


def _measured(rows: Sequence[Row], places: Places) -> tuple[Codes, Codes]:
    """(u, 2) hosts and ranks of the directed pairs of hosts that exchanged messages in these rows, each once."""
    size = len(places.hosts)
    found = [np.zeros((0, 2), np.int64)]
    for row in rows:
        for ranks in _rank_pairs(row):
            found += [ranks, ranks[:, ::-1]]  # what is not sent is acknowledged, or answered
    ranks = np.concatenate(found)
    hosts = places.host[ranks]
    between = hosts[:, 0] != hosts[:, 1]
    ranks, hosts = ranks[between], hosts[between]
    _, first = np.unique(hosts[:, 0] * size + hosts[:, 1], return_index=True)
    return hosts[first], ranks[first]


def _rank_pairs(row: Row) -> Iterable[Codes]:
    """(k, 2) ranks whose pair was measured."""
    if row.layout == "list":
        dst = np.asarray(row.arrays["dst"][:], np.int64)
        measured = (np.asarray(row.arrays["count"][:]) > 0).any(axis=-1) & (dst >= 0)
        src, column = np.nonzero(measured)
        yield np.stack([src, dst[src, column]], axis=1)
    elif row.arrays["count"].shape[1] <= MOST_MATRIX_RANKS:
        for repeat in range(row.arrays["count"].shape[0]):
            count = np.asarray(row.arrays["count"][repeat])
            yield np.argwhere((count > 0).any(axis=-1)).astype(np.int64)


def _switches(places: Places) -> Codes:
    """(hosts,) code of the switch of each host; -1 where it is unknown, or there are several."""
    low = np.full(len(places.hosts), np.iinfo(np.int64).max)
    high = np.full(len(places.hosts), -1)
    np.minimum.at(low, places.host, places.switch)
    np.maximum.at(high, places.host, places.switch)
    return np.asarray(np.where(low == high, high, -1))

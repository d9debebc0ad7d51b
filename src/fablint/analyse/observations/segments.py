"""TCP segments of each directed pair of hosts, sent and lost, from the attribute `tcp` of the rows.

The sender counts the segments that it sends again. Some of these had arrived (their acknowledgement was lost or late):
the receiver reports them, and they are subtracted. The rest was lost on the path from the sender to the receiver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fablint.analyse.settings import CALM_BYTES, HALF, LITTLE_TRAFFIC
from fablint.model import Placement, Row, Run
from fablint.model.arrays import Codes, Floats, RankPairs
from fablint.model.host_name import NicRef
from fablint.model.registry import moves_nothing

# patterns in which no two ranks send to one host
PATTERNS = frozenset({"pair", "pairs", "all-pairs", "bisection", "random", "rounds"})
ROUNDS = 3  # iterations in which the losses of the two directions of a pair are separated
MOST_MATRIX_RANKS = 4096  # of the largest matrix that is read


@dataclass(frozen=True)
class Segments:
    """Directed pairs of hosts that were measured, and their TCP segments in several rows.

    `sent` and `spurious` are known for pairs with losses only, and 0 for other pairs. `total` is known for all pairs
    together.
    """

    hosts: Codes  # (u, 2) sender and receiver
    ranks: Codes  # (u, 2) one rank of each host
    switches: Codes  # (u, 2) codes of switches; -1: unknown, or the ranks of a host have several
    sent: Codes  # (u,)
    lost: Codes  # (u,)
    spurious: Codes  # (u,)
    interfaces: tuple[frozenset[str], ...]  # of each host, by code: interfaces that carry messages
    lossy: tuple[frozenset[tuple[str, str]], ...]  # (u,) interfaces of each pair between which segments were lost
    knows_spurious: bool  # whether all hosts report which segments the receiver had already
    total: int  # number of segments that all hosts sent

    @property
    def share(self) -> Floats:
        """(u,) share of the segments that was lost."""
        return self.lost / np.maximum(self.sent, 1)


def read_segments(run: Run, placement: Placement, *, calm: bool) -> Segments | None:
    """Return the TCP segments of the calm rows of a run, or of the other rows.

    A row is calm if it sends short messages one at a time: its losses are not caused by its own congestion.

    Parameters
    ----------
    run
        Run whose rows may have counted TCP segments.
    placement
        Hosts of the ranks.
    calm
        Whether to read the calm rows or the others.

    Returns
    -------
    Segments or None
        None if TCP lost no segment or was not used.
    """
    rows = [row for row in run.rows if _has_segments(row) and _is_calm(row) is calm]
    counted = [row.facts.result.tcp for row in rows if row.facts.result.tcp is not None]
    if not any(tcp.pairs for tcp in counted):
        return None
    hosts, ranks = _measured(rows, placement)
    size = len(placement.hosts)
    position = {(int(a), int(b)): at for at, (a, b) in enumerate(hosts.tolist())}
    table = np.zeros((len(hosts), 3), np.int64)  # sent, sent again, spurious
    traffic: list[Counter[str]] = [Counter() for _ in range(size)]
    lossy: list[set[tuple[str, str]]] = [set() for _ in range(len(hosts))]
    code = {name: number for number, name in enumerate(placement.hosts)}
    for tcp in counted:
        ends = [_end(text, code) for text in tcp.ends]
        for end, sent in zip(ends, tcp.sent, strict=True):
            if end is not None:
                traffic[end[0]][end[1]] += sent
        for src, dst, sent, resent, spurious in tcp.pairs:
            sender, receiver = ends[src], ends[dst]
            at = position.get((sender[0], receiver[0])) if sender and receiver else None
            if at is not None and sender and receiver:
                table[at] += (sent, resent, spurious)
                lossy[at].add((sender[1], receiver[1]))
    return Segments(
        hosts,
        ranks,
        _switches(placement)[hosts],
        table[:, 0],
        _lost(table, hosts, size),
        table[:, 2],
        tuple(map(_used, traffic)),
        tuple(map(frozenset, lossy)),
        all(tcp.knows_spurious for tcp in counted),
        sum(sum(counter.values()) for counter in traffic),
    )


def _lost(table: Codes, hosts: Codes, size: int) -> Codes:
    """Return the (u,) smallest number of lost segments: segments that were sent again, less those that had arrived.

    The report that a segment had arrived may be lost as well, with the share of the opposite direction. The reports
    that are missing are subtracted too, with three standard deviations of their number.
    """
    resent, spurious = table[:, 1].astype(float), table[:, 2].astype(float)
    sent = np.maximum(table[:, 0], 1)
    opposite = _opposite(hosts, size)
    lost = resent - spurious
    for _ in range(ROUNDS):
        share = np.where(opposite >= 0, (lost / sent)[opposite], 0.0)
        share = np.clip(share, 0.0, HALF)
        reported = np.maximum(1 - share, 1 - HALF)
        lost = np.where(spurious > 0, resent - spurious / reported - 3 * np.sqrt(resent * share), resent)
        lost = np.maximum(lost, 0.0)
    return np.asarray(np.rint(lost), np.int64)


def _opposite(hosts: Codes, size: int) -> Codes:
    """Return the (u,) position of the pair in the opposite direction; -1 if it was not measured."""
    key, turned = hosts[:, 0] * size + hosts[:, 1], hosts[:, 1] * size + hosts[:, 0]
    at = np.minimum(np.searchsorted(key, turned), max(key.size - 1, 0))  # `hosts` are sorted by this key
    return np.asarray(np.where(key[at] == turned, at, -1))


def _has_segments(row: Row) -> bool:
    """Return whether segments were counted while at most two hosts at a time exchanged messages."""
    return (
        row.facts.result.tcp is not None and row.pattern in PATTERNS and not moves_nothing(row.facts.carrier.transport)
    )


def _is_calm(row: Row) -> bool:
    """Return whether a row sends short messages, one at a time."""
    windows = row.facts.sampling.windows or [0]
    return row.quantity == "latency" and set(windows) == {1} and max(row.sizes) <= CALM_BYTES


def _end(text: str, code: dict[str, int]) -> tuple[int, str] | None:
    """Return host code and interface of text such as `nid001/hsn0`; None for a host that is not in the run."""
    end = NicRef(text)
    return (code[end.host], end.device) if end.host in code else None


def _used(traffic: Mapping[str, int]) -> frozenset[str]:
    """Return the interfaces that carry messages. A launcher's connection over another network has a few segments
    only.
    """
    total = sum(traffic.values())
    return frozenset(name for name, sent in traffic.items() if sent > LITTLE_TRAFFIC * total)


def _measured(rows: Sequence[Row], placement: Placement) -> tuple[Codes, Codes]:
    """Return the (u, 2) hosts and (u, 2) ranks of the directed pairs of hosts that exchanged messages, each pair
    once.
    """
    size = len(placement.hosts)
    pairs_of_rows: list[RankPairs] = [np.zeros((0, 2), np.int64)]
    for row in rows:
        for ranks in _rank_pairs(row):
            pairs_of_rows += [
                ranks,
                ranks[:, ::-1],
            ]  # both directions carry segments: messages, answers or acknowledgements
    ranks = np.concatenate(pairs_of_rows)
    hosts = placement.host[ranks]
    between = hosts[:, 0] != hosts[:, 1]
    ranks, hosts = ranks[between], hosts[between]
    _, first = np.unique(hosts[:, 0] * size + hosts[:, 1], return_index=True)
    return hosts[first], ranks[first]


def _rank_pairs(row: Row) -> Iterable[RankPairs]:
    """Yield the pairs that were measured."""
    if row.layout == "list":
        dst = np.asarray(row.arrays["dst"][:], np.int64)
        measured = (np.asarray(row.arrays["count"][:]) > 0).any(axis=-1) & (dst >= 0)
        src, column = np.nonzero(measured)
        yield np.stack([src, dst[src, column]], axis=1)
    elif row.arrays["count"].shape[1] <= MOST_MATRIX_RANKS:
        for repeat in range(row.arrays["count"].shape[0]):
            count = np.asarray(row.arrays["count"][repeat])
            yield np.argwhere((count > 0).any(axis=-1)).astype(np.int64)


def _switches(placement: Placement) -> Codes:
    """Return the (hosts,) code of the switch of each host; -1: unknown, or several switches."""
    low = np.full(len(placement.hosts), np.iinfo(np.int64).max)
    high = np.full(len(placement.hosts), -1)
    np.minimum.at(low, placement.host, placement.switch)
    np.maximum.at(high, placement.host, placement.switch)
    return np.asarray(np.where(low == high, high, -1))

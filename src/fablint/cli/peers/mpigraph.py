"""Command lines of mpiGraph: `mpiGraph SIZE TIMES WINDOW`, all three or none."""

from __future__ import annotations

from fablint.cli.peers.peer_lines import GivenLine, Peer, PeerWords
from fablint.errors import UsageError

_OPTIONS = ("--sizes", "--iterations", "--window")


def _translate(line: GivenLine) -> PeerWords:
    if len(line.words) not in (0, len(_OPTIONS)):
        raise UsageError(f"{line.name}: {len(line.words)} words", "give SIZE TIMES WINDOW, or none of them")
    words = [word for pair in zip(_OPTIONS, line.words, strict=False) for word in pair]
    note = "mpiGraph's ranks send to one rank and receive from another at a time; here both ends of a pair send at once"
    return PeerWords("mpiGraph", words, [note])


MPIGRAPH = Peer("mpiGraph", (), families=("mpiGraph",), programs=("mpigraph",), translate=_translate)

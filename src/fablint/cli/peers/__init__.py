"""Command lines of other programs, as `fablint bench` understands them: one table of options for each program."""

from fablint.cli.peers.imb import IMB
from fablint.cli.peers.mpigraph import MPIGRAPH
from fablint.cli.peers.nccl_tests import NCCL_TESTS
from fablint.cli.peers.osu import LETTERS, OSU
from fablint.cli.peers.peer_lines import Peer, peer_line
from fablint.cli.peers.perftest import PERFTEST

PEERS = (OSU, NCCL_TESTS, IMB, MPIGRAPH, PERFTEST)

__all__ = ["PEERS", "Peer", "peer_line", "peer_of"]


def peer_of(name: str, family: str) -> Peer | None:
    """Return the program whose options a benchmark or a name has; None for one with the options of `bench` only."""
    return next((peer for peer in (*PEERS, LETTERS) if family in peer.families or name in peer.programs), None)

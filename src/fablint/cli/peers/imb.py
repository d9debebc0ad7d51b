"""Command lines of the Intel MPI Benchmarks (src_cpp/*/*_suite.cpp of 2021): `IMB-MPI1 PingPong -iter 100`."""

from __future__ import annotations

from fablint.cli.peers.peer_lines import GivenLine, Peer, PeerWords
from fablint.cli.peers.peer_options import PeerOption, absent, only, ours
from fablint.errors import UsageError
from fablint.model.registry import KERNELS

_PROGRAMS = ("IMB-MPI1", "IMB-NBC", "IMB-RMA", "IMB-P2P")
# Benchmark of IMB, in small letters -> benchmark of `bench`, and options: collectives have the names of kernels.
_COLLECTIVES = {name: name for name, kernel in KERNELS.items() if kernel.is_collective}
_KERNELS = {
    **_COLLECTIVES,
    "pingpong": "latency",
    "pingping": "exchange",
    "uniband": "bandwidth --window 256",
    "biband": "bibandwidth --window 256",
    "reduce_scatter": "reduce_scatterv",
    "unidir_put": "put_bandwidth",
    "unidir_get": "get_bandwidth",
    "bidir_put": "put_bibandwidth",
    "accumulate": "accumulate",
    "get_accumulate": "get_accumulate",
    "fetch_and_op": "fop",
    "compare_and_swap": "cas",
}
_LARGEST_LOG = 30


def _translate(line: GivenLine) -> PeerWords:
    names = [*line.words]
    if line.name in _PROGRAMS:
        if len(names) != 1:
            raise UsageError(
                f"{line.name}: one benchmark at a time", f"name it, as in fablint bench {line.name} PingPong"
            )
    elif names:
        raise UsageError(f"{line.name} takes no word '{names[0]}'", "measure one benchmark at a time")
    else:
        names = [line.name]
    ours = _KERNELS.get(names[0].lower())
    if ours is None:
        benchmark_names = ", ".join(sorted(_KERNELS))
        raise UsageError(f"fablint measures nothing like {names[0]} of IMB", f"it has {benchmark_names}")
    name, *words = ours.split()
    note = f"{names[0]} of IMB is measured as: fablint bench {ours}; counts, statistics and table are fablint's"
    return PeerWords(name, words, [note])


def _sizes(value: str) -> list[str]:
    """`MIN:MAX` or `MAX`, logarithms to base 2: 0, then powers of 2. Ours begin with the smallest power."""
    first, colon, last = value.partition(":")
    first, last = (first, last) if colon else ("0", first)
    if not (first + last).isdecimal() or not int(first) <= int(last) <= _LARGEST_LOG:
        raise UsageError(
            f"'{value}' is not a range of logarithms", f"give MIN:MAX of at most {_LARGEST_LOG}, such as 0:22"
        )
    return ["--sizes", f"{1 << int(first)}:{1 << int(last)}"]


def _repetitions(value: str) -> list[str]:
    if "," in value:
        raise UsageError(f"'{value}' has limits of volume", "give the number of repetitions alone, such as -iter 1000")
    return ["--iterations", value]


IMB = Peer(
    "IMB",
    (
        PeerOption("-msglog", "MIN:MAX", "sizes of 2^MIN to 2^MAX bytes", _sizes),
        ours("-msgsize", "LIST", "--sizes"),
        PeerOption("-iter", "N", "--iterations N, without the limits of volume", _repetitions),
        ours("-time", "SECONDS", "--budget"),
        ours("-window_size", "N", "--window"),
        only("-iter_policy", "POLICY", "off", "-iter is the exact number"),
        only("-sync", "on|off", "on 1 enable yes", "a barrier precedes each call of a collective"),
        only("-root_shift", "on|off", "off 0 disable no", "rank 0 is the root"),
        only("-imb_barrier", "on|off", "off 0 disable no", "the barrier is that of MPI"),
        only("-data_type", "TYPE", "byte char", "messages are bytes"),
        only("-red_data_type", "TYPE", "float", "reductions add floats"),
        absent("-npmin", "N", "all ranks take part: give their number with -n"),
        absent("-multi", "0|1", "bandwidth and latency with -n N measure the pairs i and i + n/2 at once"),
        absent("-map", "PxQ", "ranks are placed by --hosts, in its order"),
        absent("-off_cache", "SIZE", "buffers stay the same within a size"),
        absent("-mem", "GB", "sizes end where buffers exceed 512 MiB"),
        absent("-msglen", "FILE", "give the sizes with -msgsize"),
        absent("-input", "FILE", "measure one benchmark at a time"),
        absent("-include", "NAME", "measure one benchmark at a time"),
        absent("-exclude", "NAME", "measure one benchmark at a time"),
    ),
    programs=(*_PROGRAMS, *(name.capitalize() for name in _KERNELS), "PingPong", "PingPing"),
    translate=_translate,
)

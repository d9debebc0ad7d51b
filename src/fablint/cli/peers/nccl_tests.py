"""Command lines of nccl-tests (README and src/common.cu of 2.13 and later)."""

from __future__ import annotations

from fablint.cli.peers.peer_lines import GivenLine, Peer, PeerWords, without_words
from fablint.cli.peers.peer_options import PeerOption, absent, only, ours
from fablint.errors import UsageError
from fablint.model.registry.option_values import parse_bytes, parse_whole

_DEFAULTS = {"b": "32M", "e": "32M", "i": "1M"}  # of the sizes, if one of them is given
_FLOAT = 4  # bytes: a message has whole elements
_MOST_SIZES = 1000


def _translate(line: GivenLine) -> PeerWords:
    without_words(line)
    if not {*"beif"} & {*line.options}:
        return PeerWords(line.name)
    sizes = _sizes(line)
    return PeerWords(line.name, ["--sizes", ",".join(map(str, sizes))])


def _sizes(line: GivenLine) -> list[int]:
    """Return the sizes from -b to -e by factors (-f) or steps (-i), in whole elements."""
    first, last, step = (_size(line, letter) for letter in "bei")
    factor = _factor(line)
    if first > last:
        raise UsageError(f"{line.name}: -b {first} is larger than -e {last}", "give -b of at most -e")
    size = max(first, 1)
    sizes: list[int] = []
    while size <= last and len(sizes) <= _MOST_SIZES:
        sizes.append(size // _FLOAT * _FLOAT)
        size = size * factor if factor else size + step
    if len(sizes) > _MOST_SIZES:
        raise UsageError(f"{line.name}: more than {_MOST_SIZES} sizes from -b to -e", "give -f 2, or a larger -i")
    if not (whole := list(dict.fromkeys(filter(None, sizes)))):
        raise UsageError(f"{line.name}: no size of at least {_FLOAT} bytes, a float", "give a larger -e")
    return whole


def _size(line: GivenLine, letter: str) -> int:
    try:
        return parse_bytes(line.options.get(letter, _DEFAULTS[letter]))
    except UsageError as error:
        raise UsageError(f"-{letter} of nccl-tests: {error.message}", error.hint) from None


def _factor(line: GivenLine) -> int:
    """Return the factor between sizes; 0: steps."""
    text = line.options.get("f", "0")
    if text != "0" and parse_whole(text) < 2:
        raise UsageError(f"-f {text} of nccl-tests is not a factor", "give 2 or more, or omit it for steps of -i")
    if text == "0" and "b" in line.options and _size(line, "i") == 0:
        raise UsageError("-i 0 of nccl-tests is not a step", "give a step of at least 1 byte, or -f 2")
    return int(text)


def _checks(value: str) -> list[str]:
    return [] if value == "0" else ["--validate"]


NCCL_TESTS = Peer(
    "nccl-tests",
    (
        PeerOption("-b --minbytes", "SIZE", "smallest size [32M if -e, -f or -i is given]"),
        PeerOption("-e --maxbytes", "SIZE", "largest size [32M if -b, -f or -i is given]"),
        PeerOption("-f --stepfactor", "N", "factor between sizes [none: steps]"),
        PeerOption("-i --stepbytes", "SIZE", "step between sizes [1M]"),
        ours("-g --ngpus", "N", "--ranks"),
        ours("-n --iters", "N", "--iterations"),
        ours("-w --warmup_iters", "N", "--warmup"),
        PeerOption("-c --check", "N", "0: no check; other numbers: --validate", _checks),
        only("-d --datatype", "TYPE", "float", "messages are floats"),
        only("-o --op", "OP", "sum", "reductions add"),
        only("-r --root", "RANK", "0", "rank 0 is the root"),
        only("-z --blocking", "0..3", "0", "calls follow one another, then one synchronisation"),
        only("-t --nthreads", "N", "1", "each rank is a process with one GPU (-g N starts N)"),
        only("-m --agg_iters", "N", "1", "calls are not aggregated"),
        only("-N --run_cycles", "N", "1", "each size is measured once"),
        only("-p --parallel_init", "0|1", "0", "the start of NCCL is not timed"),
        only("-a --average", "0..3", "1", "a time is the mean of all ranks"),
        only("-G --cudagraph", "N", "0", "calls are not captured"),
        only("-C --report_cputime", "0|1", "0", "times are those of the call and its synchronisation"),
        only("-R --local_register", "0..2", "0", "buffers are not registered"),
        only("-D --device_implementation", "N", "0", "calls are those of the host"),
        only(
            "-S --report_timestamps",
            "0|1",
            "0",
            "-o RUN of other benchmarks (--output RUN here) keeps when each was measured",
        ),
        only("-M --memory", "0|1", "0", "memory is not reported"),
        only("-u --unalign", "N", "0", "buffers are aligned"),
        only("-I --per_iter_timing", "0|1", "0", "the calls of a batch have one time"),
        only("-y --stream_null", "0|1", "0", "calls use a stream of their own"),
        absent("-J --output_file", "FILE", "--output RUN keeps the figures, fablint export RUN writes them as JSON"),
        absent("-T --timeout", "SECONDS", "--budget TIME limits each size"),
        absent("-x --cta_policy", "N", "set NCCL_CTA_POLICY in the environment"),
        absent("-V --device_cta_count", "N", "calls are those of the host"),
        absent("-K --per_iter_skip", "N", "the calls of a batch have one time: -w sets untimed calls"),
    ),
    families=("nccl-tests",),
    translate=_translate,
)

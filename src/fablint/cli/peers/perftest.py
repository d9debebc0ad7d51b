"""Command lines of perftest (`ib_write_bw -s 65536 -d mlx5_0`): the same operation over the transport verbs."""

from __future__ import annotations

from dataclasses import dataclass

from fablint.cli.peers.peer_lines import GivenLine, Peer, PeerWords
from fablint.cli.peers.peer_options import PeerOption, absent, ours
from fablint.errors import UsageError
from fablint.model.registry.option_values import parse_whole


@dataclass(frozen=True)
class _Program:
    """A program of perftest: its benchmarks of `bench`, for both directions at once too, and its defaults."""

    name: str
    both: str  # empty: perftest has no -b for it
    size: str
    messages: int

    @property
    def is_stream(self) -> bool:
        """Tell whether several messages are in flight."""
        return "bandwidth" in self.name


_PROGRAMS = {
    "ib_send_bw": _Program("bandwidth", "bibandwidth", "64K", 1000),
    "ib_write_bw": _Program("put_bandwidth", "put_bibandwidth", "64K", 5000),
    "ib_read_bw": _Program("get_bandwidth", "", "64K", 1000),
    "ib_send_lat": _Program("latency", "", "2", 1000),
    "ib_write_lat": _Program("put_latency", "", "2", 1000),
    "ib_read_lat": _Program("get_latency", "", "2", 1000),
    "ib_atomic_lat": _Program("fop", "", "8", 1000),
}
_DEPTH = 128  # messages in flight of the bandwidths
_ALL = "2:8M"  # sizes of -a


def _translate(line: GivenLine) -> PeerWords:
    program = _PROGRAMS[line.name]
    if line.words:
        raise UsageError(f"{line.name}: '{line.words[0]}' is not an option", "name both hosts: --hosts HOST,HOST")
    if "b" in line.options and not program.both:
        raise UsageError(f"-b of {line.name} is not available", "the kernel has one direction: omit -b")
    name = program.both if "b" in line.options else program.name
    sizes = _ALL if "a" in line.options else line.options.get("s", program.size)
    words = ["--transport", "verbs", "--sizes", sizes]
    depth = 1
    if program.is_stream:
        depth = parse_whole(line.options.get("t", str(_DEPTH)))
        words += ["--window", str(depth)]
    elif "t" in line.options:
        raise UsageError(f"-t of {line.name} is not available", "one message is in flight: omit -t")
    if "D" not in line.options:
        messages = parse_whole(line.options.get("n", str(program.messages)))
        words += ["--iterations", str(-(-messages // depth))]
    if device := line.options.get("d"):
        words += ["--device", f"{device}:{line.options['i']}" if "i" in line.options else device]
    elif "i" in line.options:
        raise UsageError(f"-i of {line.name} requires -d", "give -d DEVICE as well")
    return PeerWords(name, words, [_note(line.name, name, words)])


def _note(program: str, name: str, words: list[str]) -> str:
    return f"{program} is measured as: fablint bench {name} {' '.join(words)}; statistics and table are fablint's"


PERFTEST = Peer(
    "perftest",
    (
        PeerOption("-s --size", "BYTES", "--sizes BYTES [64K; latencies: 2]"),
        PeerOption("-a --all", "", f"--sizes {_ALL}"),
        PeerOption("-n --iters", "N", "messages of a size [1000; ib_write_bw: 5000]"),
        PeerOption("-t --tx-depth", "N", f"--window N, of bandwidths [{_DEPTH}]"),
        PeerOption("-b --bidirectional", "", "the kernel of both directions"),
        PeerOption("-d --ib-dev", "DEVICE", "--device DEVICE"),
        PeerOption("-i --ib-port", "N", "port of -d: --device DEVICE:N"),
        PeerOption(
            "-D --duration", "SECONDS", "--budget SECONDS in the place of a number", lambda value: ["--budget", value]
        ),
        ours("-x --gid-index", "N", "--gid-index"),
        ours("-S --sl", "N", "--service-level"),
        ours("-m --mtu", "BYTES", "--mtu"),
        ours("-q --qp", "N", "--streams"),
        ours("--data_validation", "", "--validate"),
        PeerOption("--use_cuda", "N", "--memory cuda: the GPU nearest to the rank", lambda _: ["--memory", "cuda"]),
        PeerOption("--use_rocm", "N", "--memory hip", lambda _: ["--memory", "hip"]),
        absent("-c --connection", "TYPE", "connections are reliable (RC): omit it"),
        absent("-p --port", "N", "the launcher starts both ends: give --hosts HOST,HOST"),
        absent("-F --CPU-freq", "", "fablint preflight reports the frequency governor: omit it"),
        absent("-R --rdma_cm", "", "connections do not need it: omit it"),
        absent("-I --inline_size", "N", "the transport chooses what is sent inline: omit it"),
        absent("-r --rx-depth", "N", "as many receives are posted as messages are in flight: omit it"),
        absent("-Q --cq-mod", "N", "the transport chooses it: omit it"),
        absent("-l --post_list", "N", "the transport chooses it: omit it"),
        absent("-e --events", "", "completions are polled: omit it"),
        absent("-N --noPeak", "", "there is no peak column: omit it"),
        absent("-H --report-histogram", "", "-z LIST prints percentiles"),
        absent("-U --report-unsorted", "", "-z LIST prints percentiles"),
        absent("-A --atomic_type", "TYPE", "fablint bench cas compares and swaps"),
        absent("--report_gbits", "", "figures are MB/s of 10^6 bytes/s: omit it"),
        absent("--out_json", "", "--json prints the figures"),
    ),
    programs=tuple(_PROGRAMS),
    translate=_translate,
)

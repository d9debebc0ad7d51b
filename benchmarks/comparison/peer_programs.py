"""Programs of the transports' libraries that measure two processes, and rows of the engine that measure the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Peer:
    """A program with a server and a client. `{bytes}`, `{count}` and `{port}` in the words are those of the start,
    `{server}` is the address of the server."""

    program: str
    server: str
    client: str
    read: Callable[[str, int], float]  # output of the client and message size -> us per message, or MB/s
    statistic: str = "mean"  # of the times of the messages: mean or median


@dataclass(frozen=True)
class Comparison:
    """A row of the engine and the program that measures the same."""

    name: str
    row: str
    peer: Peer
    sizes: tuple[int, ...]
    counts: tuple[int, ...]  # messages, for each size
    rate: bool = False
    window: int = 64
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        return self.peer.program

    @property
    def unit(self) -> str:
        return "MB/s" if self.rate else "us"

    def figure(self, seconds: float, size: int) -> float:
        """The engine's seconds per message in the unit of the table."""
        return size / seconds / 1e6 if self.rate else seconds * 1e6


def read_sockperf(text: str, _: int) -> float:
    """Half a round trip in us, from `Summary: Latency is 5.123 usec`."""
    return float(re.findall(r"Latency is ([\d.]+) usec", text)[-1])


def read_iperf3(text: str, _: int) -> float:
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 8e6


def read_ucx(text: str, _: int) -> float:
    """The time per message, from the rate in the last column: it has more digits than the time."""
    return 1e6 / float(text.split()[-1])


def read_ucx_rate(text: str, size: int) -> float:
    return float(text.split()[-1]) * size / 1e6


def read_pingpong(text: str, _: int) -> float:
    """us per message: of `usec/xfer` and `Mxfers/sec`, both with two decimals, the one with more digits."""
    time_us, rate = (float(word) for word in text.split()[-2:])
    return time_us if time_us > 1 else 1 / rate


def perftest_line(text: str, size: int) -> list[str]:
    """Return the line of the table of an ib_* program."""
    return re.findall(rf"^ *{size} .*", text, re.M)[-1].split()


def read_perftest_latency(text: str, size: int) -> float:
    """t_typical, the median in us, after bytes, iterations, t_min and t_max."""
    return float(perftest_line(text, size)[4])


def read_perftest_rate(text: str, size: int) -> float:
    """The average after bytes, iterations and the peak, printed in MiB/s."""
    return float(perftest_line(text, size)[3]) * 1.048576


SOCKPERF = Peer(
    "sockperf",
    "server --tcp -i 127.0.0.1 -p {port} --nonblocked --timeout 0",
    "ping-pong --tcp -i {server} -p {port} -m {bytes} -t 1 --nonblocked",
    read_sockperf,
)
IPERF3 = Peer("iperf3", "-s -1 -p {port}", "-c {server} -p {port} -l {bytes} -t 1 -J", read_iperf3)


def ucx_perftest(test: str, *, outstanding: int = 0, rate: bool = False, memory: str = "host") -> Peer:
    limit = f" -O {outstanding}" if outstanding else ""
    words = f"-t {test} -m {memory} -s {{bytes}} -n {{count}} -w 1000 -f -p {{port}}{limit}"
    return Peer("ucx_perftest", words, f"{{server}} {words}", read_ucx_rate if rate else read_ucx)


def fi_pingpong(provider: str) -> Peer:
    words = f"-p {provider} -e rdm -m tagged -I {{count}} -S {{bytes}}"
    return Peer("fi_pingpong", f"{words} -B {{port}}", f"{words} -P {{port}} {{server}}", read_pingpong)


def perftest(program: str, words: str = "") -> Peer:
    """A program of perftest between the devices rxe0 and rxe1, over RoCE v2, with the engine's time for a retry."""
    words = f"-F -x 1 -u 16 -n {{count}} -s {{bytes}} -p {{port}} {words}"
    is_rate = program.endswith("_bw")
    return Peer(
        program,
        f"-d rxe1 {words}",
        f"-d rxe0 {words} {{server}}",
        read_perftest_rate if is_rate else read_perftest_latency,
        "mean" if is_rate else "median",
    )

"""Writes docs/reference/benchmarks.md from the engine's registry: `.venv/bin/python docs/benchmarks_reference.py`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from fablint.cli.peers import PEERS, Peer
from fablint.plan import list_benchmarks
from fablint.workflows.benchmark import benchmark_registry

PAGE = Path(__file__).parent / "reference" / "benchmarks.md"
HEAD = """\
# Benchmarks

Written by `docs/benchmarks_reference.py` from `engine/registry/benchmarks.inc`; do not edit.

A benchmark is a row: one line with kernel, pattern, sizes and number of repetitions. `fablint bench NAME` measures it
and prints its table, `fablint bench NAME --help` shows its options, `fablint bench --list` prints the names. In a plan,
and on the [engine's command line](engine.md), the name stands for its row, and later options override its options:

    fablint bench osu_mbw_mr -n 8
    fablint measure -n 8 -r 'osu_bw --pattern all-pairs --validate' -o night.run

OSU's names may be written without `osu_`, unless a kernel has that name: `latency` is the kernel, measured until the
figure is precise; `osu_latency` is the same with OSU's counts. [Run benchmarks](../how-to/reference-benchmarks.md) has
examples, [differences from the originals](../explanation/benchmarks.md) the reasons.
"""

# What the references run, and what does the same here: reference, its program, our command, what to know.
HPE_OSU = "HPE, fabric validation using OSU tests"
HPE_HSN = "HPE, HSN performance benchmarking"
SDSC = "SDSC, latency test"
JUPITER = "JSC, LinkTest in the JUPITER benchmark suite"
DDN = "DDN, Network Sanitizer"
PROGRAMS = (
    (
        HPE_OSU,
        "`run_osu_bandwidth.sh $PBS_NODEFILE`",
        "bench osu_mbw_mr -n 2048 --ranks-per-nic 4 --counters",
        "1024 pairs, ranks bound near their NICs, `cxiN tx` and `rx` of the row, and every pair's own figure with `-o`",
    ),
    (
        HPE_OSU,
        "`run_osu_latency.sh $PBS_NODEFILE`",
        "bench osu_multi_lat -n 2048 --ranks-per-nic 4 --counters",
        "the same for latency",
    ),
    (HPE_OSU, "latency", "bench osu_latency", ""),
    (HPE_OSU, "multi-threaded latency", "bench osu_latency_mt", ""),
    (HPE_OSU, "multi-pair latency", "bench osu_multi_lat -n 8", ""),
    (HPE_OSU, "multiple bandwidth / message rate", "bench osu_mbw_mr -n 8", "`-V` for windows of 1 to 128"),
    (HPE_OSU, "bandwidth", "bench osu_bw", ""),
    (HPE_OSU, "bidirectional bandwidth", "bench osu_bibw", ""),
    (HPE_OSU, "one-sided put latency", "bench osu_put_latency", ""),
    (HPE_OSU, "one-sided put bandwidth", "bench osu_put_bw", ""),
    (HPE_OSU, "one-sided put bidirectional bandwidth", "bench osu_put_bibw", ""),
    (HPE_OSU, "one-sided get latency", "bench osu_get_latency", ""),
    (HPE_OSU, "one-sided get bandwidth", "bench osu_get_bw", ""),
    (HPE_OSU, "one-sided accumulate latency", "bench osu_acc_latency", ""),
    (
        HPE_HSN,
        "`mpirun --host n001,n003 osu_get_bw` (edge)",
        "bench osu_get_bw --hosts n001,n003",
        "one rank on each of the hosts",
    ),
    (
        HPE_HSN,
        "`mpirun -npernode 20 --hostfile group_1 osu_mbw_mr` (local, global)",
        "bench osu_mbw_mr --hosts 'n[001-062]' --ppn 20",
        "the hosts of one group for local, of two for global: the first half sends to the second",
    ),
    (
        HPE_HSN,
        "`nids-switch.sh`, then `check_nodes_osu.sh HOSTFILE osu_mbw_mr`",
        "bench osu_mbw_mr --hosts 'n[001-016]'",
        "the hosts of a switch; with a [topology](topology-file.md), `fablint analyse` judges all switches of one run",
    ),
    (HPE_HSN, "`bisec_bw PPN REPS`", "bench bisec_bw -n 8 -i 100", "hosts are counted by the run and not by PPN"),
    (
        SDSC,
        "`Latency_Test_L1.BatchScript(21, [1..18])`: a batch job of osu_latency for every two nodes",
        "bench latency_test --hosts 'comet-21-[01-18]'",
        "one job for all pairs",
    ),
    (
        JUPITER,
        "`linktest --mode mpi --num-warmup-messages 3 --num-messages 25 --size-messages 16777216 --bisection "
        "--bidirectional`",
        "bench linktest --mode mpi --num-warmup-messages 3 --num-messages 25 --size-messages 16777216 --bisection "
        "--bidirectional -n 8",
        "the commitment run, as `bench linktest_bisection`; its table: `fablint report RUN --table bisection`",
    ),
    (JUPITER, "`linktest`, semi-directional", "bench linktest -n 8", "`--num-slowest` pairs are measured again"),
    (JUPITER, "`linktest --bidirectional`", "bench linktest_bidirectional -n 8", ""),
    (JUPITER, "`linktest --unidirectional`", "bench linktest_unidirectional -n 8", ""),
    (JUPITER, "`linktest --serial-tests`", "bench linktest_serial -n 8", ""),
    (
        JUPITER,
        "`linktest --mode tcp`, `ucp`, `ibverbs`, `psm2`, `cuda`",
        "bench linktest --mode tcp -n 8",
        "transports `tcp`, `ucx`, `verbs`, `ofi` with provider `psm2`, `cuda-p2p`: copies between the GPUs of one host",
    ),
    (JUPITER, "`linktest --all-to-all`", "bench linktest --all-to-all -n 8", "MPI_Alltoall as a row of its own"),
    (
        DDN,
        "`run_netsan.sh --servers 'server[2-3]' --clients 'client[1-4]' --servers-nranks 2`",
        "bench net_sanitizer --servers 'server[2-3]' --clients 'client[1-4]' --servers-nranks 2",
        "Put and Get",
    ),
    (
        DDN,
        "`run_netsan.sh --clients 'client[1-8]'`",
        "bench net_sanitizer --clients 'client[1-8]'",
        "all with each other",
    ),
    (
        DDN,
        "`run_netsan.sh --clients 'client[1-4]' --clients-nranks 1 --verbose --bsize 4194304`",
        "bench net_sanitizer --clients 'client[1-4]' --clients-nranks 1 --verbose --bsize 4194304",
        "a line for every connection",
    ),
    (DDN, "`net_sanitizer --nservers 4 --niters 1024`", "bench net_sanitizer -n 8 --nservers 4 --niters 1024", ""),
    (DDN, "`net_sanitizer --sequential`", "bench netsan_alltoall -n 8 --sequential", "one pair at a time"),
)


def render() -> str:
    return "\n".join([HEAD, *_families(), _programs(), _peers()])


def _families() -> list[str]:
    sections = []
    for family, members in groupby(list_benchmarks(benchmark_registry()), lambda one: one.family):
        title = "Kernels by their own names" if family == "fablint" else family
        rows = [f"| `{one.name}` | {one.what} | `{one.row}` |" for one in members]
        sections.append("\n".join([f"## {title}", "", "| name | what | row |", "| --- | --- | --- |", *rows, ""]))
    return sections


def _programs() -> str:
    lines = ["## What the references run", ""]
    for reference, programs in groupby(PROGRAMS, lambda program: program[0]):
        lines += [f"### {reference}", "", "| there | here | |", "| --- | --- | --- |"]
        lines += [f"| {there} | `fablint {here}` | {remark} |" for _, there, here, remark in programs]
        lines.append("")
    return "\n".join(lines)


PEERS_HEAD = """\
## Options of other programs

`fablint bench` takes the command lines of these programs: the name of the program, then its options, with values as a
word, after `=` or after the letter. Options of `fablint bench` that have another meaning there are given by their long
names. A program without a benchmark of its own is measured with the kernel that does the same, which a line on stderr
names.
"""


def _peers() -> str:
    return "\n".join([PEERS_HEAD, *(_peer(peer) for peer in PEERS if peer.options)])


def _peer(peer: Peer) -> str:
    rows = [f"| {_spelled(option.spellings, option.form)} | {option.meaning} |" for option in peer.options]
    names = ", ".join(f"`{name}`" for name in sorted(peer.programs))
    programs = [f"Programs: {names}.", ""] if names else []
    return "\n".join([f"### {peer.name}", "", *programs, "| option | means |", "| --- | --- |", *rows, ""])


def _spelled(spellings: str, form: str) -> str:
    names = ", ".join(f"`{spelling}`" for spelling in spellings.split())
    return f"{names} `{form}`".replace("|", "\\|") if form else names


if __name__ == "__main__":
    PAGE.write_text(render())

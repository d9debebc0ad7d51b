"""A host whose figures are all 0, nan or missing stays in an imported run: it is named as not judged, and exit code 3.

The texts are laid out as those in tests/fixtures; 8 hosts, of which n3 (rank 2) was announced and has no figure.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fablint.store import read_run
from fablint_command import Fablint

HOSTS = [f"n{number}" for number in range(1, 9)]
DEAD = 2


def pairs() -> Iterator[tuple[int, int, bool]]:
    """Ordered pairs of ranks, and whether one of them is that of the dead host."""
    for a, b in itertools.permutations(range(8), 2):
        yield a, b, DEAD in (a, b)


def near(value: float, digits: int = 2) -> str:
    return f"{value * random.uniform(0.99, 1.01):.{digits}f}"


def csv(nothing: str) -> str:
    lines = [f"{HOSTS[a]},{HOSTS[b]},1048576,{nothing if dead else near(12000)}" for a, b, dead in pairs()]
    return "\n".join(["src,dst,size,bandwidth", *lines, ""])


def matrix(value: float, nothing: str, between: str) -> list[str]:
    return [between.join(nothing if a == b or DEAD in (a, b) else near(value) for b in range(8)) for a in range(8)]


def mpigraph(nothing: str) -> str:
    names = [f"{host}:{rank}" for rank, host in enumerate(HOSTS)]
    lines = ["START mpiGraph v1.5", "MsgSize\t1048576", "Times\t5", "Window\t4", "Procs\t8"]
    for word, towards in (("Send", "to"), ("Recv", "from")):
        rows = zip(names, matrix(12000, nothing, "\t"), strict=True)
        lines += ["\t".join([word, *names]), *(f"{name} {towards}\t{row}" for name, row in rows)]
    return "\n".join([*lines, "END mpiGraph", ""])


def osu(nothing: str) -> str:
    lines = []
    for a, b, dead in pairs():
        if a < b:
            lines += [f"{HOSTS[a]},{HOSTS[b]}", "# OSU MPI Latency Test v4.4.1", "# Size          Latency (us)"]
            lines += [f"{size:<10}{nothing if dead else near(2):>20}" for size in (8, 1024)]
    return "\n".join([*lines, ""])


def net_sanitizer(nothing: str) -> str:
    lines = ["#nservers=0 nclients=8 niters=128 nflight=12 ssize=4194304, esize=4194304"]
    lines += ["#             src             dest Dir size(B)    time(s)   bw(MB/s) lat(us)       iops"]
    for a, b, dead in pairs():
        figures = (nothing,) * 3 if dead else (near(5900, 0), near(67.7), near(1475, 0))
        lines.append(f"{HOSTS[a]}-{a:<4} {HOSTS[b]}-{b:<4} Und 4194304        0.1 {' '.join(figures)}")
    return "\n".join([*lines, ""])


def linktest(nothing: str) -> str:
    lines = ["linktest: Number of MPI-Task:                 8"]
    lines += ["linktest: Message length:                  1024 Bytes", "linktest: serial test:               1"]
    for step in range(1, 8):
        lines.append(f" Serial   PingPong for step     {step}: ")
        for rank in range(8):
            dead = DEAD in (rank, rank ^ step)
            figures = (nothing, nothing) if dead else (near(4, 5), near(244))
            lines.append(f"      {rank}->     {rank ^ step}:     {figures[0]}us ( {figures[1]} MB/s) (l={rank})")
        lines.append("  avg=  4.624us ( 211.22 MB/s) min=  3.583us ( 272.53 MB/s) max=  6.132us ( 159.25 MB/s)")
    return "\n".join([*lines, ""])


def clusterkit(nothing: str) -> str:
    plain = f"{float(nothing):.1f}" if nothing in ("0", "0.00") else nothing
    rows = matrix(98000, plain, " ")
    lines = ["Rank: " + " ".join(map(str, range(8)))]
    for rank, row in enumerate(rows):
        words = [f"{float(word):.1f}" if word[0].isdigit() else word for word in row.split()]
        lines.append(f"   {rank} ({HOSTS[rank]}):" + "".join(f"{word:>10}" for word in words))
    return "\n".join([*lines, "Minimum bandwidth: 97000.0 MB/s between n1 and n2", ""])


def hp2p(nothing: str) -> str:
    lines = ["=== Benchmark configuration ===", "Message size : 1048576"]
    return "\n".join([*lines, *(f"{row}\t" for row in matrix(9000, nothing, "\t")), "Writing final result... Done", ""])


def imb(nothing: str) -> str:
    lines = ["#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part"]
    tables = [[(a, a ^ step) for a in range(8) if a < a ^ step] for step in range(1, 8)]
    for groups in tables:
        lines += ["# Benchmarking Multi-PingPong ", "# ( 4 groups of 2 processes each running simultaneous ) "]
        lines += [f"# Group  {group}:     {a}    {b}" for group, (a, b) in enumerate(groups)]
        lines += ["        Group       #bytes #repetitions      t[usec]   Mbytes/sec"]
        for group, ends in enumerate(groups):
            figures = (nothing, nothing) if DEAD in ends else (near(3.6), near(2.2))
            lines.append(f"            {group}            8           50  {'  '.join(figures)}")
    return "\n".join([*lines, "# All processes entering MPI_Finalize", ""])


TOOLS: dict[str, tuple[Callable[[str], str], str]] = {
    "csv": (csv, "n3"),
    "mpigraph": (mpigraph, "n3"),
    "osu": (osu, "n3"),
    "net_sanitizer": (net_sanitizer, "n3"),
    "linktest": (linktest, "rank2"),
    "clusterkit": (clusterkit, "n3"),
    "hp2p": (hp2p, "rank2"),
    "imb": (imb, "rank2"),
}


def not_judged(fablint: Fablint, file: str) -> list[str]:
    """Hosts that the verdict names so; it is incomplete, and judges no host wrongly."""
    done = fablint("analyse", file, "--json")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["exit_code"], verdict["verdict"]) == (3, 3, "incomplete"), done.stderr
    assert not [one for one in verdict["findings"] if one["state"] in ("FAULT", "SUSPECT")]
    return [
        one["text"]["name"]
        for one in verdict["findings"]
        if one["state"] == "NOT JUDGED" and one["text"]["component"] == "host"
    ]


@pytest.mark.parametrize(("tool", "nothing"), list(zip(TOOLS, itertools.cycle(["0.00", "nan"]), strict=False)))
def test_a_host_without_any_figure_is_named_and_not_judged(
    fablint: Fablint, tmp_path: Path, tool: str, nothing: str
) -> None:
    random.seed(7)
    write, name = TOOLS[tool]
    (tmp_path / "said.out").write_text(write(nothing))
    assert not_judged(fablint, "said.out") == [name]
    done = fablint("import", "said.out", "-o", "kept.run")
    assert done.returncode in (0, 3), done.stderr
    kept = read_run(tmp_path / "kept.run")
    assert (len(kept.hosts), kept.state) == (8, "interrupted")
    assert not_judged(fablint, "kept.run") == [name]


@pytest.mark.parametrize("nothing", ["0", "-nan", "inf", "-", "", "-3", "none"])
def test_whatever_stands_in_csv_where_there_is_no_figure(fablint: Fablint, tmp_path: Path, nothing: str) -> None:
    random.seed(8)
    (tmp_path / "said.csv").write_text(csv(nothing))
    assert not_judged(fablint, "said.csv") == ["n3"]


def test_figures_of_one_size_only(fablint: Fablint, tmp_path: Path) -> None:
    """A host that was measured with short messages is not judged by long ones."""
    random.seed(9)
    short = [f"{HOSTS[a]},{HOSTS[b]},8,{near(12)}" for a, b, _ in pairs()]
    (tmp_path / "said.csv").write_text(csv("0") + "\n".join(short) + "\n")
    assert not_judged(fablint, "said.csv") == ["n3"]


def test_a_host_among_thousands_with_few_partners_each(fablint: Fablint, tmp_path: Path) -> None:
    """Such a run is a list of matchings, in which the pairs without figures have their places."""
    random.seed(10)
    count, lines = 2200, ["src,dst,size,bandwidth"]
    for a, step in itertools.product(range(count), (1, 2, 3, 5, 8)):
        b = (a + step) % count
        lines += [f"h{one},h{two},1048576,{0 if 7 in (a, b) else near(12000)}" for one, two in ((a, b), (b, a))]
    (tmp_path / "said.csv").write_text("\n".join([*lines, ""]))
    assert not_judged(fablint, "said.csv") == ["h7"]
    facts = json.loads(fablint("analyse", "said.csv", "--json").stdout)["coverage"]
    assert (facts["pairs_planned"], facts["pairs_measured"]) == (22000, 21980)


def test_the_last_host_of_a_file_that_is_cut_off(fablint: Fablint, tmp_path: Path) -> None:
    random.seed(11)
    (tmp_path / "said.csv").write_text(csv("0").replace("n3,", "gone,").replace(",n3,", ",gone,") + "n1,n9,1048576,12")
    assert not_judged(fablint, "said.csv") in (["gone", "n9"], ["n9", "gone"], ["gone,n9"])


def test_a_pair_that_has_a_figure_in_another_line_or_file_is_measured(fablint: Fablint, tmp_path: Path) -> None:
    random.seed(12)
    whole = csv("11990.0")
    (tmp_path / "twice.csv").write_text(csv("nan") + whole.partition("\n")[2])
    done = fablint("analyse", "twice.csv", "--json")
    assert (done.returncode, json.loads(done.stdout)["coverage"]["hosts_judged"]) == (0, 8), done.stdout


def test_a_quotation_mark_that_is_never_closed_costs_its_own_line(fablint: Fablint, tmp_path: Path) -> None:
    """And not the hosts of all lines behind it."""
    random.seed(13)
    head, first, rest = csv("12000").split("\n", 2)
    (tmp_path / "said.csv").write_text("\n".join([head, f'"{first}', rest]))
    done = fablint("analyse", "said.csv", "--json")
    assert json.loads(done.stdout)["coverage"]["hosts_judged"] == 8

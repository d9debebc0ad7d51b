"""Hosts that a launcher prints for the ranks of a program that does not name them."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import FIXTURES

from fablint.model import Run
from fablint.store import import_run
from fablint.store.importing.job_maps import job_hosts

BANDWIDTH = "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n1048576             23751.76\n"
ALLREDUCE = "# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n8    5.10\n"
MULTI = "# OSU MPI Multi Latency Test v7.3\n# Size          Latency (us)\n8    1.70\n"


def ompi(*hosts: str) -> str:
    lines = ["========================   JOB MAP   ========================"]
    for rank, host in enumerate(hosts):
        lines.append(f" Data for node: {host}\tNum slots: 2\tMax slots: 0\tNum procs: 1")
        lines.append(
            f" \tProcess OMPI jobid: [57321,1] App: 0 Process rank: {rank} Bound: socket 0[core 0[hwt 0]]:[B/.]"
        )
    return "\n".join([*lines, " ============================================================="])


def each(form: str, *hosts: str) -> str:
    return "\n".join(form.format(rank=rank, host=host) for rank, host in enumerate(hosts))


MAPS = {
    "Open MPI --display-map": ompi,
    "PRRTE --display map": lambda *hosts: ompi(*hosts).replace("OMPI jobid: [57321,1]", "jobid: prterun-n1-3734@1"),
    "Open MPI --report-bindings": lambda *hosts: each(
        "[{host}:351] MCW rank {rank} bound to socket 0[core 0]: [B/.]", *hosts
    ),
    "PRRTE --report-bindings": lambda *hosts: each("[{host}:351] Rank {rank} bound to package[0][core:0]", *hosts),
    "Hydra -print-rank-map": lambda *hosts: each("({host}:{rank})", *hosts).replace("\n", ""),
    "Intel MPI": lambda *hosts: each("[0] MPI startup(): {rank}       1234{rank}    {host}      {{0,1}}", *hosts),
    "Cray MPICH": lambda *hosts: each("[PE_0]: rank {rank} is on {host}", *hosts),
    "srun --cpu-bind=verbose": lambda *hosts: each(
        "cpu-bind=MASK - {host}, task  {rank}  0 [4711]: mask 0x1 set", *hosts
    ),
    "srun -l hostname": lambda *hosts: each("{rank}: {host}", *hosts),
    "Hydra -l hostname": lambda *hosts: each("[{rank}] {host}", *hosts),
    "Open MPI --tag-output hostname": lambda *hosts: each("[1,{rank}]<stdout>:{host}", *hosts),
    "PRRTE --tag-output hostname": lambda *hosts: each("[prterun-n1-42@1,{rank}]<stdout>: {host}", *hosts),
    "PALS --label": lambda *hosts: each("{host} {rank}: {host}", *hosts),
}


def written(folder: Path, text: str, hosts: list[str] | None = None) -> Run:
    path = folder / "output.txt"
    path.write_text(text)
    return import_run([path], hosts or [])


@pytest.mark.parametrize("form", MAPS)
def test_a_map_of_the_launcher_names_the_hosts(tmp_path: Path, form: str) -> None:
    run = written(tmp_path, f"{MAPS[form]('nid001', 'nid002')}\n{BANDWIDTH}")
    assert (run.rank_host, run.state) == (["nid001", "nid002"], "complete")


@pytest.mark.parametrize("form", MAPS)
@pytest.mark.parametrize("table", [ALLREDUCE, MULTI])
def test_a_map_states_the_number_of_ranks(tmp_path: Path, form: str, table: str) -> None:
    hosts = ["nid001", "nid002", "nid003", "nid004"]
    run = written(tmp_path, f"{MAPS[form](*hosts)}\n{table}")
    assert (run.rank_host, run.state) == (hosts, "complete")


def test_ranks_of_one_host_stay(tmp_path: Path) -> None:
    run = written(tmp_path, f"(n1:0,1)(n2:2,3)\n{ALLREDUCE}")
    assert run.rank_host == ["n1", "n1", "n2", "n2"]


def test_ranks_without_a_figure_stay(tmp_path: Path) -> None:
    """A test of a pair is of two ranks, whatever the number of processes."""
    run = written(tmp_path, f"{ompi('n1', 'n2', 'n3', 'n4')}\n{BANDWIDTH}")
    assert run.hosts == ["n1", "n2", "n3", "n4"]
    assert run.rows[0].arrays["count"].shape[0] == 4


@pytest.mark.parametrize(
    "text",
    [
        ompi("n1"),  # too few
        f"{ompi('n1', 'n2')}\n{ompi('n3', 'n4')}",  # two launches
        each("{rank}: {host}", "n1", "n2") + "\n0: n7",
        "1: n1\n2: n2",  # not from 0
        each("{rank}: {host}", "done", "done"),  # no name of a host
        each("[{rank}] {host}", "finished", "finished"),
    ],
)
def test_no_host_is_invented(tmp_path: Path, text: str) -> None:
    assert written(tmp_path, f"{text}\n{BANDWIDTH}").rank_host == ["rank0", "rank1"]


def test_hosts_of_the_user_count_more(tmp_path: Path) -> None:
    assert written(tmp_path, f"{ompi('n1', 'n2')}\n{BANDWIDTH}", ["a", "b"]).rank_host == ["a", "b"]


def test_hosts_of_the_file_count_more(tmp_path: Path) -> None:
    text = (FIXTURES / "nccl_tests" / "nccl-tests-2.13-all_reduce-synthetic.txt").read_text()
    assert written(tmp_path, f"{ompi('x1', 'x2')}\n{text}").hosts == written(tmp_path, text).hosts


def test_a_published_map() -> None:
    run = import_run([FIXTURES / "outside" / "52-ompi5-jobmap-ucx.txt"])
    assert (run.rank_host, run.state) == (["nodea", "nodeb"], "complete")


def test_other_texts_name_no_hosts() -> None:
    assert not job_hosts("0: 1.88 2.5\n1: 1.9\n[0] NCCL INFO x\n(a:b)\nJOB MAP\n")

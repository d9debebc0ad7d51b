"""Hosts of ranks that a launcher prints beside the output of a program that does not name them.

Each form is read for itself: it counts where it names a host for every rank from 0 upwards, and no rank twice
differently, as two launches on other hosts do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_HOST = r"(?P<host>[A-Za-z0-9][\w.-]{0,254})"
_WORD = r"(?P<host>(?=[\w.-]*[0-9])[A-Za-z][\w.-]{0,254})"  # output of `hostname`: a word with a digit
_RANK = r"(?P<rank>[0-9]{1,7})"

_NODE = re.compile(rf"\s*Data for node: {_HOST}\s")  # Open MPI and PRRTE --display-map: above its processes
_PROCESS = re.compile(rf"\s*Process (?:OMPI )?jobid: \S+ App: [0-9]+ Process rank: {_RANK} ")
_HYDRA = re.compile(r"(?:\([A-Za-z0-9][\w.-]*:[0-9]+(?:,[0-9]+)*\))+")  # -print-rank-map: (n1:0,1)(n2:2,3)
_HYDRA_HOST = re.compile(r"\(([^:()]+):([0-9,]+)\)")
_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\[{_HOST}:[0-9]+\] (?:MCW r|R)ank {_RANK} (?:is not )?bound",  # Open MPI and PRRTE --report-bindings
        rf"\[0\] MPI startup\(\): {_RANK} +[0-9]+ +{_HOST} +",  # Intel MPI, I_MPI_DEBUG
        rf"\[?PE[ _][0-9]+\]?:? +rank {_RANK} is on {_HOST}$",  # Cray MPICH, MPICH_RANK_REORDER_DISPLAY
        rf"cpu[-_]bind[=-]\S+ - {_HOST}, task +{_RANK} ",  # srun --cpu-bind=verbose
        rf" *{_RANK}: {_WORD}$",  # srun -l hostname
        rf"\[{_RANK}\] {_WORD}$",  # Hydra's mpiexec -l hostname
        rf"\[(?:[0-9]+|prterun-[^@\]]+@[0-9]+),{_RANK}\](?:\[[^\]]*\])?<stdout>: ?{_WORD}$",  # Open MPI, PRRTE hostname
        rf"Proc <{_RANK}> on <{_HOST}>\s*$",  # OSU in Java
        rf"{_WORD} {_RANK}: (?=\S)",  # PALS --label: before every line of a rank
    )
)


class JobHosts(tuple[str, ...]):
    """Host of each rank of a job, as its launcher prints them: where a file names its own hosts, these are not used."""

    __slots__ = ()


def job_hosts(text: str) -> JobHosts:
    """Return the hosts of the ranks in a text that a launcher printed; none if it does not name all, or differently."""
    lines = text.splitlines()
    candidates = (
        _hosts(places) for places in (_of_maps(lines), _of_hydra(lines), *(_of(line, lines) for line in _LINES))
    )
    return next((hosts for hosts in candidates if len(hosts) > 1), JobHosts())


def _hosts(places: Iterable[tuple[int, str]]) -> JobHosts:
    hosts: dict[int, str] = {}
    for rank, host in places:
        if hosts.setdefault(rank, host) != host:
            return JobHosts()
    return JobHosts(hosts[rank] for rank in range(len(hosts)) if hosts.keys() == set(range(len(hosts))))


def _of(form: re.Pattern[str], lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    yield from ((int(line["rank"]), line["host"]) for line in map(form.match, lines) if line)


def _of_maps(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    host = ""
    for line in lines:
        if node := _NODE.match(line):
            host = node["host"]
        elif host and (process := _PROCESS.match(line)):
            yield int(process["rank"]), host


def _of_hydra(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for line in filter(_HYDRA.fullmatch, map(str.strip, lines)):
        for host, ranks in _HYDRA_HOST.findall(line):
            yield from ((int(rank), host) for rank in ranks.split(",") if rank and len(rank) < 8)

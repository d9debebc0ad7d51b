"""Hosts as the scheduler and their own answers tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Allocation:
    """Hosts that may be measured, and how that is known."""

    hosts: tuple[str, ...]  # in the order in which they were given, each once
    source: str  # for people: `Slurm job 17`, `$PBS_NODEFILE`, `hosts.txt`
    scheduler: str = ""  # `slurm`, `pbs`; empty where there is none
    job: str = ""
    room: Mapping[str, int] = field(default_factory=dict)  # ranks that a host has room for, where it is known
    excluded: tuple[str, ...] = ()  # hosts that would be among them, and were excluded by name
    absent: tuple[str, ...] = ()  # hosts that were asked for, and are not of the job


@dataclass(frozen=True)
class HostState:
    """What the scheduler says about a host."""

    host: str
    state: Literal["idle", "busy", "drained", "down", "unknown"]
    reason: str = ""  # why it is drained or down, as the administrator wrote it


@dataclass(frozen=True)
class Answer:
    """What a program printed on a host, or why it printed nothing."""

    host: str
    output: str = ""
    error: str = ""  # one line; empty where the host answered
    login_s: float | None = field(default=None, compare=False)  # until the program began; None where it is not known

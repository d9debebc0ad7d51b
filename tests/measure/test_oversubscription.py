"""Waiting ranks yield their CPU only where hosts are known to have fewer CPUs than ranks."""

from __future__ import annotations

import pytest

from fablint.measure.oversubscription import is_oversubscribed, slurm_cpus
from fablint.model import Plan, Slots

TWO_HOSTS = (Slots("n1", 64), Slots("n2", 64))


@pytest.mark.parametrize(
    ("variables", "slots", "ranks", "oversubscribed"),
    [
        ({}, (), 2, False),
        ({}, (), 5, True),  # on this machine, which has 4
        ({}, TWO_HOSTS, 128, False),  # elsewhere: the 4 CPUs of this machine say nothing
        ({"SLURM_JOB_CPUS_PER_NODE": "72(x2)"}, TWO_HOSTS, 128, False),
        ({"SLURM_JOB_CPUS_PER_NODE": "72,36"}, TWO_HOSTS, 128, True),
        ({"SLURM_JOB_CPUS_PER_NODE": "72(x2)"}, (), 144, False),  # Slurm places them
        ({"SLURM_JOB_CPUS_PER_NODE": "72(x2)"}, (), 145, True),
        ({"PBS_NODEFILE": "/var/spool/aux/1.pbs"}, (), 128, False),
    ],
)
def test_more_ranks_than_cpus(staged, variables, slots, ranks, oversubscribed):
    staged.cpus = frozenset(range(4))
    for name in ("SLURM_JOB_CPUS_PER_NODE", "PBS_NODEFILE"):
        staged.variables.pop(name, None)
    staged.variables.update(variables)
    assert is_oversubscribed(staged, Plan(ranks, (), slots)) == oversubscribed


@pytest.mark.parametrize(
    ("text", "cpus"), [("72(x2),36", [72, 72, 36]), ("4", [4]), ("", []), ("many", []), ("8(x3)", [8, 8, 8])]
)
def test_slurm_s_count_of_cpus(text, cpus):
    assert slurm_cpus({"SLURM_JOB_CPUS_PER_NODE": text}) == cpus

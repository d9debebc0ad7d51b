"""Launchers, from what real ones print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fablint.errors import UsageError
from fablint.measure import connects_without_mpi, find_launchers, find_rendezvous
from fablint.measure.launcher_choice import find_mpiexec, identify
from fablint.measure.launchers import LAUNCHERS
from fablint.measure.launchers.hydra import Hydra, IntelHydra
from fablint.measure.launchers.launcher import SHARED_STEPS, Death, Mpiexec
from fablint.measure.launchers.openmpi import OpenMpi
from fablint.measure.launchers.pals import Aprun, Pals
from fablint.measure.launchers.srun import Srun, mpi_types
from fablint.model import Plan, PlanRow, RowSpec, Slots
from pinned import pinned_by

PINNED = pinned_by("measure.toml", __file__)

VERSIONS = {
    "mpiexec (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n": OpenMpi,
    "mpirun (Open MPI) 5.0.3\n": OpenMpi,
    "HYDRA build details:\n    Version:                                 4.0.2\n": Hydra,
    "Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619 (id: c2e19c2f3e)\n": IntelHydra,
    "slurm-wlm 22.05.8\n": Srun,
    "slurm 24.11.3\n": Srun,
    # As sites publish them, not seen here:
    "mpiexec version 1.8.0 revision 1a2b3c4d\n": Pals,
    "palsrun version 1.2.12 revision 5e6f7a8b\n": Pals,
    "aprun (ALPS) 5.2.4-2.0502.9822.32.1.gem\n": Aprun,
}

OPENMPI_KILLED = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpiexec noticed that process rank 5 with PID 0 on node nid000007 exited on
signal 9 (Killed).
--------------------------------------------------------------------------
"""

MPICH_KILLED = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 7301 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
"""

INTEL_KILLED = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 1 PID 4711 RUNNING AT n12
=   KILLED BY SIGNAL: 11 (Segmentation fault)
===================================================================================
"""


OPENMPI_CUT_OFF = """\
--------------------------------------------------------------------------
ORTE has lost communication with a remote daemon.

  HNP daemon   : [[37055,0],0] on node head
  Remote daemon: [[37055,0],2] on node nid001003

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.
--------------------------------------------------------------------------
"""

SRUN_KILLED = """\
srun: error: nid001003: task 2: Killed
srun: launch/slurm: _step_signal: Terminating StepId=18.0
slurmstepd-nid001000: error: *** STEP 18.0 ON nid001000 CANCELLED AT 2026-11-22T05:01:11 ***
srun: error: nid001000: task 1: Killed
srun: error: nid001001: tasks 0,3-4: Killed
"""

SRUN_SEVERAL = """\
srun: error: nid[001000,001002]: tasks 0,2-3: Exited with exit code 1
srun: error: nid001001: task 1: Segmentation fault (core dumped)
"""

SRUN_NODE = """\
srun: error: Node failure on nid001003
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: error: nid001001: task 1: Killed
"""

# In the form that sites publish, not seen here.
PALS_KILLED = """\
x4006c0s6b0n0.hsn.cm.site.gov: rank 256 died from signal 11
x4001c5s4b0n0.hsn.cm.site.gov: rank 3 exited with code 3
"""


def launcher_script(folder: Path, name: str, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "version.txt").write_text(version)
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat {folder}/version.txt\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(("version", "kind"), VERSIONS.items())
def test_a_launcher_is_known_by_its_version(version, kind):
    assert [type(launcher) for launcher in LAUNCHERS if launcher.recognises(version)] == [kind]


def test_open_mpi_gives_the_rank():
    assert OpenMpi().deaths(OPENMPI_KILLED.splitlines()) == [
        Death(5, None, "nid000007", "was ended by signal 9 (Killed)")
    ]


def test_mpich_gives_the_pid():
    assert Hydra().deaths(MPICH_KILLED.splitlines()) == [Death(None, 7301, "vm", "was ended by signal 9 (Killed)")]


def test_intel_gives_both():
    assert IntelHydra().deaths(INTEL_KILLED.splitlines()) == [
        Death(1, 4711, "n12", PINNED["was ended by signal 11 (Segmentation"])
    ]


def test_open_mpi_names_a_host_that_it_lost():
    assert OpenMpi().deaths(OPENMPI_CUT_OFF.splitlines()) == [
        Death(None, None, "nid001003", "failed (its mpirun daemon is gone)")
    ]


def test_srun_names_ranks_that_ended_before_it_ended_the_others():
    assert Srun().deaths(SRUN_KILLED.splitlines()) == [Death(2, None, "nid001003", "was ended (Killed)")]
    assert Srun().deaths(SRUN_SEVERAL.splitlines()) == [
        *(Death(rank, None, None, "ended with status 1") for rank in (0, 2, 3)),
        Death(1, None, "nid001001", "was ended (Segmentation fault)"),
    ]
    assert Srun().deaths(SRUN_NODE.splitlines()) == [
        Death(None, None, "nid001003", "failed (Slurm reports a node failure)")
    ]


def test_pals_in_the_published_form_gives_rank_and_host():
    first, second = Pals().deaths(PALS_KILLED.splitlines())
    assert (first.rank, first.host) == (256, "x4006c0s6b0n0.hsn.cm.site.gov")
    assert (first.reason, second.reason) == ("was ended by signal 11", "ended with status 3")


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.name)
def test_ordinary_words_are_no_death(launcher):
    assert launcher.deaths(["fablint-engine: error: rank 3 has no PID", "exit code 9"]) == []


def test_open_mpi_lets_root_and_many_ranks_run():
    assert OpenMpi().arguments(8, root=True) == ["--allow-run-as-root", "--oversubscribe", "-n", "8"]
    assert OpenMpi().arguments(8, root=False) == ["--oversubscribe", "-n", "8"]


SLOTS = (Slots("server2", 2), Slots("client1", 1))
ENGINE = ["fablint-engine", "--plan", "-"]


def test_open_mpi_fills_one_host_after_the_other():
    words = OpenMpi().placed((Slots("n2", 2), Slots("n10", 1)), ENGINE, root=False)
    assert words == ["--host", "n2:2,n10:1", "--map-by", "slot", "--oversubscribe", "-n", "3", *ENGINE]


def test_open_mpi_is_reported_each_host_by_itself_in_an_order_that_a_scheduler_has_not():
    first, second = ["-n", "2", "--host", "server2:2", *ENGINE], ["-n", "1", "--host", "client1:1", *ENGINE]
    assert OpenMpi().placed(SLOTS, ENGINE, root=False) == ["--oversubscribe", *first, ":", *second]
    again = OpenMpi().placed((Slots("a", 1), Slots("b", 1), Slots("a", 1)), ENGINE, root=False)
    assert again.count(":") == 2


def test_srun_is_reported_the_host_of_every_rank():
    words = Srun("pmix").placed(SLOTS, ENGINE, root=True)
    assert words[:3] == ["--nodes=2", "--distribution=arbitrary", "--nodelist=server2,server2,client1"]
    assert words[3] == "--mpi=pmix" and words[-4:] == ["--ntasks=3", *ENGINE]
    assert Srun().environ(oversubscribed=False, unbound=True)["SLURM_CPU_BIND"] == "none"


def test_pals_takes_hosts_with_as_many_ranks_together():
    slots = (Slots("nid00012", 2), Slots("nid00100", 2), Slots("nid00007", 1))
    first = ["-n", "4", "--ppn", "2", "--hosts", "nid00012,nid00100", "--cpu-bind", "none", *ENGINE]
    second = ["-n", "1", "--ppn", "1", "--hosts", "nid00007", "--cpu-bind", "none", *ENGINE]
    assert Pals().placed(slots, ENGINE, root=False) == [*first, ":", *second]
    assert Aprun().placed(slots[:2], ENGINE, root=False) == [
        "-n",
        "4",
        "-N",
        "2",
        "-L",
        "12,100",
        "-cc",
        "none",
        *ENGINE,
    ]


def test_hydra_fills_one_host_after_the_other():
    assert Hydra().placed(SLOTS, ENGINE, root=False) == ["-hosts", "server2:2,client1:1", "-n", "3", *ENGINE]


def test_intel_starts_every_host_by_itself():
    first, second = ["-host", "server2", "-n", "2", *ENGINE], ["-host", "client1", "-n", "1", *ENGINE]
    assert IntelHydra().placed(SLOTS, ENGINE, root=False) == [*first, ":", *second]


def test_a_plan_that_says_where_is_placed(staged):
    staged.root = False
    mpiexec = Mpiexec(Path("/opt/mpiexec"), Hydra(), "")
    assert mpiexec.argv(staged, Plan(3, ()), ENGINE) == ["/opt/mpiexec", "-n", "3", *ENGINE]
    placed = mpiexec.argv(staged, Plan(3, (), SLOTS), ENGINE)
    assert placed == ["/opt/mpiexec", "-hosts", "server2:2,client1:1", "-n", "3", *ENGINE]


@pytest.mark.parametrize("kind", [Hydra(), IntelHydra(), OpenMpi()], ids=lambda kind: kind.name)
def test_ranks_are_not_placed_on_ipv6_addresses(staged, kind):
    slots = (Slots("n1", 1), Slots("2001:db8::1", 1))
    with pytest.raises(UsageError, match=r"no ranks on IPv6 addresses such as 2001:db8::1"):
        Mpiexec(Path("/opt/mpiexec"), kind, "").argv(staged, Plan(2, (), slots), ENGINE)


def test_the_neighbour_of_mpicxx_is_taken_before_the_path(tmp_path, staged):
    near = launcher_script(tmp_path / "near", "mpiexec.mpich", "HYDRA build details:\n    Version:       4.0.2\n")
    far = launcher_script(tmp_path / "far", "mpiexec", "mpiexec (OpenRTE) 4.1.4\n")
    staged.variables["PATH"] = f"{far.parent}:/usr/bin:/bin"
    found = find_mpiexec(staged, near.with_name("mpicxx.mpich"))
    assert (found.path, found.kind.name, found.version) == (near, "MPICH (Hydra)", "Version: 4.0.2")
    elsewhere = find_mpiexec(staged, tmp_path / "nowhere" / "mpicxx")
    assert (elsewhere.path, elsewhere.version) == (far, "mpiexec (OpenRTE) 4.1.4")


def test_no_launcher_and_an_unknown_one_are_refused(tmp_path, staged):
    staged.variables["PATH"] = str(tmp_path)
    with pytest.raises(UsageError, match=r"no mpiexec in the folder of .*mpicxx nor on the PATH: load the MPI module"):
        find_mpiexec(staged, tmp_path / "mpicxx")
    staged.variables["PATH"] = "/usr/bin:/bin"
    with pytest.raises(
        UsageError, match=r"unknown kind \(Some MPI 1.0\): use an MPI with one of these: Open MPI, Intel"
    ):
        identify(staged, launcher_script(tmp_path / "odd", "mpiexec", "Some MPI 1.0\n"))


def test_open_mpi_binds_no_rank_when_the_engine_binds() -> None:
    kind = next(launcher for launcher in LAUNCHERS if launcher.name == "Open MPI")
    assert "none" not in kind.environ(oversubscribed=True, unbound=False).values()
    policies = kind.environ(oversubscribed=False, unbound=True).items() - SHARED_STEPS.items()
    assert {value for _, value in policies} == {"none"}


MPI_LISTS = {
    "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n": [
        "pmix",
        "none",
        "pmi2",
        "pmix_v4",
    ],
    "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: pmix_v3\n": ["none", "pmi2", "pmix_v3"],
}


@pytest.mark.parametrize(("listing", "types"), MPI_LISTS.items())
def test_the_mpi_types_of_old_and_new_srun(listing, types):
    assert mpi_types(listing) == types


def slurm_job(staged, folder: Path, types: str, *launchers: tuple[str, str]) -> Path:
    """A fake Slurm job with a fake srun and fake MPI launchers; returns the `mpicxx` beside them."""
    folder.mkdir()
    for name, version in launchers:
        launcher_script(folder, name, version)
    listing = "MPI plugin types are...\\n" + types.replace(" ", "\\n")
    script = f"#!/bin/sh\nif [ $1 = --mpi=list ]; then printf '{listing}\\n'; else echo slurm 22.05.8; fi\n"
    (folder / "srun").write_text(script)
    (folder / "srun").chmod(0o755)
    staged.variables |= {"PATH": f"{folder}:/usr/bin:/bin", "SLURM_JOB_ID": "7"}
    return folder / "mpicxx"


OPENMPI, HYDRA = "mpiexec (OpenRTE) 4.1.4\n", "HYDRA build details:\n    Version: 4.0.2\n"


@pytest.mark.parametrize(
    ("version", "types", "mpi"),
    [
        (OPENMPI, "none pmi2 pmix", "pmix"),
        (OPENMPI, "none pmix_v3", "pmix_v3"),
        (HYDRA, "cray_shasta none pmix pmi2", "pmi2"),
        (HYDRA, "none pmix", "pmix"),
    ],
)
def test_in_a_slurm_job_srun_comes_second_with_the_pmi_of_the_library(tmp_path, staged, version, types, mpi):
    mpicxx = slurm_job(staged, tmp_path / "bin", types, ("mpiexec", version))
    choice = find_launchers(staged, mpicxx)
    assert [one.path.name for one in choice.launchers] == ["mpiexec", "srun"]
    assert choice.launchers[1].kind == Srun(mpi)
    del staged.variables["SLURM_JOB_ID"]
    assert [one.path.name for one in find_launchers(staged, mpicxx).launchers] == ["mpiexec"]


def test_a_slurm_without_the_pmi_of_the_library_is_skipped_and_reported(tmp_path, staged):
    choice = find_launchers(staged, slurm_job(staged, tmp_path / "bin", "none pmi2", ("mpiexec", OPENMPI)))
    assert [one.path.name for one in choice.launchers] == ["mpiexec"]
    assert choice.srun_problem == PINNED["srun has no PMI"]
    assert "mpi/pmix" in choice.remedy


def test_a_library_without_a_launcher_goes_with_srun_alone(tmp_path, staged):
    mpicxx = slurm_job(staged, tmp_path / "bin", "none pmi2 cray_shasta")
    staged.variables["PATH"] = str(tmp_path / "bin")
    (found,) = find_launchers(staged, mpicxx).launchers
    assert found.kind == Srun("cray_shasta")
    with pytest.raises(UsageError, match=r"no mpiexec in the folder of .*; srun has no PMI .*mpi/pmix"):
        find_launchers(staged, mpicxx, ["/usr/lib/libmpi.so.40.30.4 1 2"])


def test_the_user_may_choose_the_launcher(tmp_path, staged):
    mpicxx = slurm_job(staged, tmp_path / "bin", "none pmix", ("mpiexec", OPENMPI))
    assert [one.path.name for one in find_launchers(staged, mpicxx, requested="mpiexec").launchers] == ["mpiexec"]
    assert [one.kind for one in find_launchers(staged, mpicxx, requested="srun").launchers] == [Srun("pmix")]
    with pytest.raises(UsageError, match=r"--launcher names nothing, which is not a program"):
        find_launchers(staged, mpicxx, requested="nothing")


def plan_over(transport):
    return Plan(2, (PlanRow(RowSpec("latency", transport=transport), 1, 1.0),))


def test_ssh_starts_no_mpi_and_srun_does_where_a_row_needs_it():
    assert connects_without_mpi("ssh", plan_over("tcp"))
    assert connects_without_mpi("srun", plan_over("ucx"))
    assert not connects_without_mpi("srun", plan_over("mpi"))
    assert not connects_without_mpi("", plan_over("tcp"))
    with pytest.raises(UsageError, match=r"--launcher ssh starts no MPI, which transport mpi of row latency needs"):
        connects_without_mpi("ssh", plan_over("mpi"))


def test_srun_without_mpi_has_the_token_in_its_environment(tmp_path, staged):
    """A fake srun, which prints what it was given."""
    fake = tmp_path / "srun"
    fake.write_text('#!/bin/sh\necho "$@"\necho "token $FABLINT_TOKEN"\ncat\n')
    fake.chmod(0o755)
    staged.variables["PATH"] = f"{tmp_path}:{staged.variables['PATH']}"
    start = find_rendezvous(staged, "srun", "n7").launchers[0]
    process = start.start(staged, plan_over("tcp"), ["engine", "--plan", "-"], {}, 60.0)
    arguments, token, *plan = (process.read_line(10) for _ in range(3))
    assert arguments.startswith("--mpi=none --overcommit ")
    assert re.search(r"--ntasks=2 engine --rendezvous n7:\d+ --ranks 2 --join-limit 55 --rank SLURM_PROCID", arguments)
    assert re.fullmatch(r"token [0-9a-f]{32}", token)
    assert token.split()[1] not in arguments
    assert plan == ["latency --transport tcp"]
    process.kill()


def test_a_launcher_without_mpi_that_is_not_installed_is_an_error(tmp_path, staged):
    staged.variables["PATH"] = str(tmp_path)
    with pytest.raises(UsageError, match="there is no ssh on the PATH"):
        find_rendezvous(staged, "ssh")

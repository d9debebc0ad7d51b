"""The reason why ranks did not start, in what real launchers print (tests/fixtures/launchers)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fablint.measure.launcher_reasons import is_without_daemon, launcher_reason

SAMPLES = Path(__file__).parents[1] / "fixtures" / "launchers"
LIBRARY = "error while loading shared libraries: {}: cannot open shared object file: No such file or directory"
MISSING = LIBRARY.format("libfabtest.so.3")
EXECVE = "(utils/launch/launch.c:73): execvp error on file"
REASONS = {
    "intel-init": "Abort(1615503) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init_thread: Unknown error"
    " class: OFI"
    " addrinfo() failed (ofi_init.c:1586:MPIDI_OFI_mpi_init_hook:No data available)",
    "mpich-init": "Abort(1090831) on node 3 (rank 3 in comm 0): Fatal error in internal_Init: Other MPI error:"
    " gethostbyname failed, n4 (errno 0)",
    "mpich-missing-library": f"./needslib: {MISSING}",
    "mpich-missing-library-host": f"/opt/site/needslib: {MISSING}",
    "mpich-no-cwd": "[proxy:0:0@n1] launch_procs (pm/pmiserv/pmip_cb.c:621): unable to change wdir to /nonexistent"
    " (No such"
    " file or directory)",
    "mpich-no-program": f"[proxy:0:0@n1] HYDU_create_process {EXECVE} /nonexistent/fablint-engine (No such file or"
    " directory)",
    "mpich-no-program-host": f"[proxy:0:1@n2] HYDU_create_process {EXECVE} /opt/site/prog/fine (No such file or"
    " directory)",
    "mpich-no-proxy-host": "sh: 1: /usr/bin/hydra_pmi_proxy: not found",
    "mpich-segv": "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
    "mpich-ssh-host-key": "Host key verification failed.",
    "mpich-unresolved-host": "ssh: Could not resolve hostname nosuchhost: Name or service not known",
    "mpich-wrong-format": './wrongarch: 1: Syntax error: "(" unexpected',
    "ompi4-missing-library": f"./needslib: {MISSING}",
    "ompi4-missing-library-host": f"/opt/site/needslib: {MISSING}",
    "ompi4-no-cwd": "mpirun.openmpi was unable to launch the specified application as it could not change to the"
    " specified"
    " working directory: Working directory: /nonexistent, Node: n1",
    "ompi4-no-orted-host": "sh: 1: orted: not found",
    "ompi4-no-program": "mpirun.openmpi was unable to launch the specified application as it could not access or"
    " execute an"
    " executable: Executable: /nonexistent/fablint-engine, Node: n1",
    "ompi4-no-program-host": "mpirun.openmpi was unable to launch the specified application as it could not access or"
    " execute an executable: Executable: /opt/site/prog/fine, Node: n2",
    "ompi4-no-slots": "There are not enough slots available in the system to satisfy the 400 slots that were"
    " requested by"
    " the application",
    "ompi4-orted-library-host": f"orted: {LIBRARY.format('libopen-rte.so.40')}",
    "ompi4-segv": "Primary job  terminated normally, but 1 process returned a non-zero exit code",
    "ompi4-shared-memory-full": "It appears as if there is not enough space for"
    " /dev/shm/vader_segment.n2.0.9c230001.0 (the shared-memory backing file): Local host: n2, Space Requested:"
    " 4194312 B,"
    " Space Available: 90112 B",
    "ompi4-ssh-denied": "root@n2: Permission denied (publickey,password).",
    "ompi4-tmpdir-full": "[n1:17882] PMIX ERROR: OUT-OF-RESOURCE in file"
    " ../../../../../../src/mca/common/dstore/dstore_segment.c at line 208",
    "ompi4-tmpdir-readonly": "A call to mkdir was unable to create the desired directory: Directory: /proc/ompi.n1.0,"
    " Error: No such file or directory",
    "ompi4-unresolved-host": "ssh: Could not resolve hostname nosuchhost: Name or service not known",
    "ompi4-wrong-format": 'Open MPI tried to fork a new process via the "execve" system call but failed: Local host:'
    " n1, Working dir: /opt/site, Application name: ./wrongarch, Error: Exec format error",
    "ompi5-listener": "[n1:2914] PMIX ERROR: NO-PERMISSIONS in file dstore_base.c at line 237",
    "ompi5-lost-daemon": "PRTE has lost communication with a remote daemon: HNP daemon: [prterun-n1-2914@0,0] on"
    " node n1,"
    " Remote daemon: [prterun-n1-2914@0,2] on node n3",
    "ompi5-no-program": "prterun was unable to launch the specified application as it could not access or execute an"
    " executable: Executable: /opt/site/fablint-engine, Node: n2",
    "srun-no-program": "slurmstepd-n2: error: execve(): /opt/site/fablint-engine: No such file or directory",
    "srun-step-refused": "srun: error: Unable to create step for job 21: More processors requested than permitted",
    "ssh-changed-key": "Host key verification failed.",
}
WARNINGS = [
    "[n1:00214] [[10610,0],0] plm:rsh: Warning: setpgid(2142,2142) failed in parent with errno=Permission denied(13)",
    "Warning: Permanently added 'n7,10.0.0.7' (ED25519) to the list of known hosts.",
    "WARNING: local probe returned unhandled shell:fish assuming bash",
    "slurmstepd: error: couldn't chdir to `/home/x': No such file or directory: going to /tmp instead",
    "srun: cluster configuration lacks support for cpu binding",
    "srun: job 4711 has been allocated resources",
    "salloc: Nodes nid[001000-001003] are ready for job",
]


def lines_of(name: str) -> list[str]:
    return (SAMPLES / f"{name}.txt").read_text().splitlines()


def test_each_sample_has_a_reason() -> None:
    assert {path.stem for path in SAMPLES.glob("*.txt")} == REASONS.keys()


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_is_the_line_that_explains_the_others(name: str) -> None:
    assert launcher_reason(lines_of(name)) == REASONS[name]


@pytest.mark.parametrize("name", REASONS)
def test_warnings_before_and_after_it_hide_no_reason(name: str) -> None:
    assert launcher_reason([*WARNINGS, *lines_of(name), *WARNINGS]) == REASONS[name]


def test_where_there_is_nothing_but_warnings_the_first_is_the_reason() -> None:
    assert launcher_reason(["", "----", *WARNINGS]) == WARNINGS[0]
    assert launcher_reason(["", "=====", "---"]) == ""


def test_a_rank_that_was_killed_explains_more_than_the_crash_of_another() -> None:
    crash = ["[n7:07614] *** Process received signal ***", "[n7:07614] Signal: Segmentation fault (11)"]
    assert launcher_reason(crash) == crash[1]
    assert launcher_reason(crash, "rank 3 on n2 was ended by signal 9 (Killed)").startswith("rank 3 on n2")
    assert launcher_reason([*crash, "a: " + MISSING], "rank 3 on n2 was ended").endswith(MISSING)


def test_a_daemon_that_does_not_start_is_not_waited_for() -> None:
    waiting = {name for name in REASONS if is_without_daemon(lines_of(name))}
    assert waiting == {
        *("mpich-no-proxy-host", "mpich-ssh-host-key", "mpich-unresolved-host", "ompi4-no-orted-host"),
        *("ompi4-orted-library-host", "ompi4-ssh-denied", "ompi4-unresolved-host", "ompi5-lost-daemon"),
        "ssh-changed-key",
    }

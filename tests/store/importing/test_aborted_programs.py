"""Programs that were stopped: what launchers, batch systems and perftest say of them makes a file incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_cases import times_of, written

OSU = "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1                       1.25\n"
PERFTEST = """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Connection type : RC           Using SRQ      : OFF
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   {0}MsgRate[Mpps]
 65536      10000            197.10             195.00             {1}0.372028
"""


@pytest.mark.parametrize(
    "line",
    [
        "mpirun noticed that process rank 1 with PID 0 on node nid002 exited on signal 9 (Killed).",
        "prterun noticed that process rank 0 with PID 77 on node n1 exited on signal 11 (Segmentation fault).",
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "Primary job  terminated normally, but 1 process returned",
        "ORTE has lost communication with a remote daemon.",
        "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
        "[n1:4242] *** Process received signal ***",
        "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
        "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0",
        "Abort(69777679) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Send: Other MPI error",
        "[cli_0]: aborting job:",
        "srun: error: nid002: task 1: Killed",
        "srun: error: nid002: task 1: Out Of Memory",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        "slurmstepd: error: *** STEP 12.0 ON nid001 CANCELLED AT 2026-11-03T10:00:00 ***",
        "slurmstepd: error: *** JOB 12 ON nid001 CANCELLED AT 2026-11-03T10:00:00 DUE TO TIME LIMIT ***",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0.",
        "x1000c0s0b0n0.hostmgmt: rank 3 died from signal 9",
        "=>> PBS: job killed: walltime 3621 exceeded limit 3600",
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
        "Segmentation fault (core dumped)",
        "/bin/sh: line 1:  4242 Killed",
    ],
)
def test_what_stopped_a_program_makes_its_table_incomplete(tmp_path: Path, line: str) -> None:
    run = written(tmp_path, f"{OSU}{line}\n")
    assert (run.state, times_of(run.rows[0])) == ("interrupted", pytest.approx([1.25e-6]))
    assert run.facts.imported is not None
    assert "aborted (line 5)" in run.facts.imported.missing[0]


@pytest.mark.parametrize(
    "line",
    [
        "srun: job 12 has been allocated resources",
        "Warning: Permanently added 'n2' to the list of known hosts.",
        "Loading mpich/4.1 aborted modules",
        "Job 12 terminated at 10:00",
        "[1700000000.000000] [n1:42:0] ucp_context.c:1 UCX  INFO  killed transports: none",
    ],
)
def test_other_lines_leave_it_complete(tmp_path: Path, line: str) -> None:
    assert written(tmp_path, f"{OSU}{line}\n").state == "complete"


@pytest.mark.parametrize(
    "line",
    [
        " Completion with error at client",
        " Failed status 12: wr_id 0 syndrom 0x81",
        " Failed to complete run_iter_bw function successfully",
        "Couldn't read remote address",
        " Unable to write to socket/rdam_cm",
    ],
)
def test_a_test_of_perftest_that_failed_is_incomplete(tmp_path: Path, line: str) -> None:
    text = PERFTEST.format("", "")
    assert written(tmp_path, text).state == "complete"
    assert written(tmp_path, f"{text}{line}\n").state == "interrupted"


@pytest.mark.parametrize("name", ["BW min[Gb/sec]", "Flows", "BW max recent[Gb/sec]", "CPU_Util[%]"])
def test_a_column_of_a_fork_does_not_shift_the_others(tmp_path: Path, name: str) -> None:
    run = written(tmp_path, PERFTEST.format(f"{name}   ", "101.20             "))
    assert times_of(run.rows[0]) == pytest.approx([65536 * 8 / 195e9])


@pytest.mark.parametrize(
    "line", ["0.23", "  12345.60", "4194304    [1700000000.0] [n1:1:0] ucp.c:1 UCX  WARN  x\n     420.11"]
)
def test_what_is_left_of_a_divided_row_makes_a_table_incomplete(tmp_path: Path, line: str) -> None:
    assert written(tmp_path, f"{OSU}{line}\n").state == "interrupted"
    assert written(tmp_path, f"12345\n{OSU}").state == "complete"  # the number of a job


@pytest.mark.parametrize("name", ["Min Comm.(us)", "Max Comm.(us)", "Coll. Init(us)"])
def test_columns_of_a_full_listing_of_overlap(tmp_path: Path, name: str) -> None:
    text = f"""# OSU MPI Non-blocking Allreduce Latency Test v7.4
# Size           Overall(us)       Compute(us)    Pure Comm.(us)    {name}        Overlap(%)
4                      33.95             15.42             14.32             13.11              0.00
"""
    assert times_of(written(tmp_path, text, ["n1", "n2"]).rows[0]) == pytest.approx([14.32e-6])


def test_the_backslashes_of_markdown_are_no_text(tmp_path: Path) -> None:
    assert times_of(written(tmp_path, OSU.replace("# ", "\\# ")).rows[0]) == pytest.approx([1.25e-6])


@pytest.mark.parametrize("hosts", [["n1", "n1"], ["n1", "n2"]])
def test_ranks_of_a_host(tmp_path: Path, hosts: list[str]) -> None:
    """`--hosts` names the host of each rank: of a test within a host twice the same."""
    run = written(tmp_path, OSU, hosts)
    assert (run.rank_host, run.hosts) == (hosts, sorted({*hosts}))

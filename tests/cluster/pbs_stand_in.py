"""A stand-in for OpenPBS: qsub, qstat, qdel, pbsnodes and pbsdsh that have no server, but really run the script.

Words, fields and exit statuses are those of the documented commands (qsub(1B), qstat(1B), pbsnodes(8B), pbsdsh(1B)).
Hosts exist in name only: scripts run on this machine, and pbsdsh enters hosts with the program in STAND_IN_ENTER.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("qsub", "qstat", "qdel", "pbsnodes", "pbsdsh")
QUIET = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
QUEUES = ("workq", "debug")
HEAD = {"timestamp": 1700000000, "pbs_version": "23.06.06", "pbs_server": "stand-in"}


def install(folder: Path, hosts: tuple[str, ...], history: bool = True) -> Path:
    """Write the programs into `folder`/bin, which is returned. Without `history` ended jobs are forgotten."""
    state = folder / "pbs-state"
    state.mkdir(parents=True)
    (state / "config.json").write_text(json.dumps({"hosts": hosts, "history": history}))
    programs = folder / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        program = programs / name
        line = f"exec '{sys.executable}' '{Path(__file__).resolve()}' {name} '{state}' \"$@\""
        program.write_text(f"#!/bin/sh\n# A stand-in for {name} of OpenPBS.\n{line}\n")
        program.chmod(0o755)
    return programs


class Server:
    """Jobs as files: N.json holds the fields that qstat prints."""

    def __init__(self, state: Path) -> None:
        self.state = state
        config = json.loads((state / "config.json").read_text())
        self.hosts: list[str] = config["hosts"]
        self.history: bool = config["history"]

    def load(self, job: str) -> dict[str, Any] | None:
        file = self.state / f"{job.partition('.')[0]}.json"
        fields: dict[str, Any] | None = json.loads(file.read_text()) if file.exists() else None
        return None if fields and fields["job_state"] == "F" and not self.history else fields

    def store(self, job: str, fields: dict[str, Any]) -> None:
        file = self.state / f"{job.partition('.')[0]}.json"
        file.with_suffix(".new").write_text(json.dumps(fields))
        file.with_suffix(".new").rename(file)

    def change(self, job: str, **fields: Any) -> None:
        self.store(job, json.loads((self.state / f"{job.partition('.')[0]}.json").read_text()) | fields)


def fail(program: str, words: str, status: int) -> int:
    print(f"{program}: {words}", file=sys.stderr)
    return status


def options_of(script: Path) -> dict[str, str]:
    """The directives: `-l` as `-l select`, `-l place`, `-l walltime`."""
    found: dict[str, str] = {}
    for line in script.read_text().splitlines():
        if line.startswith("#PBS "):
            option, _, value = line.removeprefix("#PBS ").partition(" ")
            value = value.strip('"')
            if option == "-l":
                name, _, value = value.partition("=")
                option = f"-l {name}"
            found[option] = value
        elif line and not line.startswith("#"):
            break
    return found


def chunks(server: Server, select: str) -> list[tuple[str, int]] | None:
    """(host, mpiprocs) of a select statement; None where there are not so many hosts."""
    free, placed = list(server.hosts), []
    for part in select.split("+"):
        count, *resources = part.split(":")
        wanted = dict(resource.split("=") for resource in resources)
        for _ in range(int(count)):
            host = wanted.get("host") or (free[0] if free else "")
            if host not in free:
                return None
            free.remove(host)
            placed.append((host, int(wanted.get("mpiprocs", 1))))
    return placed


def qsub(server: Server, argv: list[str]) -> int:
    script = Path(argv[0])
    options = options_of(script)
    if options.get("-q", "workq") not in QUEUES:
        return fail("qsub", "Unknown queue", 170)
    if not re.fullmatch(r"(\d+:)?\d+:\d+", options.get("-l walltime", "00:01:00")):
        return fail("qsub", "Illegal attribute or resource value Resource_List.walltime", 175)
    job = f"{len(list(server.state.glob('*.json')))}.stand-in"  # config.json is one of them
    placed = chunks(server, options.get("-l select", "1"))
    fields = {
        "Job_Name": options.get("-N", script.name),
        "Job_Owner": "user@stand-in",
        "job_state": "Q",
        "queue": options.get("-q", "workq"),
        "server": "stand-in",
        "ctime": time.ctime(),
        "Output_Path": f"stand-in:{options.get('-o', '')}",
        "Resource_List": {"select": options.get("-l select"), "walltime": options.get("-l walltime", "00:01:00")},
    }
    if placed is None:
        fields["comment"] = "Can Never Run: Insufficient amount of resource: host"
    server.store(job, fields)
    if placed is not None:
        (server.state / f"{job}.nodes").write_text("".join(f"{host}\n" * count for host, count in placed))
        argv = [sys.executable, __file__, "run", str(server.state), job, str(script), options.get("-o", "/dev/null")]
        subprocess.Popen(argv, start_new_session=True, **QUIET)
    print(job)
    return 0


def run(server: Server, argv: list[str]) -> int:
    """The part of the server and of the MoM: the script from its start to its end, or to its walltime."""
    job, script, log = argv
    time.sleep(0.3)
    fields = server.load(job)
    if fields is None or fields["job_state"] != "Q":
        return 0
    environ = os.environ | {"PBS_JOBID": job, "PBS_NODEFILE": str(server.state / f"{job}.nodes")}
    environ["PBS_ENVIRONMENT"] = "PBS_BATCH"
    with Path(log).open("w") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; exec /bin/sh "$0" </dev/null', script],
            env=environ,
            stdout=output,
            stderr=output,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
    hosts = (server.state / f"{job}.nodes").read_text().split()
    vnodes = "+".join(f"{host}/0" for host in dict.fromkeys(hosts))
    server.change(job, job_state="R", stime=time.ctime(), exec_host=vnodes, session_id=process.pid)
    assert process.stdin is not None
    process.stdin.close()  # the script begins: whoever sees its output sees a running job, as in PBS
    hours, minutes, seconds = (int(part) for part in fields["Resource_List"]["walltime"].split(":"))
    try:
        process.wait(hours * 3600 + minutes * 60 + seconds)
        status = process.returncode
        status = 256 - status if status < 0 else status
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        status = -29  # JOB_EXEC_KILL_WALLTIME
    server.change(job, job_state="F", Exit_status=status, resources_used={"walltime": "00:00:01", "ncpus": 1})
    return 0


def qstat(server: Server, argv: list[str]) -> int:
    if argv == ["-Q"]:
        print("Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type")
        print("---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----")
        for queue in QUEUES:
            print(f"{queue:<17}    0     0 yes yes     0     0     0     0     0     0 Exec")
        return 0
    assert argv[:-1] == ["-x", "-f", "-F", "json"], argv
    fields = server.load(argv[-1])
    print(json.dumps(HEAD | ({"Jobs": {argv[-1]: fields}} if fields else {}), indent=4))
    return 0 if fields else fail("qstat", f"Unknown Job Id {argv[-1]}", 153)


def qdel(server: Server, argv: list[str]) -> int:
    fields = server.load(argv[0])
    if fields is None:
        return fail("qdel", f"Unknown Job Id {argv[0]}", 153)
    if fields["job_state"] == "R":
        os.killpg(fields["session_id"], signal.SIGTERM)
    else:
        server.change(argv[0], job_state="F", comment="Job deleted")
    return 0


def pbsnodes(server: Server, argv: list[str]) -> int:
    assert argv == ["-a", "-F", "json"], argv
    nodes = {
        host: {
            "Mom": host,
            "ntype": "PBS",
            "state": "free",
            "pcpus": 2,
            "resources_available": {"arch": "linux", "host": host, "ncpus": 2, "vnode": host},
            "resources_assigned": {},
            "resv_enable": "True",
            "sharing": "default_shared",
        }
        for host in server.hosts
    }
    print(json.dumps(HEAD | {"nodes": nodes}, indent=4))
    return 0


def pbsdsh(server: Server, argv: list[str]) -> int:
    """A task per line of the node file, no stdin, and what the tasks print goes to the job's output, not here."""
    assert argv[0] == "--", argv
    hosts = Path(os.environ["PBS_NODEFILE"]).read_text().split()
    enter = os.environ["STAND_IN_ENTER"]
    tasks = [subprocess.Popen([enter, host, shlex.join(argv[1:])], **QUIET) for host in hosts]
    return max(task.wait() for task in tasks)


if __name__ == "__main__":
    WORK = {"qsub": qsub, "run": run, "qstat": qstat, "qdel": qdel, "pbsnodes": pbsnodes, "pbsdsh": pbsdsh}
    sys.exit(WORK[sys.argv[1]](Server(Path(sys.argv[2])), sys.argv[3:]))

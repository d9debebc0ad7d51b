"""A check whose run directory only the login node sees, on a virtual cluster whose hosts have a /tmp of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tested_mpis import wrapper_name
from vcluster import StartCluster

PROGRAM = (sys.executable, "-m", "fablint.cli", "check")
CHECK = (*PROGRAM, "--mpicxx", wrapper_name("openmpi"), "--budget", "10s", "--include-unfit")


def test_it_is_refused_before_anything_is_launched(virtual_cluster: StartCluster) -> None:
    with (
        virtual_cluster("tmp", groups=1, switches=1, hosts=2, slurm=False, lldp=False, private_tmp=True) as bed,
        TemporaryDirectory(dir="/tmp") as folder,  # that of the login node
    ):
        output = Path(folder) / "a.run"
        done = bed.run([*CHECK, "-w", "nid[001000-001001]", "-o", output], timeout=300, cwd=Path("/"))
        assert done.returncode == 2, done.stdout + done.stderr
        said = f"fablint: nid001000 does not see {folder} of this machine, and its rank writes the run: give -o in a "
        assert done.stderr.splitlines()[-1].startswith(said)
        assert not output.exists()

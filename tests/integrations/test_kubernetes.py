"""The MPIJob and its remote shell, with a stand-in of kubectl exec that runs the command here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "integrations" / "kubernetes"
SSH = FOLDER / "ssh"


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    """Stand-in that notes its first four words and runs what follows them."""
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\necho "$1 $2 $3 $4" >>{tmp_path}/calls\nshift 4\nexec "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    "words",
    [
        ["-oNumberOfPasswordPrompts=0", "-o", "LogLevel=ERROR", "worker-0"],
        ["-x", "root@worker-0"],
        ["-l", "root", "worker-0.fablint.svc"],
    ],
)
def test_the_remote_shell_is_called_as_ssh_is(kubectl: Path, tmp_path: Path, words: list[str]) -> None:
    command = ["printf", "'%s\\n'", "'two words';", "cat"]
    done = subprocess.run(
        [SSH, *words, *command],
        env=os.environ | {"KUBECTL": str(kubectl)},
        input="text",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "two words\ntext")
    assert (tmp_path / "calls").read_text() == "exec -i worker-0 --\n"


def test_the_exit_status_is_that_of_the_command(kubectl: Path) -> None:
    environ = os.environ | {"KUBECTL": str(kubectl)}
    assert subprocess.run([SSH, "worker-0", "exit", "7"], env=environ, check=False).returncode == 7
    assert subprocess.run([SSH, "worker-0"], env=environ, capture_output=True, check=False).returncode == 255


def test_preflight_takes_its_snapshots_through_it(fablint_in_process, kubectl: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(SSH, tmp_path / "bin" / "ssh")
    environ = {"KUBECTL": str(kubectl), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "FABLINT_HOME": str(tmp_path)}
    done = fablint_in_process("preflight", "-w", "worker-0", "--json", **environ)
    assert '"silent": {}' in done.stdout
    assert "exec -i worker-0 --" in (tmp_path / "calls").read_text()


def test_the_job_starts_its_ranks_through_the_remote_shell() -> None:
    job = yaml.safe_load((FOLDER / "fablint-check.yaml").read_text())
    (launcher,) = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    environ = {variable["name"]: variable["value"] for variable in launcher["env"]}
    assert environ["OMPI_MCA_plm_rsh_agent"] == "/etc/fablint/ssh"
    assert environ["PATH"].split(":")[0] == "/etc/fablint"
    mounts = {mount["name"]: mount["mountPath"] for mount in launcher["volumeMounts"]}
    assert mounts["remote-shell"] == "/etc/fablint"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_the_manifests() -> None:
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=False)
    kinds = [document["kind"] for document in yaml.safe_load_all(done.stdout)]
    assert sorted(kinds) == ["ConfigMap", "MPIJob", "PersistentVolumeClaim"], done.stderr

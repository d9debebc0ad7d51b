"""The manifests of Kubernetes against schemas: those of Kubernetes itself, and that of the MPI operator's MPIJob."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from mpijob_schema import MPIJOB

FOLDER = Path(__file__).parents[2] / "integrations" / "kubernetes"
JOB = yaml.safe_load((FOLDER / "fablint-check.yaml").read_text())
REPLICAS = ("Launcher", "Worker")

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="the extra `integrations` is not installed")
jsonschema = pytest.importorskip("jsonschema")


def validate_core(manifest: dict[str, Any]) -> None:
    """Compare with the newest schema of Kubernetes, which knows all its names; raises ValidationError."""
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def pod_template(replica: str, job: dict[str, Any] = JOB) -> dict[str, Any]:
    template = job["spec"]["mpiReplicaSpecs"][replica]["template"]
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pods"}, "template": template}


def test_the_job_fits_the_operator() -> None:
    jsonschema.validate(JOB, MPIJOB)


@pytest.mark.parametrize("replica", REPLICAS)
def test_the_pods_fit_kubernetes(replica: str) -> None:
    validate_core(pod_template(replica))


def test_the_volume_fits_kubernetes() -> None:
    validate_core(yaml.safe_load((FOLDER / "results.yaml").read_text()))


@pytest.mark.parametrize(("old", "new"), [("slotsPerWorker", "slotsPerWorkers"), ("backoffLimit", "backofLimit")])
def test_a_misspelt_name_of_the_operator_is_refused(old: str, new: str) -> None:
    job = yaml.safe_load((FOLDER / "fablint-check.yaml").read_text().replace(f"{old}:", f"{new}:"))
    with pytest.raises(jsonschema.ValidationError, match=new):
        jsonschema.validate(job, MPIJOB)


def test_a_misspelt_name_of_a_pod_is_refused() -> None:
    job = copy.deepcopy(JOB)
    (container,) = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["volumeMount"] = container.pop("volumeMounts")
    with pytest.raises(kubernetes_validate.ValidationError, match="volumeMount"):
        validate_core(pod_template("Worker", job))

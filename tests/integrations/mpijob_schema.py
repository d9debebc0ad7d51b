"""Schema of an MPIJob of the training operator, v1, without its pod templates.

Written after the names and types of the definition of the resource, manifests/base/crds/kubeflow.org_mpijobs.yaml of
kubeflow/training-operator at commit 7cc5d04bab51. Kubernetes drops names that the definition lacks; this schema refuses
them, because such a name is an error of the manifest. Choices are those that the definition describes in words.
"""

from __future__ import annotations

from typing import Any

_INTEGER, _TEXT = {"type": "integer"}, {"type": "string"}
_CLEAN_POD_POLICY = {"enum": ["None", "Running", "All"]}


def record(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """An object with these names and no others."""
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


_REPLICA = record(
    {
        "replicas": _INTEGER,
        "restartPolicy": {"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
        "template": {"type": "object"},
    },
    "template",
)
_RUN_POLICY = record(
    {
        "activeDeadlineSeconds": _INTEGER,
        "backoffLimit": _INTEGER,
        "cleanPodPolicy": _CLEAN_POD_POLICY,
        "managedBy": _TEXT,
        "schedulingPolicy": {"type": "object"},
        "suspend": {"type": "boolean"},
        "ttlSecondsAfterFinished": _INTEGER,
    }
)
MPIJOB = record(
    {
        "apiVersion": {"const": "kubeflow.org/v1"},
        "kind": {"const": "MPIJob"},
        "metadata": {"type": "object"},
        "spec": record(
            {
                "cleanPodPolicy": _CLEAN_POD_POLICY,
                "mainContainer": _TEXT,
                "mpiReplicaSpecs": record({"Launcher": _REPLICA, "Worker": _REPLICA}, "Launcher", "Worker"),
                "runPolicy": _RUN_POLICY,
                "slotsPerWorker": _INTEGER,
            },
            "mpiReplicaSpecs",
        ),
    },
    "apiVersion",
    "kind",
    "metadata",
    "spec",
)

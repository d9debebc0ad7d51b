"""A diagnosis as a JSON document, and back: what a run directory keeps so that a run is judged once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from fablint.model import Diagnosis, Fit, FollowUp, Scope, Topology, Verdict
from fablint.model.component import ComponentRef
from fablint.model.limits.thresholds import Comparison
from fablint.topology.file_reader import read_topology
from fablint.topology.file_writer import write_topology

_FOLLOW_UPS = ("follow_ups", "retests", "routes", "distances")


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return everything that a diagnosis says as a document; JSON of Python has its figures that are not finite.

    Raises UsageError where its topology has a name that no topology file can have.
    """
    topology = diagnosis.topology
    return {
        "verdict": diagnosis.verdict.model_dump(),
        "fits": [{**vars(fit), "tx": fit.tx.tolist(), "rx": fit.rx.tolist()} for fit in diagnosis.fits],
        "topology": topology
        and {"source": topology.source, "inferred": topology.inferred, "text": write_topology(topology)},
        "settings": diagnosis.settings,
        "comparison": _comparison().dump_python(diagnosis.comparison),
        **{name: [_follow_up_document(item) for item in getattr(diagnosis, name)] for name in _FOLLOW_UPS},
    }


def _follow_up_document(follow_up: FollowUp) -> dict[str, Any]:
    return {"component": follow_up.component.model_dump(), "pairs": follow_up.pairs.tolist()}


def diagnosis_of(document: dict[str, Any]) -> Diagnosis:
    """Return the diagnosis of a document. Raises an error that derives from ValueError, KeyError or TypeError."""
    return Diagnosis(
        verdict=Verdict.model_validate(document["verdict"]),
        fits=tuple(map(_fit_of, document["fits"])),
        topology=_topology_of(document["topology"]),
        settings=document["settings"],
        comparison=_comparison().validate_python(document["comparison"]),
        **{name: tuple(map(_follow_up_of, document[name])) for name in _FOLLOW_UPS},
    )


def _fit_of(document: dict[str, Any]) -> Fit:
    class_time = {Scope(name): seconds for name, seconds in document["class_time"].items()}
    effects = {name: np.array(document[name], dtype=np.float32) for name in ("tx", "rx")}
    return Fit(**{**document, "class_time": class_time, **effects})


def _topology_of(document: dict[str, Any] | None) -> Topology | None:
    if document is None:
        return None
    topology = read_topology(Path(document["source"]), document["text"])
    return replace(topology, source=document["source"], inferred=document["inferred"])


def _follow_up_of(document: dict[str, Any]) -> FollowUp:
    pairs = np.array(document["pairs"], dtype=np.int64).reshape(-1, 2)
    return FollowUp(ComponentRef.model_validate(document["component"]), pairs)


@cache
def _comparison() -> TypeAdapter[Comparison | None]:
    adapter: TypeAdapter[Comparison | None] = TypeAdapter(Comparison | None)
    return adapter

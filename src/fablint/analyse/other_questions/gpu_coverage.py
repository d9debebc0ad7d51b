"""How many GPUs of a run were compared with each other, and by which rows; how their messages travelled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.explain.circumstances import ENDPOINT_KINDS
from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.healthy import are_hosts_homogeneous
from fablint.analyse.observations.samples import GPU_COPIES
from fablint.analyse.other_questions.intra_node import have_comparable_gpus
from fablint.analyse.settings import Settings
from fablint.model import Note, Placement, Run
from fablint.model.figures.gpu_use import path_words, shared_gpus
from fablint.text import notes as noted


def gpu_notes(run: Run, views: Sequence[ViewResult], placement: Placement, settings: Settings) -> list[Note]:
    """Return a note on the GPUs that were compared with each other; none of a run without GPU memory.

    Hosts and links have OK findings and counts of the coverage. GPUs have this note: the messages of a run within one
    host judge its GPUs and no host.
    """
    if not placement.gpus:
        return []
    fewest = settings.min_partners + 1
    rows: dict[int, list[str]] = {}
    for row, count in (_by_messages(run, views, placement, settings) | _by_copies(run, placement)).items():
        rows.setdefault(count if count >= fewest else 0, []).append(row)
    names = tuple(", ".join(of_count) for of_count in rows.values())
    counts, gpus = tuple(rows), len(placement.gpus)
    compared = [noted.compared_gpus(counts=counts, rows=names, gpus=gpus, fewest=fewest)] if rows else []
    shared = shared_gpus(run)
    sharing = [noted.shared_gpus(gpus=shared.gpus, gpu=shared.gpu, ranks=shared.ranks)] if shared else []
    return [*compared, *_paths(run), *sharing]


def _paths(run: Run) -> list[Note]:
    """Return a note for each path of messages of GPU memory, with the media that took it."""
    media: dict[tuple[str, str], dict[str, None]] = {}
    for row in run.rows:
        path = row.medium.gpu_memory, row.facts.carrier.gpu_path
        if path_words(*path):
            media.setdefault(path, {})[row.medium.label] = None
    return [
        noted.gpu_path(memory=memory, path=path, media=tuple(media_of_path))
        for (memory, path), media_of_path in media.items()
    ]


def _by_messages(run: Run, views: Sequence[ViewResult], placement: Placement, settings: Settings) -> dict[str, int]:
    """Return by row the number of GPUs whose ranks have a bound in each view of the row."""
    in_gpu_memory = {row.name for row in run.rows if row.medium.gpu_memory}
    counts: dict[str, int] = {}
    for view in views:
        if view.row in in_gpu_memory:
            gpus = placement.gpu[~np.isnan(view.bounds[2]) & (placement.gpu >= 0)]
            are_comparable = view.compared & ENDPOINT_KINDS and are_hosts_homogeneous(view, settings)
            count = np.unique(gpus).size if are_comparable else 0
            counts[view.row] = min(counts.get(view.row, count), count)
    return counts


def _by_copies(run: Run, placement: Placement) -> dict[str, int]:
    """Return by row of `gpu_loopback` the number of GPUs that were measured."""
    counts, comparable = {}, have_comparable_gpus(placement)
    for row in run.rows:
        if row.kernel == GPU_COPIES:
            measured = (np.asarray(row.times[:]) > 0).any(axis=(1, 2))
            counts[row.name] = np.unique(placement.gpu[measured & comparable]).size
    return counts

"""Notes about a run as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import seen_in
from fablint.analyse.findings.judged_run import JudgedRun
from fablint.analyse.findings.paths.declared_speeds import unfilled_cables
from fablint.analyse.phrasing import unfinished
from fablint.analyse.settings import FEWEST_PEERS
from fablint.model import Note
from fablint.text import notes as noted


def notes_of_run(judged: JudgedRun) -> list[Note]:
    """Return what a reader should know, and what this run could not have shown whatever it measured."""
    run, views, placement, topology = judged.run, judged.views, judged.placement, judged.topology
    imported = run.facts.imported
    about_files = [*imported.missing, *imported.remedies] if imported else []
    texts = dict.fromkeys([*run.notes, *about_files, *run.facts.launch.binding.notes])
    notes = [noted.message(text) for text in texts]
    if placement.shared_machines:
        notes.append(noted.shared_machines(run.facts.launch.machines or 0))
    notes += unfinished(run)
    # Many faulty components may have a part in common that only a topology names.
    if not topology and any(len(view.detections) >= FEWEST_PEERS for view in views):
        notes.append(noted.several_faults())
    if not topology and len(placement.hosts) > 1:
        notes.append(noted.no_topology())
    if topology and (unknown := np.unique(placement.host[placement.switch < 0])).size:
        notes.append(noted.unnamed_hosts(tuple(placement.hosts[host] for host in unknown)))
    if topology and len(placement.hosts) > 1:
        compared = {kind for view in views for kind in view.compared}
        if "switch" not in compared:
            notes.append(noted.few_switches(len(placement.switches)))
        followed = topology.routing.kind not in ("adaptive", "ecmp")
        if topology.cables and "cable" not in compared and followed:
            notes.append(noted.few_cables())
    notes += [*_contention(views), *unfilled_cables(judged)]
    if topology and topology.routing.kind == "adaptive" and not any(view.link_pairs.any() for view in views):
        shared = any("histogram" in row.arrays for row in run.rows)
        notes.append(noted.adaptive_shared() if shared else noted.adaptive_unjudged())
    if views and not any(view.one_way for view in views) and len(placement.hosts) > 1:
        notes.append(noted.no_streams())
    return notes


def _contention(views: Sequence[ViewResult]) -> list[Note]:
    """Return how much longer pairs took that shared a link with others than those that did not."""
    sharing = [(view, *view.sharing) for view in views if view.sharing is not None]
    return [seen_in(view, noted.contention(low=float(low), high=float(high))) for view, low, high in sharing]

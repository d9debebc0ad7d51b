"""Components that delay messages, as detections."""

from __future__ import annotations

import numpy as np

from fablint.analyse.explain.ambiguity import AmbiguityGroup, GroupMember
from fablint.analyse.explain.lateness.adaptive_links import LateComponent
from fablint.analyse.explain.search import Detection
from fablint.analyse.observations.pair_matrix import Pairs
from fablint.model import ComponentRef
from fablint.topology.routing import Routes


def late_detection(case: LateComponent, routes: Routes, pairs: Pairs, *, bidirectional: bool) -> Detection:
    """Return a component that delays messages as a detection: a switch, one direction of a cable, or both
    directions.
    """
    sides = (0,) if case.is_switch else (0, 1) if bidirectional else (case.number % 2,)
    links = () if case.is_switch else (case.number, case.number ^ 1)
    return Detection(
        kind="switch" if case.is_switch else "cable",
        whole=(
            ComponentRef.of("switch", routes.switches[case.number])
            if case.is_switch
            else routes.cable_component(case.number)
        ),
        ranks=np.unique(np.concatenate([case.cells[0], pairs.destination(case.cells)])),
        sides=sides,
        loss=case.loss,
        pairs=case.pairs,
        slow=case.slow,
        log_e=case.log_e,
        cells=case.cells,
        ambiguity_group=AmbiguityGroup(
            same=tuple(_link_member(int(link), routes, bidirectional=bidirectional) for link in case.same)
        ),
        own=tuple(_link_member(link, routes, bidirectional=False) for link in links[: len(sides)]),
        late=case.late,
    )


def _link_member(link: int, routes: Routes, *, bidirectional: bool) -> GroupMember:
    """Return a link as a member of an ambiguity group; of round trips its cable."""
    return GroupMember(
        "link", link, link % 2, routes.cable_component(link) if bidirectional else routes.component(link)
    )

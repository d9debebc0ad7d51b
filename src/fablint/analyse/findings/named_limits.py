"""Limits of a verdict: the losses that this run would have named, by quantity and type of component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from fablint.analyse.explain.view import ViewResult
from fablint.analyse.findings.detection_text import relative
from fablint.analyse.settings import Settings
from fablint.model import Limits
from fablint.model.component import ComponentKind
from fablint.model.registry import Quantity
from fablint.model.verdict import NamedLoss


def limits_of(views: Sequence[ViewResult], settings: Settings) -> Limits:
    """Return the limits of a verdict from views that show healthy components: the best view of a quantity counts."""
    smallest: dict[tuple[Quantity, ComponentKind], float] = {}
    for view in views:
        for kind, loss in view.named_losses.items():
            if kind in get_args(ComponentKind):
                key = view.quantity, cast(ComponentKind, kind)
                smallest[key] = min(loss, smallest.get(key, loss))
    named = tuple(
        NamedLoss(component=kind, quantity=quantity, loss=round(abs(relative(loss, quantity)), 4))
        for (quantity, kind), loss in sorted(smallest.items())
    )
    return Limits(reported=settings.tolerance, passed=settings.loss_in_scope, named=named)

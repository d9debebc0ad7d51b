"""The components of findings one by one, for programs that keep a state for each name."""

from __future__ import annotations

from collections.abc import Iterator

from fablint.model import ComponentKind, Finding


def subjects(finding: Finding) -> Iterator[tuple[ComponentKind, str]]:
    """Yield type and name of each component; the hosts of a set one by one, and nothing for `127 links`."""
    for component in finding.components:
        if component.count is not None:
            continue
        ends = component.ends
        if len(ends) == 1 and len(ends[0].nodes) > 1:
            for node in ends[0].nodes:
                end = ends[0].model_copy(update={"nodes": (node,)})
                yield component.kind, component.model_copy(update={"ends": (end,)}).label
        else:
            yield component.kind, component.label

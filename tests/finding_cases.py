"""Findings and components for tests, written as their labels."""

from __future__ import annotations

import re
from typing import Any

from fablint.model import ComponentKind, ComponentRef, Endpoint, Finding, State
from fablint.text.names import unfold


def component(kind: ComponentKind, label: str) -> ComponentRef:
    """`h05`, `h05/hsn0`, `h05:3`, `nid[001-004]`, `s3>s5`, `s3=s5`; anything else of a configuration is a title."""
    if kind == "config" and " " in label:
        return ComponentRef(kind=kind, title=label)
    ends = [_end(text) for text in re.split("[=>]", label)]
    return ComponentRef.of(kind, *ends, directed=">" in label)


def _end(text: str) -> Endpoint:
    name, _, part = text.partition("/")
    name, _, rank = name.partition(":")
    if not re.fullmatch(r"\d+", rank, re.ASCII):
        name, rank = text.partition("/")[0], ""
    nodes = unfold(name) if re.search(r"[\[,]", name) else ()
    return Endpoint(nodes=nodes or (name,), part=part, rank=int(rank) if rank else None)


def finding(state: State, kind: ComponentKind, label: str, **more: Any) -> Finding:
    """A finding about one component."""
    return Finding(state=state, components=(component(kind, label),), **more)


def group(found: Finding) -> tuple[str, ...]:
    """The members of the ambiguity group, as reports write them."""
    return tuple(one.text for one in found.ambiguity_group)

"""Findings and components for tests, written as their labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fablint.model import ComponentKind, ComponentRef, Endpoint, EvidenceRecord, Finding, Note, State, Verdict
from fablint.model.names import unfold
from fablint.text import actions as advise, evidence as seen
from fablint.text.notes import note_text

ref = ComponentRef.of  # the ends by name


def component(kind: ComponentKind, label: str) -> ComponentRef:
    """`h05`, `h05/hsn0`, `h05:3`, `nid[001-004]`, `s3>s5`, `s3=s5`; anything else of a configuration is a title."""
    if kind == "config" and " " in label:
        return ComponentRef(kind=kind, title=label)
    ends = [_end(text) for text in re.split("[=>]", label)]
    return ComponentRef.of(kind, *ends, directed=">" in label)


def texts(notes: Iterable[Note]) -> list[str]:
    """Sentences of notes."""
    return [note_text(note) for note in notes]


def note_texts(verdict: Verdict) -> list[str]:
    """Sentences of the notes of a verdict."""
    return texts(verdict.notes)


def _end(text: str) -> Endpoint:
    name, _, part = text.partition("/")
    name, _, rank = name.partition(":")
    if not re.fullmatch(r"\d+", rank, re.ASCII):
        name, rank = text.partition("/")[0], ""
    nodes = unfold(name) if re.search(r"[\[,]", name) else ()
    return Endpoint(nodes=nodes or (name,), part=part, rank=int(rank) if rank else None)


def evidence_of(text: str) -> tuple[EvidenceRecord, ...]:
    """A sentence; `net.ping: no answer` is of a check, `loopback: ...` of a loopback test."""
    check = re.fullmatch(r"([a-z0-9]+(?:\.[a-z0-9_-]+)+): (.*)", text, re.DOTALL)
    if check:
        return (seen.check(message=check[2]).model_copy(update={"check": check[1]}),)
    kind = seen.loopback if text.lower().startswith("loopback") else seen.message
    return (kind(text),) if text else ()


def finding(
    state: State, kind: ComponentKind, label: str, evidence: str = "", next_step: str = "", **more: Any
) -> Finding:
    """A finding about one component."""
    more |= {"evidence": evidence_of(evidence), "next_step": advise.remedy(next_step) if next_step else ()}
    return Finding(state=state, components=(component(kind, label),), **more)


def group(found: Finding) -> tuple[str, ...]:
    """The members of the ambiguity group, as reports write them."""
    return tuple(one.text for one in found.ambiguity_group)

"""Notes on the site file: thresholds, known faults and suppressions."""

from __future__ import annotations

from fablint.text import units
from fablint.text.sentence_kind import NoteKind

expired_entry = NoteKind[str, str]("{entry} expired on {until}: its findings count again; renew or remove it")
unused_entry = NoteKind[str]("{entry}: no such finding in this run")
exceeded_entry = NoteKind[str, float]("{entry}: its finding counts: its loss is not within the known {loss:%}")
more_pairs_outside = NoteKind[int]("{pairs:#more pair} outside the threshold")
explained_pairs_outside = NoteKind[int]("""{pairs:#pair} outside the threshold; a component between switches is
    reported, which may explain them""")


@NoteKind
def unmeasured_threshold(*, source: str, scope: str, kernel: str, size: int) -> str:
    return f"{source} ({scope} {kernel} {units.size(size)}): no such pair was measured"

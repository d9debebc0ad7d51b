"""Notes of a verdict: a file for each family of kinds, each kind with its typed fields and its sentence.

`from fablint.text import notes as noted` has every kind: `noted.few_switches(3)` makes a note.
"""

from __future__ import annotations

from fablint.model.verdict import Note
from fablint.text.evidence_sentences import measurement
from fablint.text.notes.check_notes import *
from fablint.text.notes.fabric_notes import *
from fablint.text.notes.run_notes import *
from fablint.text.notes.site_notes import *
from fablint.text.sentence_kind import NoteKind, named_kinds

KINDS = named_kinds(globals(), NoteKind)


def note_text(note: Note) -> str:
    """Return the sentence of a note, after the row and size that it is about."""
    words = KINDS[note.kind].in_words(note.values)
    return f"{measured}: {words}" if (measured := measurement(note)) else words

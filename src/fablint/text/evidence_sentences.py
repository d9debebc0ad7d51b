"""Sentences for evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fablint.text import units
from fablint.text.evidence import KINDS

if TYPE_CHECKING:
    from fablint.model.verdict import EvidenceRecord, Statement


def sentence(record: EvidenceRecord) -> str:
    """Return the sentence of a record, after the row and size or the check that it is from."""
    source = record.check or measurement(record)
    words = KINDS[record.kind].in_words(record.values)
    return f"{source}: {words}" if source else words


def measurement(statement: Statement) -> str:
    """Return the row and size that a statement is about; empty where it is about none."""
    return " ".join(filter(None, (statement.row, "" if statement.size is None else units.size(statement.size))))


def sentences(evidence: Iterable[EvidenceRecord]) -> str:
    """Return the sentences of records, each once. A sentence that ends with a colon introduces the next."""
    return "; ".join(dict.fromkeys(map(sentence, evidence))).replace(":; ", ": ")

"""Kinds of records that are sentences of typed fields: a call with the fields makes a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any, Generic, ParamSpec, TypeVar

from fablint.model.verdict import EvidenceRecord, Note
from fablint.text.sentence_words import WORDS

Fields = ParamSpec("Fields")


class SentenceKind(Generic[Fields]):
    """Kind of evidence, note or action: a sentence of typed fields.

    A sentence of few fields is a template that names them in the order in which they are passed:
    `Sentence[int]("more than {count}")`. A sentence of many fields is a function from these, which are passed by name,
    to text. The name of the kind is that of the variable or function.

    Attributes
    ----------
    name
        Name of the kind in a verdict.
    words
        Template, on one line, or function.
    """

    def __init__(self, words: str | Callable[Fields, str]) -> None:
        self.name = ""
        self.words = " ".join(words.split()) if isinstance(words, str) else words

    @property
    def template_fields(self) -> tuple[str, ...]:
        """Names of the fields of a template; empty for a function. Numbers are components of an action."""
        template = self.words if isinstance(self.words, str) else ""
        names = (name for _, name, _, _ in Formatter().parse(template) if name and not name[0].isdigit())
        return tuple(dict.fromkeys(names))

    def values(self, fields: Iterable[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a call by their names, without those that are None."""
        by_name = {**dict(zip(self.template_fields, fields, strict=True)), **named}
        return {name: value for name, value in by_name.items() if value is not None}


class StatementKind(SentenceKind[Fields]):
    """Kind of a statement: evidence or a note."""

    def in_words(self, values: Mapping[str, Any]) -> str:
        """Return the sentence of a statement with these values."""
        words: Any = self.words
        return WORDS.vformat(words, (), values) if isinstance(words, str) else words(**values)


class NoteKind(StatementKind[Fields]):
    """Kind of note."""

    def __call__(self, *fields: Fields.args, **named: Fields.kwargs) -> Note:
        """Return the note with these fields; those that are None are left out."""
        return Note(kind=self.name, values=self.values(fields, named))


class Sentence(StatementKind[Fields]):
    """Kind of evidence."""

    def __call__(self, *fields: Fields.args, **named: Fields.kwargs) -> EvidenceRecord:
        """Return the record with these fields; those that are None are left out."""
        return EvidenceRecord(kind=self.name, values=self.values(fields, named))

    def among(self, evidence: Iterable[EvidenceRecord]) -> list[EvidenceRecord]:
        """Return the records of this kind."""
        return [record for record in evidence if record.kind == self.name]


Plain = Sentence[[]]  # a kind without fields
PlainNote = NoteKind[[]]
Names = tuple[str, ...]
_Kind = TypeVar("_Kind", bound=SentenceKind[...])


def named_kinds(namespace: Mapping[str, object], kind_class: type[_Kind]) -> dict[str, _Kind]:
    """Return the kinds of a module by the names of their variables, which they get as names."""
    kinds = {name: kind for name, kind in namespace.items() if isinstance(kind, kind_class)}
    for name, kind in kinds.items():
        kind.name = name
    return kinds

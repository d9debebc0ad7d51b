"""JSON objects as frozen dataclasses, and back: a field for each key."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Facts = TypeVar("Facts")
_Parser = Callable[[Any], Any]

GROUP: Mapping[str, bool] = {"group": True}  # metadata of a field whose own fields are keys of the object
SOURCE = "source"  # the field with the object that was read: the order of its keys, and those that have no field
_JSON_TYPES: Mapping[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    float: (float, int),
    bool: (bool, int),
    Literal: (str,),
    Sequence: (list, tuple),
    Mapping: (dict,),
}


def facts_of(kind: type[Facts], source: Mapping[str, Any]) -> Facts:
    """Return a JSON object as a dataclass; a key that is absent or null has the default of its field.

    Raises
    ------
    TypeError
        A value has another type than its field; the message names the key.
    """
    values: dict[str, Any] = {}
    for each in _fields(kind):  # type: ignore[arg-type]
        try:
            values[each.name] = facts_of(each.kind, source) if each.is_group else each.parsed(source.get(each.name))
        except _OtherTypeError as error:
            raise TypeError(f"attribute {each.name} is not of type {error}") from None
    return kind(**values, **({SOURCE: source} if SOURCE in kind.__dataclass_fields__ else {}))  # type: ignore[attr-defined]


def document_of(facts: Any) -> dict[str, Any]:
    """Return facts as the JSON object that has them, with the unknown keys of the object that they were read from.

    Fields that the object did not have are omitted where they have their default; of facts that were not read those
    whose default is empty. Values that are read when they are used, as counters of a run directory, are read.
    """
    source = getattr(facts, SOURCE, {})
    changed = {}
    for each, value in _entries(facts):
        if each.name in source:
            if each.parsed(source[each.name]) != value:
                changed[each.name] = _plain(value)
        elif not ((source or each.is_optional) and (value == each.default or value == [])):
            changed[each.name] = _plain(value)
    return {name: _read_out(value) for name, value in {**source, **changed}.items()}


def _read_out(value: Any) -> Any:
    return {key: _read_out(each) for key, each in value.items()} if isinstance(value, Mapping) else value


class _OtherTypeError(Exception):
    """A JSON value of another type than expected, which the message names."""


@dataclass(frozen=True)
class _Field:
    name: str
    kind: Any
    is_group: bool
    parse: _Parser
    default: Any
    is_optional: bool  # whether it is omitted where it has its default

    def parsed(self, value: Any) -> Any:
        return self.default if value is None else self.parse(value)


@cache
def _fields(kind: Any) -> Sequence[_Field]:
    hints = get_type_hints(kind)
    return [
        _Field(
            each.name,
            hints[each.name],
            "group" in each.metadata,
            _parser(hints[each.name]),
            _empty(hints[each.name]) if each.default is MISSING else each.default,
            each.default_factory is dict or _is_empty(each.default),
        )
        for each in fields(kind)
        if each.name != SOURCE
    ]


def _entries(facts: Any) -> Iterator[tuple[_Field, Any]]:
    for each in _fields(type(facts)):  # type: ignore[arg-type]
        value = getattr(facts, each.name)
        if each.is_group:
            yield from _entries(value)
        else:
            yield each, value


def _is_empty(default: Any) -> bool:
    return default is None or default in ("", ()) or is_dataclass(default)


def _empty(kind: Any) -> Any:
    """Return the value of a field without default whose key is absent."""
    if is_dataclass(kind):
        return facts_of(kind, {})  # type: ignore[arg-type]
    if get_origin(kind) is Mapping:
        return {}
    if get_origin(kind) is Sequence:
        return ()
    return kind() if kind in (str, int, float, bool) else None


@cache
def _parser(kind: Any) -> _Parser:
    """Return the function that checks a JSON value and makes the value of a type from it."""
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, types.UnionType):
        return _first_of([_parser(each) for each in arguments if each is not types.NoneType])
    if is_dataclass(kind):
        return lambda value: facts_of(kind, _checked(value, (dict,)))  # type: ignore[arg-type]
    if origin not in _JSON_TYPES:
        return lambda value: value
    accepted = _JSON_TYPES[origin]
    if not _has_records(kind):
        return lambda value: _checked(value, accepted)
    inner = _parser(arguments[-1])
    if origin is Sequence:
        return lambda value: [inner(each) for each in _checked(value, accepted)]
    return lambda value: _parsed_once(inner, _checked(value, accepted))


def _parsed_once(parse: _Parser, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parsed values by key; equal values become one object: the hosts of a fleet have equal NICs."""
    text_of = {id(value): repr(value) for value in {id(value): value for value in values.values()}.values()}
    texts = {key: text_of[id(value)] for key, value in values.items()}
    parsed = {text: parse(values[key]) for text, key in {text: key for key, text in texts.items()}.items()}
    return {key: parsed[text] for key, text in texts.items()}


def _checked(value: Any, accepted: tuple[type, ...]) -> Any:
    if type(value) not in accepted and not (dict in accepted and isinstance(value, Mapping)):
        raise _OtherTypeError(accepted[0].__name__)
    return value


def _first_of(parsers: Sequence[_Parser]) -> _Parser:
    if len(parsers) == 1:
        return parsers[0]

    def parse(value: Any) -> Any:
        for attempt in parsers[:-1]:
            try:
                return attempt(value)
            except _OtherTypeError:
                continue
        return parsers[-1](value)

    return parse


def _has_records(kind: Any) -> bool:
    return is_dataclass(kind) or any(_has_records(each) for each in get_args(kind))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return document_of(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value

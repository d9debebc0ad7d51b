"""Read YAML files written by hand; every mistake is reported in one line with the file and the key."""

from __future__ import annotations

import json
from collections.abc import Container, Hashable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from fablint.errors import UsageError
from fablint.model.names import expanded, plural

MOST_BYTES = 1 << 28  # of a file: 100,000 hosts with their ports and cables take a tenth
MOST_DEPTH = 10  # of mappings and lists in each other; the C parser does not survive 10,000
MOST_SHOWN = 60  # characters of a wrong value


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML loader that refuses a key given twice (PyYAML keeps the last). The C parser is ten times as fast."""

    depth = 0

    def descend_resolver(self, parent: yaml.Node | None, index: Any) -> None:
        """Called for every node, before its children."""
        self.depth += 1
        if self.depth > MOST_DEPTH and parent is not None:
            raise yaml.composer.ComposerError(None, None, f"nested deeper than {MOST_DEPTH}", parent.start_mark)

    def ascend_resolver(self) -> None:
        """Called for every node, after its children."""
        self.depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a name", key_node.start_mark)
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key_node.value}' is given twice", key_node.start_mark
                )
            seen.add(key_node.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def read_text(path: Path, kind: str, keys: tuple[str, ...]) -> str:
    """Text of a file.

    Raises
    ------
    UsageError
        The file cannot be read, or is far too large for a `kind` (`topology`).
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path}: {path.stat().st_size} bytes: not a {kind}", f"it needs the keys {_list(keys)}")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", f"name a {kind} file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text file") from error


def mapping_of(path: Path, text: str, kind: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Mapping that a file holds.

    Raises
    ------
    UsageError
        The text is not a `kind` (`topology`), or has a key that is not in `keys`.
    """
    document = loads(path, text)
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a {kind}", f"it needs the keys {_list(keys)}")
    for key in document:
        if key not in keys:
            raise UsageError(f"{path}: unknown key {shown(str(key))}", f"choose from {_list(keys)}")
    return document


def loads(path: Path | str, text: str) -> Any:
    """Document that a YAML or JSON text holds.

    Raises
    ------
    UsageError
        The text is neither; the message names the line.
    """
    try:
        if text.lstrip()[:1] == "{":  # PyYAML refuses JSON with long keys, or with tabs
            with suppress(json.JSONDecodeError):
                return json.loads(text, object_pairs_hook=_once_each)
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: {error.problem}", "the file must be YAML") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON object; raise ValueError if a key is given twice."""
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"{shown(key)} is given twice")
        mapping[key] = value
    return mapping


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def shown(value: object) -> str:
    """A value as an error line quotes it."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def check_format(path: Path, document: dict[str, Any], newest: int) -> None:
    """Raise UsageError if the format number of a file is missing or newer than `newest`."""
    number = document.get("format")
    if type(number) is not int or number < 1:
        raise UsageError(f"{path}: format: {shown(number)} is not a format number", f"write 'format: {newest}'")
    if number > newest:
        raise UsageError(f"{path}: format: {number} is newer than the {newest} known here", "update fablint")


def entries(path: Path, document: dict[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    """Items of the mapping under `key`.

    Raises
    ------
    UsageError
        The mapping is missing, or one of its keys is not a name.
    """
    mapping = document.get(key)
    if not isinstance(mapping, dict):
        raise UsageError(f"{path}: {key}: missing, or not a mapping", "see man fablint-topology")
    for name, value in mapping.items():
        if not str(name).isprintable():
            raise UsageError(f"{path}: {key}: {shown(name)} is not a name")
        yield str(name), value


def known_name(path: Path, key: str, kind: str, name: object, declared: Container[str]) -> str:
    """Return `name`, which the file must have declared as a `kind` (`switch`).

    Raises
    ------
    UsageError
        The name is not in `declared`.
    """
    if not isinstance(name, str | int) or str(name) not in declared:
        section = plural(2, kind).partition(" ")[2]
        raise UsageError(f"{path}: {key}: unknown {kind} {shown(name)}", f"declare it under {section}")
    return str(name)


def unfold(path: Path, key: str, names: str) -> tuple[str, ...]:
    """Single names of `h[00-07]`; raise UsageError for a list that cannot be read.

    Groups (`@name`) are not looked up: a file has the same meaning on every machine.
    """
    try:
        unfolded = unfolded_names(names)
    except ValueError as error:
        raise UsageError(f"{path}: {key}: {error}", "write names as in h[00-07]") from error
    if not unfolded:
        raise UsageError(f"{path}: {key}: an empty name")
    return unfolded


@lru_cache(maxsize=1 << 14)  # forwarding tables of many switches name the same hosts
def unfolded_names(names: str) -> tuple[str, ...]:
    """Single names in order; raise ValueError if the list cannot be read."""
    if names.isidentifier() and names.isascii():
        return (names,)
    return expanded(names)

"""Facts of runs and rows from the attributes that a run directory has for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from fablint.model import Row, Run
from fablint.model.facts.json_objects import document_of, facts_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import RunFacts

Item = TypeVar("Item", Row, Run)


def row_facts(attributes: Mapping[str, Any]) -> RowFacts:
    return facts_of(RowFacts, attributes)


def run_facts(attributes: Mapping[str, Any]) -> RunFacts:
    return facts_of(RunFacts, attributes)


def attributes_of(item: Row | Run) -> dict[str, Any]:
    return document_of(item.facts)


def with_facts(item: Item, **attributes: Any) -> Item:
    """The run or row with other values of these attributes."""
    return replace(item, facts=facts_of(type(item.facts), {**document_of(item.facts), **attributes}))

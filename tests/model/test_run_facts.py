"""Facts of runs and rows: read from the attributes of a run directory, and written as such."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from fablint.model.facts.json_objects import GROUP, document_of, facts_of
from fablint.model.facts.row_attributes import RowFacts
from fablint.model.facts.run_attributes import HostNic, LaunchFacts, RunFacts

FORMAT_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "run-format.md"
SOURCE = {
    "later": {"of": "another version"},
    "hosts": ["a", "b"],
    "mpi": None,
    "nics": {"a": [{"name": "hsn0", "kind": "cxi", "later": 1}]},
    "lost": [{"rank": 1, "host": "b", "round": None, "partner": 0, "reason": "died"}],
    "instrument": {"clock": "tsc", "oversubscribed": True},
    "ranks": 2,
}


def keys_of(kind: Any) -> set[str]:
    """The keys of the JSON object of a class of facts."""
    names: set[str] = set()
    for each in fields(kind):
        names |= keys_of(each.default_factory) if each.metadata == GROUP else {each.name}
    return names - {"source"}


@pytest.mark.parametrize(("section", "kind"), [("Root attributes", RunFacts), ("Row attributes", RowFacts)])
def test_each_documented_attribute_is_a_field(section, kind) -> None:
    table = FORMAT_PAGE.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for line in lines for name in line.split("`")[1::2]}
    assert len(documented) > 15
    assert documented <= keys_of(kind)


def test_what_is_read_is_written_again_with_unknown_keys_in_the_same_order() -> None:
    assert json.dumps(document_of(facts_of(RunFacts, SOURCE))) == json.dumps(SOURCE)


def test_only_what_changed_is_written_anew() -> None:
    facts = facts_of(RunFacts, SOURCE)
    moved = replace(facts, hosts=["c", "b"], rank_nic=["hsn0", ""], launch=replace(facts.launch, started="today"))
    assert document_of(moved) == {**SOURCE, "hosts": ["c", "b"], "rank_nic": ["hsn0", ""], "started": "today"}


def test_values_have_the_types_of_their_fields() -> None:
    facts = facts_of(RunFacts, SOURCE)
    assert facts.nics["a"] == [HostNic("hsn0", "cxi")]
    assert (facts.lost[0].host, facts.instrument.oversubscribed, facts.launch.mpi) == ("b", True, None)
    assert (facts.rank_gpu, facts.imported, facts.launch) == ((), None, LaunchFacts())


def test_facts_made_in_memory_have_no_empty_attributes() -> None:
    written = document_of(RowFacts("latency"))
    assert written["kernel"] == "latency" and written["repeats"] == 1
    assert written["stop"] == {"samples": None, "budget_s": None, "precision": None, "iterations": None}
    assert not {"win", "tcp", "corrupt", "counters", "cpu_wait_s", "retest_of", "source"} & set(written)


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"rank_nic": "hsn0"}, "attribute rank_nic is not of type list"),
        ({"machines": "2"}, "attribute machines is not of type int"),
        ({"nics": {"a": [{"name": 1}]}}, "attribute name is not of type str"),
        ({"nics": {"a": {}}}, "attribute nics is not of type list"),
        ({"instrument": {"oversubscribed": "no"}}, "attribute oversubscribed is not of type bool"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(attributes, error) -> None:
    with pytest.raises(TypeError, match=error):
        facts_of(RunFacts, attributes)


def test_cells_of_rounds_are_one_number_or_a_list() -> None:
    both = [facts_of(RowFacts, {"rounds": 3, "cells_per_round": cells}) for cells in (4, [4, 4, 2])]
    assert [facts.schedule.planned_cells for facts in both] == [[4, 4, 4], [4, 4, 2]]


def test_hosts_with_equal_nics_share_one_list() -> None:
    nics = {host: [{"name": "hsn0", "speed_mbps": speed}] for host, speed in (("a", 200), ("b", 100), ("c", 200))}
    facts = facts_of(RunFacts, {"hosts": ["c", "d", "a", "b"], "nics": nics})
    lists, list_of = facts.nic_lists
    assert [lists[number] for number in list_of] == [facts.nics.get(host, ()) for host in facts.hosts]
    assert facts.nics["a"] is facts.nics["c"]
    assert document_of(facts)["nics"] == nics

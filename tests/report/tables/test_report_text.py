"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest

import pytest

from fablint.report.tables import steps, table
from fablint.text import units


@pytest.mark.parametrize(("module", "examples"), [(units, 8), (table, 1), (steps, 2)], ids=["text", "table", "steps"])
def test_examples(module, examples):
    found = doctest.testmod(module)
    assert found.attempted >= examples
    assert found.failed == 0

"""The examples in the docstrings of `text` are true."""

from __future__ import annotations

import doctest

from fablint.report import text


def test_examples():
    found = doctest.testmod(text)
    assert found.attempted > 8
    assert found.failed == 0

"""Verbs are called in this process. As a program they are started by the tests of bad input and those with engines."""

from __future__ import annotations

import pytest

from fablint_command import Fablint


@pytest.fixture
def fablint(fablint_in_process: Fablint) -> Fablint:
    return fablint_in_process

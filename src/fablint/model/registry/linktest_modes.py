"""Modes of LinkTest, by the options of a row that measure the same."""

from __future__ import annotations

from collections.abc import Mapping

LINKTEST_MODE = "Virtual-Cluster Implementation"  # fact of a log of 2.x: what carries the messages
LINKTEST_MODES: Mapping[str, Mapping[str, str]] = {
    "mpi": {"transport": "mpi"},
    "tcp": {"transport": "tcp"},
    "ucp": {"transport": "ucx"},
    "ibverbs": {"transport": "verbs"},
    "psm2": {"transport": "ofi", "ofi-provider": "psm2"},
    "cuda": {"transport": "cuda-p2p"},
}

"""Compact pickling of the results of a check.

Most hosts of a fleet have the same outcome, message and value. Each different result is pickled once, without its host,
and every result as two indices: of the different result and of the host.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from fablint.model.preflight_results import Result

_HOST = Result._fields.index("host")
_NUMBERS = "L"  # of hosts and of different results


class Batch:
    """The results of a check, in order."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = results

    def __reduce__(self) -> tuple[Any, ...]:
        kinds: dict[tuple[Any, ...], int] = {}
        hosts: dict[str, int] = {}
        kind_of, host_of = array(_NUMBERS), array(_NUMBERS)
        for one in self.results:
            # 1, 1.0 and True are equal, but have different texts
            kind = (one[:_HOST], one[_HOST + 1 :], type(one.value), type(one.expected))
            kind_of.append(kinds.setdefault(kind, len(kinds)))
            host_of.append(hosts.setdefault(one.host, len(hosts)))
        return _unpacked, ([key[:2] for key in kinds], list(hosts), kind_of, host_of)


def _unpacked(
    kinds: Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]],
    hosts: Sequence[str],
    kind_of: array[int],
    host_of: array[int],
) -> Batch:
    make, heads, tails = Result._make, [head for head, _ in kinds], [tail for _, tail in kinds]
    names = [(host,) for host in hosts]
    pairs = zip(kind_of, host_of, strict=True)
    return Batch([make(heads[kind] + names[host] + tails[kind]) for kind, host in pairs])

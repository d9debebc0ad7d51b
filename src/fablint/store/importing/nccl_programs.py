"""Which program of nccl-tests printed a table that does not name it: releases before 2.17 do not.

What tells them apart is in the sources of 1.0 to 2.19: bus over algorithm bandwidth, columns, and whether results in
place are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from fablint.model.registry import KERNELS

_LATE = {"redop", "root"}  # columns of every program since 2.10
_HALF, _HALF_DIGIT = 0.005, 5e-5  # of the last of two decimals, and of the last of five digits


@dataclass(frozen=True)
class NcclProgram:
    """What a program prints."""

    test: str
    reduces: bool  # it names an operation
    is_rooted: bool  # it names a root
    share: Callable[[int], float]  # bus bandwidth over algorithm bandwidth, by the number of ranks
    checks_in_place: bool = True
    is_late: bool = False  # there since 2.10

    def has_columns(self, columns: Collection[str]) -> bool:
        """Return whether a release has the program, and prints these columns."""
        if set(columns) >= _LATE:
            return True
        is_gathering = not self.reduces and not self.is_rooted  # alltoall printed an empty operation, allgather none
        return not self.is_late and (not is_gathering or ("redop" in columns) is not self.checks_in_place)


@dataclass(frozen=True)
class NcclEvidence:
    """What a table shows.

    Attributes
    ----------
    columns
        Names of its columns.
    reduces, is_rooted
        Whether its lines name an operation, and a root.
    is_checked
        Whether results are checked, out of place and in place; None where they are not checked out of place, or where
        the table has one of the two.
    rates
        Algorithm bandwidth and bus bandwidth of figures.
    """

    columns: tuple[str, ...]
    reduces: bool
    is_rooted: bool
    is_checked: bool | None
    rates: tuple[tuple[float, float], ...]


def _whole(_: int) -> float:
    return 1.0


def _others(ranks: int) -> float:
    return (ranks - 1) / ranks


_PROGRAMS = (
    *(
        NcclProgram(
            kernel.nccl_test, kernel.adds_floats, kernel.is_rooted, kernel.bus_share, "in-place" in kernel.options
        )
        for kernel in KERNELS.values()
        if kernel.nccl_test
    ),
    NcclProgram("reduce", True, True, _whole),
    NcclProgram("gather", False, True, _others, is_late=True),
    NcclProgram("scatter", False, True, _others, is_late=True),
    NcclProgram("sendrecv", True, False, _whole, checks_in_place=False, is_late=True),
    NcclProgram("hypercube", False, False, _whole, checks_in_place=False, is_late=True),
)


def program_of(evidence: NcclEvidence, ranks: int) -> str:
    """Return the only program that prints such a table for this number of ranks; '' if there is none or several."""
    fits = [
        program.test
        for program in _PROGRAMS
        if (program.reduces, program.is_rooted) == (evidence.reduces, evidence.is_rooted)
        and program.has_columns(evidence.columns)
        and evidence.is_checked in (None, program.checks_in_place)
        and _agree(evidence.rates, program.share(ranks))
    ]
    return fits[0] if len(fits) == 1 else ""


def _agree(rates: Iterable[tuple[float, float]], share: float) -> bool:
    """Return whether all bus bandwidths are this share of the algorithm bandwidths, but for the last printed digit."""
    return all(abs(bus - share * rate) <= _digit(bus) + share * _digit(rate) for rate, bus in rates)


def _digit(rate: float) -> float:
    return max(_HALF, _HALF_DIGIT * rate) * 1.001

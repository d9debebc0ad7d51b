"""Types of arrays, once for all modules: what the values mean, their dtype and the usual shape.

`k` are cells or pairs, `n` ranks, `m` columns of a matrix of pairs or rounds. A type allows each dtype that it names,
but no object, text or complex number. Arrays with one value for each pair of ranks take the smallest dtype that holds
their values.

The module imports numpy: a module that is imported early imports it for type checks only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
"""Whether a cell, pair or component is selected; bool, the shape of what it selects: (k,), (n, m)."""

Codes = npt.NDArray[np.integer]
"""Numbers of ranks, hosts, NICs, switches, links, groups, rounds; any integer dtype. A code is an index into a list of
names; -1 is none. (k,), or (n, m) for the partners of ranks.
"""

Ints = npt.NDArray[np.integer]
"""Counts, sums and sizes in bytes; any integer dtype. (k,), (n, m), or with the buckets of a histogram as last axis."""

Bits = npt.NDArray[np.unsignedinteger]
"""Sets of at most 64 members, one bit each; any unsigned dtype. (k,)."""

Floats = npt.NDArray[np.float64]
"""Figures that are computed: seconds, bytes/s, logarithms, probabilities; float64, NaN: not known. (k,), (n,)."""

Values = npt.NDArray[np.float32]
"""Figures as a run stores them, one for each cell or link: seconds or their logarithm, flows, shares; float32, NaN: not
measured. (n, m), (k,).
"""

RankPairs = npt.NDArray[np.integer]
"""Pairs of ranks, each row (src, dst); any integer dtype. (k, 2)."""

Cells = tuple[Codes, Codes]
"""Rows and columns of single cells of an (n, m) array: two arrays of (k,)."""

"""fablint: measures the interconnect of an HPC or AI cluster and localises the faulty component.

>>> import fablint
>>> run = fablint.open_run("night.run")        # doctest: +SKIP
>>> run["latency"].time_median.sel(src=3, size=8)     # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fablint.version import __version__

__all__ = ["__version__", "open_run"]

if TYPE_CHECKING:
    from fablint.store import open_run


def __getattr__(name: str) -> Any:
    """Import `open_run` on first use, so that `fablint --help` does not pay for xarray."""
    if name == "open_run":
        from fablint.store import open_run

        return open_run
    raise AttributeError(f"module 'fablint' has no attribute {name!r}")

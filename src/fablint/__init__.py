"""fablint: measures the interconnect of an HPC or AI cluster and localises the faulty component.

The names in `__all__` are its interface for Python programs, docs/reference/python.md; nothing else is public.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # an older Python reads this file, and no other
    sys.exit("fablint: Python %d.%d is too old: use Python 3.11 or later" % sys.version_info[:2])  # noqa: UP031

from typing import TYPE_CHECKING

from fablint.version import __version__

__all__ = [
    "__version__",
    "compare_runs",
    "diagnose",
    "export_run",
    "load_topology",
    "open_run",
    "read_run",
    "simulate_run",
    "summary",
    "verdict_json",
    "write_report",
    "write_run",
]

if TYPE_CHECKING:
    from fablint.store import open_run
    from fablint.workflows.interface.python_interface import (
        compare_runs,
        diagnose,
        export_run,
        load_topology,
        read_run,
        simulate_run,
        summary,
        verdict_json,
        write_report,
        write_run,
    )
else:

    def __getattr__(name):
        """Import a function on first use. `import fablint` itself imports nothing: Ctrl-C cannot interrupt it."""
        from fablint.model.lazy_imports import lazy_names

        modules = dict.fromkeys(__all__, "workflows.interface.python_interface") | {"open_run": "store"}
        return lazy_names(__name__, modules)(name)

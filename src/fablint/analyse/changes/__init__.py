"""What changed between two runs of the same hosts: before and after maintenance, or with two MPI libraries.

The runs are compared by what each run's own analysis fitted: the time of a healthy pair in each scope, and the effect
of each host (docs/explanation/how-it-decides.md). The runs need not have measured the same pairs in the same rounds.
"""

from fablint.analyse.changes.fitted_rows import RunResult
from fablint.analyse.changes.run_comparison import compare_runs
from fablint.analyse.settings import MARGIN

__all__ = ["MARGIN", "RunResult", "compare_runs"]

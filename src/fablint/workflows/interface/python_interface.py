"""The documented functions of the package `fablint` for Python programs: docs/reference/python.md.

A program imports them from `fablint`. Nothing else is public: other modules change without notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fablint.model import Diagnosis, Run, Topology
    from fablint.model.run_changes import RunChanges

PathText = str | PathLike[str]


def read_run(*paths: PathText) -> Run:
    """Read a run directory, or the files of another tool as one run.

    Raises
    ------
    fablint.errors.UsageError
        There is more than one run directory, or a path cannot be read.

    Examples
    --------
    >>> import fablint
    >>> run = fablint.simulate_run("mesh", "4x4", faults=["host:h03:tx:-30%"])
    >>> fablint.write_run(run, "night.run")
    >>> fablint.read_run("night.run").ranks
    16
    """
    from fablint.workflows.run_formats import read

    return read(*map(Path, paths))


def write_run(run: Run, path: PathText) -> None:
    """Write a run as a new run directory.

    Raises
    ------
    fablint.errors.UsageError
        The path exists, or cannot be written.

    Examples
    --------
    >>> import fablint
    >>> fablint.write_run(fablint.simulate_run("mesh", "2x4"), "healthy.run")
    """
    from fablint.store import write_run as write

    write(Path(path), run)


def export_run(run: Run, form: str, path: PathText) -> None:
    """Write the figures of a run in a format that other programs read.

    Parameters
    ----------
    run
        The run.
    form
        `netcdf`, `hdf5`, `csv`, `parquet` or `npy`.
    path
        File to write.

    Raises
    ------
    fablint.errors.UsageError
        The format is not known, or its package is not installed.

    Examples
    --------
    >>> import fablint
    >>> fablint.export_run(fablint.simulate_run("mesh", "2x4"), "csv", "figures.csv")
    """
    from fablint.store import export_run as export

    export(run, form, Path(path))


def simulate_run(kind: str, shape: str, *, faults: Sequence[str] = (), seed: int = 1) -> Run:
    """Return a run of all pairs on a simulated fabric.

    Parameters
    ----------
    kind, shape
        Fabric as for `fablint simulate`: `fat-tree`, `dragonfly`, `torus` or `mesh`, and its shape such as `4x4`.
    faults
        Faults as for `fablint simulate --fault`: `host:h03:tx:-30%`.
    seed
        Seed of the noise. The same seed makes the same run.

    Raises
    ------
    fablint.errors.UsageError
        The fabric or a fault cannot be built.

    Examples
    --------
    >>> import fablint
    >>> run = fablint.simulate_run("mesh", "4x4", faults=["host:h03:tx:-30%"])
    >>> run.ranks, [row.name for row in run.rows]
    (16, ['latency', 'bandwidth'])
    """
    from fablint.simulate import simulate
    from fablint.simulate.fabrics.kinds import build
    from fablint.simulate.fault_syntax import parse_fault

    return simulate(build(kind, None, shape), faults=[parse_fault(text) for text in faults], seed=seed)


def load_topology(path: PathText) -> Topology:
    """Read a topology file: which host is connected to which switch.

    Raises
    ------
    fablint.errors.UsageError
        The file cannot be read.

    Examples
    --------
    >>> import fablint, pathlib
    >>> text = "format: 1\\nswitches: {s0: {}}\\nhosts: {'h[0-3]': s0}\\n"
    >>> _ = pathlib.Path("topology.yaml").write_text(text)
    >>> fablint.load_topology("topology.yaml").host_switch["h2"]
    's0'
    """
    from fablint.discover import load_topology as load

    return load(Path(path))


def diagnose(run: Run, topology: Topology | None = None) -> Diagnosis:
    """Localise the faults of a run, as `fablint analyse` does; the verdict is `diagnosis.verdict`.

    Parameters
    ----------
    run
        The run. The files in its directory count: topology, site file, counters.
    topology
        Topology of the fabric; None: the one in the directory of the run, if there is one.

    Raises
    ------
    fablint.errors.UsageError
        The topology names none of the hosts of the run.

    Examples
    --------
    >>> import fablint
    >>> diagnosis = fablint.diagnose(fablint.simulate_run("mesh", "4x4", faults=["host:h03:tx:-30%"]))
    >>> diagnosis.verdict.exit_code
    1
    >>> finding = diagnosis.verdict.findings[0]
    >>> finding.state.name, sorted(finding.nodes)
    ('FAULT', ['h03'])
    """
    from fablint.workflows import analysis
    from fablint.workflows.run_files import load_topology as load

    return analysis.diagnose(run, topology if topology is not None else load(None, run))


def summary(run: Run, diagnosis: Diagnosis) -> str:
    """Return the text that `fablint analyse` prints.

    Examples
    --------
    >>> import fablint
    >>> run = fablint.simulate_run("mesh", "4x4", faults=["host:h03:tx:-30%"])
    >>> "h03" in fablint.summary(run, fablint.diagnose(run))
    True
    """
    from fablint.report import console_summary

    return console_summary(run, diagnosis)


def verdict_json(diagnosis: Diagnosis) -> str:
    """Return the verdict as `fablint analyse --json` prints it; docs/reference/verdict.md describes it.

    Examples
    --------
    >>> import fablint, json
    >>> verdict = json.loads(fablint.verdict_json(fablint.diagnose(fablint.simulate_run("mesh", "2x4"))))
    >>> verdict["exit_code"] in (0, 3)
    True
    """
    from fablint.report import verdict_json as document

    return document(diagnosis)


def write_report(run: Run, diagnosis: Diagnosis, path: PathText) -> None:
    """Write the report as an HTML page, and the verdict beside it.

    Parameters
    ----------
    run
        The run.
    diagnosis
        What `diagnose` returns of it.
    path
        File of the page. The verdict is in the same folder.

    Examples
    --------
    >>> import fablint
    >>> run = fablint.simulate_run("mesh", "2x4")
    >>> fablint.write_report(run, fablint.diagnose(run), "report.html")
    """
    from fablint.workflows import analysis

    analysis.write_report(run, diagnosis, Path(path))


def compare_runs(old: Run, new: Run, *, margin: float = 0.03) -> RunChanges:
    """Compare two runs of the same hosts, as `fablint compare` does.

    Parameters
    ----------
    old, new
        The runs.
    margin
        Relative loss that is accepted.

    Raises
    ------
    fablint.errors.UsageError
        The runs have no host in common.

    Examples
    --------
    >>> import fablint
    >>> old = fablint.simulate_run("mesh", "4x4", seed=1)
    >>> new = fablint.simulate_run("mesh", "4x4", seed=2, faults=["host:h03:tx:-30%"])
    >>> fablint.compare_runs(old, new).exit_code
    1
    """
    from fablint.workflows import analysis

    return analysis.compare_runs(old, new, None, margin)

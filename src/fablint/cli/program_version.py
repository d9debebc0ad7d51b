"""What `fablint --version` prints: the release, its commit, the engine of this site, and its MPI."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from fablint.cli.session import Session
from fablint.errors import FablintError
from fablint.version import __version__


def print_version(context: click.Context) -> None:
    """Print the version and end the call."""
    session = context.ensure_object(Session)
    facts = version_facts(session)
    labels = (("commit", "commit"), ("engine", "engine"), ("MPI", "mpi"))
    lines = [f"fablint {__version__}", *(f"{label:<8}{facts[key]}" for label, key in labels)]
    session.result("\n".join(lines), facts)
    context.exit()


def version_facts(session: Session) -> Mapping[str, Any]:
    """Release, commit, engine and MPI; what is not known or not there is said in words."""
    from fablint.measure import find_engine, find_launchers, find_mpicxx

    system = session.machine()
    facts = {"fablint": __version__, "commit": _commit() or "unknown"}
    try:
        mpicxx, origin = find_mpicxx(system)
        facts |= {"engine": f"none built for {mpicxx} yet", "mpi": f"{mpicxx} ({origin})"}
        launcher = find_launchers(system, mpicxx).launchers[0]
        facts["mpi"] = f"{launcher.version}, {launcher.path}; {mpicxx} ({origin})"
        engine = find_engine(system)
        facts["engine"] = f"{engine.key}, built {engine.built} for {engine.mpicxx}"
    except FablintError as error:
        facts = {"engine": "none", "mpi": f"none: {error.message}"} | facts
    return facts


def _commit() -> str:
    """Return the commit of a wheel, of a checkout or of an installation from a repository; empty if it is unknown."""
    from importlib.metadata import PackageNotFoundError, distribution

    package = Path(__file__).parents[1]
    with suppress(OSError):
        return (package / "commit.txt").read_text().strip()  # of a wheel, by hatch_build.py
    root = package.parents[1]
    if (root / ".git").exists():
        with suppress(OSError, subprocess.SubprocessError):
            words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
            return subprocess.run(words, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    with suppress(PackageNotFoundError, json.JSONDecodeError, TypeError, AttributeError):
        origin = json.loads(distribution("fablint").read_text("direct_url.json") or "{}")
        return str(origin.get("vcs_info", {}).get("commit_id", ""))
    return ""

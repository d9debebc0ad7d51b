"""A check of a virtual cluster with known faults: what the verdict says, and whether it is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fablint.errors import UsageError
from fablint.plan.rows.host_lists import parse_hosts
from tested_mpis import wrapper_name
from vcluster import Cluster

CHECK = (sys.executable, "-m", "fablint.cli", "-q", "check", "--mpicxx", wrapper_name("openmpi"))
LIMIT_S = 900.0
MOST_SAID = 600  # characters of an error
REPORTED_STATES = ("FAULT", "SUSPECT", "CONFOUNDED")
OF_A_HOST = ("host", "nic", "cable", "link", "port")
BETWEEN_SWITCHES = ("cable", "link", "port", "route")
OPPOSITE = {"tx": "rx", "rx": "tx"}


@dataclass(frozen=True)
class Faulty:
    """A component that has a fault: a host, with its NIC and its cable, or the cable between two switches.

    `ends` is the host or both switches, each with all its names, since a presumed path is named after groups. A
    fault of one direction is in what the host sends, or in the messages from the first end to the second.
    """

    ends: tuple[frozenset[str], ...]
    one_way: bool = False

    def is_named_by(self, finding: Mapping[str, Any]) -> bool:
        """Is the component the one of a finding, or of the group that the finding cannot tell apart?"""
        said = [f"{finding['text']['component']} {finding['text']['name']}", *finding["text"]["ambiguity_group"]]
        return not self._is_contradicted_by(finding) and any(self._is_named_in(text) for text in said)

    def _is_named_in(self, text: str) -> bool:
        """Does a text such as `cable s0=s1` or `host n[01-02]` name the component, and not only one of its ends?"""
        names = {name for word in re.findall(r"[\w\[\],.-]+", text) for name in _unfolded(word)}
        components = OF_A_HOST if len(self.ends) == 1 else BETWEEN_SWITCHES
        return text.split()[0] in components and all(names & end for end in self.ends)

    def _is_contradicted_by(self, finding: Mapping[str, Any]) -> bool:
        """Does a finding name the other direction, or both where one is faulty?"""
        if not self.one_way:
            return False
        if len(self.ends) == 1:
            return finding["direction"] in ("rx", "both")
        first = str(finding["text"]["name"]).partition(">")[0]
        reverse = ">" in finding["text"]["name"] and first not in self.ends[0]
        return reverse or finding["direction"] == "both"


def _unfolded(word: str) -> set[str]:
    try:
        return set(parse_hosts(word))
    except UsageError:
        return {word}


@dataclass(frozen=True)
class Outcome:
    """What a check came to. Without a verdict `findings` is empty and `error` has the end of the output."""

    exit_code: int
    seconds: float
    findings: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    error: str = ""

    @property
    def reported(self) -> list[Mapping[str, Any]]:
        return [finding for finding in self.findings if finding["state"] in REPORTED_STATES]

    def wrong(self, faulty: Sequence[Faulty]) -> list[str]:
        """What is wrong with the verdict on a cluster that has these faults; empty where it is right.

        Right is: a FAULT names a component that has a fault, alone or in a group, and nothing else; every component
        that has one is named by a FAULT or a SUSPECT; a cluster with faults does not pass.
        """
        if self.error:
            return [f"no verdict: {self.error}"]
        faults = [finding for finding in self.findings if finding["state"] == "FAULT"]
        named = [finding for finding in self.findings if finding["state"] in ("FAULT", "SUSPECT")]
        false = [one for one in faults if not any(component.is_named_by(one) for component in faulty)]
        missed = [component for component in faulty if not any(map(component.is_named_by, named))]
        found = [f"false {sentence(finding)}" for finding in false]
        found += [f"not named: {'='.join(min(end) for end in component.ends)}" for component in missed]
        return found + (["PASS with a fault"] if faulty and self.exit_code == 0 else [])

    def summary(self) -> str:
        """Findings of faults and suspects, or the error."""
        return self.error or "; ".join(map(sentence, self.reported)) or "no component reported"

    def not_measuring(self) -> str:
        """Seconds of all stages but measuring, as the last note has them."""
        return next((note.partition("measuring, ")[2] for note in self.notes if "s measuring" in note), "")


def sentence(finding: Mapping[str, Any]) -> str:
    """A finding in a few words."""
    effect = finding["effect"]
    words = [
        finding["state"],
        finding["text"]["component"],
        finding["text"]["name"],
        finding["direction"],
        finding["quantity"],
    ]
    words.append(None if effect is None else f"{effect:+.0%}")
    group = f" (or {', '.join(finding['text']['ambiguity_group'])})" if finding["text"]["ambiguity_group"] else ""
    return " ".join(word for word in words if word) + group


def last_words(output: str) -> str:
    """The end of what a check printed, on one line."""
    return " | ".join(output.split("\n"))[-MOST_SAID:].strip() or "no verdict and no message"


def checked(bed: Cluster, folder: Path, *options: str | Path, within: Sequence[str] = ()) -> Outcome:
    """The outcome of one check from the login node.

    Parameters
    ----------
    bed
        The cluster.
    folder
        Where the run is written, as `check.run`.
    options
        Of `fablint check`.
    within
        Command in which it runs, such as `salloc -N16`.
    """
    output = folder / "check.run"
    begun = time.monotonic()
    done = bed.run([*within, *CHECK, *options, "-o", output], timeout=LIMIT_S, cwd=folder)
    seconds = time.monotonic() - begun
    page = output / "report" / "verdict.json"
    if not page.exists():
        return Outcome(done.returncode, seconds, error=last_words(done.stdout + done.stderr))
    verdict = json.loads(page.read_text())
    return Outcome(done.returncode, seconds, verdict["findings"], [note["text"] for note in verdict["notes"]])


def verdict_of(output: Path) -> dict[str, Any]:
    """Return the verdict of a check."""
    found: dict[str, Any] = json.loads((output / "report" / "verdict.json").read_text())
    return found


def reported(output: Path) -> list[tuple[str, str, str | None]]:
    """What a check reports at fault: component, name and direction."""
    findings = verdict_of(output)["findings"]
    return [
        (finding["text"]["component"], finding["text"]["name"], finding["direction"])
        for finding in findings
        if finding["state"] == "FAULT"
    ]


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a check that runs has written a file."""
    deadline = time.monotonic() + LIMIT_S
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.2)

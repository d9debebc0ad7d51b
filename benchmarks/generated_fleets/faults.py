"""What can be wrong with one host of a fleet, as it shows in its snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from generated_fleets.edits import Change
from generated_fleets.faults_host import HOST_FAULTS
from generated_fleets.faults_network import NEEDS_ROOT, NEEDS_TOPOLOGY, NETWORK_FAULTS, SHARED
from generated_fleets.machines import Machine


@dataclass(frozen=True)
class Fault:
    """A fault of one rail, or of the host. `apply` changes the document of the host with this index."""

    name: str
    what: str
    apply: Change
    needs: Callable[[Machine], bool] = lambda _: True

    @property
    def topology(self) -> bool:
        """Is the site's topology given to the program?"""
        return self.name in NEEDS_TOPOLOGY

    @property
    def shared(self) -> bool:
        """Does the first host of the fleet have what this one has, so that it may be named as well?"""
        return self.name in SHARED

    @property
    def root(self) -> bool:
        """Is it shown to root only?"""
        return self.name in NEEDS_ROOT


FAULTS: Mapping[str, Fault] = {row[0]: Fault(*row) for row in (*NETWORK_FAULTS, *HOST_FAULTS)}

"""The launchers that can start the engine: one file, one class and one row here for each."""

from __future__ import annotations

from fablint.measure.launchers.hydra import Hydra, IntelHydra
from fablint.measure.launchers.openmpi import OpenMpi

LAUNCHERS = (OpenMpi(), IntelHydra(), Hydra())

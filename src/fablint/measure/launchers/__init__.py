"""Launchers that can start the engine: one file, one class and one row of the table each."""

from __future__ import annotations

from fablint.measure.launchers.hydra import Hydra, IntelHydra
from fablint.measure.launchers.openmpi import OpenMpi
from fablint.measure.launchers.pals import Aprun, Pals
from fablint.measure.launchers.srun import Srun

LAUNCHERS = (OpenMpi(), IntelHydra(), Hydra(), Srun(), Pals(), Aprun())

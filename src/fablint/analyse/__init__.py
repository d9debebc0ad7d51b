"""From a run to a verdict: which part is slow, in which direction, by how much, and how sure that is."""

from __future__ import annotations

from fablint.analyse.decide import amended
from fablint.analyse.diagnose import diagnose
from fablint.analyse.other_questions.additional import with_additional, with_missing_levels
from fablint.analyse.settings import Settings

__all__ = ["Settings", "amended", "diagnose", "with_additional", "with_missing_levels"]

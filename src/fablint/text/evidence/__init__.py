"""Evidence: a file for each family of kinds, each kind with its typed fields and its sentence.

`from fablint.text import evidence as seen` has every kind: `seen.drift(0.1)` makes a record of evidence.
"""

from __future__ import annotations

from fablint.text.evidence.check_evidence import *
from fablint.text.evidence.component_evidence import *
from fablint.text.evidence.coverage_evidence import *
from fablint.text.evidence.discovery_evidence import *
from fablint.text.evidence.late_evidence import *
from fablint.text.evidence.launch_evidence import *
from fablint.text.evidence.path_evidence import *
from fablint.text.evidence.threshold_evidence import *
from fablint.text.sentence_kind import Sentence, named_kinds

KINDS = named_kinds(globals(), Sentence)

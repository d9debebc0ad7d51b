"""Table of sources. A new source is a file in this folder and a row of the table."""

from __future__ import annotations

from fablint.discover.facts import Facts
from fablint.discover.sources.dump_fts import DumpFts
from fablint.discover.sources.ibdiagnet import IbDiagnetDatabase, IbDiagnetList, IbDiagnetTables
from fablint.discover.sources.iblinkinfo import IbLinkInfo
from fablint.discover.sources.ibnetdiscover import IbNetDiscover, IbNetPorts
from fablint.discover.sources.lldpcli import Lldpcli
from fablint.discover.sources.lldptool import Lldptool
from fablint.discover.sources.own_file import OwnFile
from fablint.discover.sources.pbs import PbsNodes
from fablint.discover.sources.slingshot import FabricTemplate, SttFabric, SttFlaps, SttLinksHealth, SttSwitches, is_stt
from fablint.discover.sources.slurm import SlurmTree, SlurmYaml
from fablint.discover.sources.source import SavedOutput, Source
from fablint.errors import UsageError

SOURCES: tuple[Source, ...] = (
    FabricTemplate(),
    OwnFile(),
    Lldpcli(),
    Lldptool(),
    IbNetDiscover(),
    IbNetPorts(),
    IbLinkInfo(),
    IbDiagnetList(),
    IbDiagnetTables(),
    IbDiagnetDatabase(),
    DumpFts(),
    SttSwitches(),
    SttFabric(),
    SttFlaps(),
    SttLinksHealth(),
    SlurmTree(),
    SlurmYaml(),
    PbsNodes(),
)


def read_saved(saved: SavedOutput) -> tuple[Source, Facts]:
    """Return the source that recognises a saved output, and its facts. Raises UsageError for an unknown format."""
    for source in SOURCES:
        if source.recognises(saved.text):
            return source, source.read(saved)
    names = ", ".join(source.name for source in SOURCES)
    problem = "output of STT that is not read, or is incomplete" if is_stt(saved.text) else "unknown format"
    raise UsageError(f"{saved.name}: {problem}", f"give one of {names}")


__all__ = ["SOURCES", "SavedOutput", "Source", "read_saved"]

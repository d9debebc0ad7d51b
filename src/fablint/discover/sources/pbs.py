"""`pbsnodes -av`: sites that place jobs by switch set a resource to the switch of each node and its parent."""

from __future__ import annotations

import re

from fablint.discover.facts import Attachment, Facts, Origin, SwitchFact
from fablint.discover.sources.source import SavedOutput
from fablint.model.names import plain, switch_name

_NODE = re.compile(r"^(\S+)$")
_SWITCH = re.compile(r"^\s+resources_available\.switch = (\S+)")


class PbsNodes:
    """Resource `switch` of each node."""

    name = "pbsnodes"
    command = ("pbsnodes", "-av")

    def recognises(self, text: str) -> bool:
        return "resources_available." in text and re.search(r"^\s+(Mom|state) = ", text, re.MULTILINE) is not None

    def read(self, saved: SavedOutput) -> Facts:
        host = ""
        places: list[Attachment] = []
        switches: dict[str, SwitchFact] = {}
        for line in saved.text.splitlines():
            if node := _NODE.match(line):
                host = plain(node[1])
            elif (resource := _SWITCH.match(line)) and host:
                name, _, group = resource[1].partition(",")
                name = switch_name(name)
                if name and name != host:
                    places.append(Attachment(host, name, Origin.PBS))
                    switches[name] = SwitchFact(name, Origin.PBS, plain(group.partition(",")[0]))
        return Facts(tuple(places), switches=tuple(switches.values()))

"""Was the snapshot taken as a whole?"""

from __future__ import annotations

from collections.abc import Iterable

from fablint.fitness import Result, Severity
from fablint.preflight.check import HostCheck
from fablint.preflight.host import Host


class HostSnapshot(HostCheck):
    id = "host.snapshot"
    what = "whether all was read before the host's time was up"
    source = "the snapshot itself"
    rule = "all of it was read"
    severity = Severity.FAIL
    component = "host"
    absent = "nothing was read"
    mend = "read that file by hand: its driver hangs, or the host is overloaded"

    def look(self, host: Host) -> Iterable[Result]:
        late = host.snapshot.incomplete
        if late:
            yield self.unclear(host.name, "", f"time was up while {late}; what came after was not seen")
        elif host.snapshot.files:
            yield self.passed(host.name)

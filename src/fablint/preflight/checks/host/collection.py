"""Was the snapshot taken as a whole?"""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck
from fablint.preflight.host import CXI, INFINIBAND, NET, Host


class HostSnapshot(HostCheck):
    id = "host.snapshot"
    what = "whether the host let itself be read, in its time"
    source = "the snapshot itself"
    rule = "all of it was read, and there is a network interface or a fabric device in it"
    severity = Severity.FAIL
    component = "host"
    absent = "nothing was read"
    remedy = "check what keeps files of the host from being read: a driver that hangs, load, a wrong --sysroot"

    def look(self, host: Host) -> Iterable[Result]:
        late = host.snapshot.incomplete
        if late:
            yield self.unclear(host.name, "", f"time was up while {late}; what came after was not seen")
        elif not any(map(host.snapshot.names, (NET, INFINIBAND, CXI))):
            yield self.unclear(host.name, "", "no NIC was seen at all: nothing can be judged")
        else:
            yield self.passed(host.name)

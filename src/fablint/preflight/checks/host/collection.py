"""Check of the completeness of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import CXI, INFINIBAND, NET, Host
from fablint.preflight.judges import limit


def _host_snapshot(check: Check, host: Host) -> Iterable[Result]:
    late = host.snapshot.incomplete
    if late:
        yield check.error(host.name, "", f"the time limit was reached while {late}; later files were not read")
    elif not any(map(host.snapshot.names, (NET, INFINIBAND, CXI))):
        yield check.error(host.name, "", "no NIC was found: the host cannot be judged")
    else:
        yield check.ok(host.name)


HOST_SNAPSHOT = Check(
    id="host.snapshot",
    what="the completeness of the snapshot",
    source="the snapshot itself",
    rule="read completely within the time limit, with at least one network interface or fabric device",
    severity=Severity.FAIL,
    component="host",
    remedy="check why files of the host cannot be read: a stalled driver, high load, a wrong --sysroot",
    judge=limit(_host_snapshot, "nothing was read"),
)

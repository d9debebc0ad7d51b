"""Check of Omni-Path ports from the output of `opainfo`."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import INFINIBAND, Host
from fablint.preflight.judges import limit
from fablint.preflight.judges.outputs import instead_of
from fablint.snapshot.parsers.opainfo import OmniPathPort, omnipath_ports
from fablint.text.sanitise import shortened

_LEAST_QUALITY = 4  # of 5


def _omni_path_port(check: Check, host: Host) -> Iterable[Result]:
    if not any(name.startswith("hfi") for name in host.snapshot.names(INFINIBAND)):
        return
    output = host.command("opainfo")
    if instead := instead_of(check, host.name, "", output):
        yield instead
        return
    ports = omnipath_ports(output.text)
    if not ports:
        yield check.error(host.name, "", "opainfo names no port")
    for target, port in ports.items():
        yield _judged(check, host.name, target, port)


def _judged(check: Check, host: str, target: str, port: OmniPathPort) -> Result:
    if not port.state:
        return check.error(host, target, "opainfo does not report its state")
    if port.state != "Active":
        state = shortened(port.state)
        return check.failure(host, target, f"state {state}", state, "Active")
    if port.quality is None or not port.has_lanes:
        return check.error(host, target, "the output of opainfo about it is incomplete")
    below = [*port.below]
    if port.quality < _LEAST_QUALITY:
        below.append(f"link quality {port.quality}{f' ({port.quality_word})' if port.quality_word else ''}")
    return check.failure(host, target, ", ".join(below)) if below else check.ok(host, target)


OMNI_PATH_PORT = Check(
    id="opa.port",
    what="the ports of Omni-Path adapters",
    source="opainfo",
    rule=f"Active, with the enabled speed, width and lanes, and a quality of at least {_LEAST_QUALITY}",
    severity=Severity.FAIL,
    component="cable",
    remedy="clean and reseat the cable, then replace it",
    judge=limit(_omni_path_port, "no Omni-Path adapter"),
)

"""Checks of the results of vendors' diagnostic tools on each host."""

from __future__ import annotations

from collections.abc import Iterable

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check
from fablint.preflight.host import Host
from fablint.preflight.judges import limit
from fablint.preflight.judges.outputs import NO_SLINGSHOT_NIC, instead_of
from fablint.snapshot.parsers.dcgmi import diagnostic_results
from fablint.snapshot.parsers.slingshot_tools import HealthSummary, health_summaries
from fablint.text.sanitise import shortened

# ------------------------------------------------------------------------------------------------ cxi_healthcheck

HEALTH_CHECKS = (
    *("pci", "mac", "link", "link_properties", "link_flap", "dmesg", "service", "run_idle", "trs_leak"),
    *("ping", "codeword_rate", "pci_error", "fw_version"),
)


def _cxi_health(check: Check, host: Host) -> Iterable[Result]:
    if not host.cxi:
        return
    output = host.command("cxi_healthcheck")
    if instead := instead_of(check, host.name, "", output):
        yield instead
        return
    result = health_summaries(output.text)
    for device in {**dict.fromkeys(host.cxi), **result} if "" not in result else result:
        yield _judged_cxi_health(check, host.name, device, result.get(device, HealthSummary()))


def _judged_cxi_health(check: Check, host: str, device: str, said: HealthSummary) -> Result:
    failed = [name for name, result in said.results.items() if result == "Fail"]
    missing = [name for name in HEALTH_CHECKS if f"{name}_check" not in said.results]
    quoted = "".join(f"; {warning}" for warning in said.warnings[:2])
    if failed:
        return check.failure(host, device, f"{', '.join(failed)} failed{quoted}", len(failed), 0)
    if missing:
        none = "no summary" if len(missing) == len(HEALTH_CHECKS) else f"no result of {', '.join(missing)}"
        return check.error(host, device, f"{none}: the output of cxi_healthcheck is incomplete")
    if quoted:
        return check.warning(host, device, quoted.removeprefix("; "))
    return check.ok(host, device)


CXI_HEALTH = Check(
    id="tool.cxi.health",
    what="the results of cxi_healthcheck",
    source="cxi_healthcheck",
    rule="none of its checks fails, and each has a result",
    severity=Severity.FAIL,
    component="nic",
    root=True,
    remedy="run cxi_healthcheck -v on the host, and follow its recommendations",
    judge=limit(_cxi_health, NO_SLINGSHOT_NIC),
)


# ------------------------------------------------------------------------------------------------ slingshot-diag


def _slingshot_diag(check: Check, host: Host) -> Iterable[Result]:
    for nic, said in sorted(host.snapshot.commands_like("slingshot-diag").items()):
        yield instead_of(check, host.name, nic, said) or _judged_slingshot_diag(
            check, host, nic, said.text, said.status or 0
        )


def _judged_slingshot_diag(check: Check, host: Host, nic: str, text: str, status: int) -> Result:
    lines = [line.partition(":") for line in text.splitlines()]
    lines_of = {word: [shortened(rest) for head, _, rest in lines if head == word] for word in ("WARN", "ERROR")}
    words = "; ".join([*lines_of["ERROR"], *lines_of["WARN"]][:3])
    if "root" in words and not host.snapshot.root:
        return check.skip(host.name, nic, words)
    if lines_of["ERROR"] or status > 1:
        return check.failure(host.name, nic, words or f"exit status {status}")
    if lines_of["WARN"] or status:
        return check.warning(host.name, nic, words or f"exit status {status}")
    if not any(head.strip() == "Device" for head, _, _ in lines):
        return check.error(host.name, nic, "slingshot-diag describes no device")
    return check.ok(host.name, nic)


SLINGSHOT_DIAG = Check(
    id="tool.ss.diag",
    what="the results of slingshot-diag",
    source="slingshot-diag -i NIC",
    rule="neither WARN nor ERROR, and exit status 0",
    severity=Severity.FAIL,
    component="nic",
    root=True,
    remedy="run slingshot-diag -v on the host, and follow its recommendations",
    judge=limit(_slingshot_diag, "no Slingshot NIC was examined"),
)


# ------------------------------------------------------------------------------------------------ dcgmi


def _gpu_diag(check: Check, host: Host) -> Iterable[Result]:
    output = host.command("dcgmi")
    tests = list(diagnostic_results(output.text))
    if instead := instead_of(check, host.name, "", output):
        yield instead
    elif output.status and not tests:
        yield check.skip(host.name, "", shortened(output.error))
    elif not tests:
        yield check.error(host.name, "", "dcgmi printed no results")
    else:
        bad = [words for words, status in tests if status in ("fail", "warn")]
        message = "; ".join(list(dict.fromkeys(bad))[:3])
        yield check.failure(host.name, "", message, len(bad), 0) if bad else check.ok(host.name)


GPU_DIAG = Check(
    id="tool.dcgmi",
    what="the results of NVIDIA's short GPU diagnostic",
    source="dcgmi diag -r 1 -j",
    rule="no test fails",
    component="host",
    remedy="run dcgmi diag -r 3 on the host; reset or replace the GPU",
    judge=limit(_gpu_diag),
)

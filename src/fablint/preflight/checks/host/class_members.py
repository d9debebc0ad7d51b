"""Which hosts are compared with each other, and hosts that look like another class with a card missing."""

from __future__ import annotations

from collections.abc import Iterator

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import Check
from fablint.preflight.fleet import Fleet
from fablint.preflight.host_classes import lacking
from fablint.text.names import plural
from fablint.text.sanitise import shortened

_LETTERS = 160  # of how a host is built


class HostClasses(Check):
    id = "host.class"
    what = "the class of every host: the hosts that it is compared with"
    source = "DMI vendor and product, CPU model, PCI ids and board ids of NICs and GPUs"
    rule = "others are built alike; no group of hosts has fewer cards than a much larger one of the same machine"
    severity = Severity.WARN
    component = "host"
    remedy = "check whether cards failed on all of these hosts; a host without a class is judged by itself only"

    def judge(self, fleet: Fleet) -> Iterator[Result]:
        short = {one.less.key: one for one in lacking(fleet.classes)}
        for one in fleet.classes:
            label = shortened(one.label, _LETTERS)
            for host in one.hosts:
                if not label:
                    yield self.skipped(host, "", "neither machine, CPU nor cards are known")
                elif one.key in short:
                    lack = short[one.key]
                    few, many = plural(len(one.hosts), "host"), len(lack.than.hosts)
                    message = f"{lack.words} on {few}, {many} others have all"
                    yield self.wrong(host, "", message, label, shortened(lack.than.label, _LETTERS))
                elif len(one.hosts) > 1:
                    yield self.passed(host, value=label)
                else:
                    yield self.skipped(host, "", "no other host is built like it: judged by itself")

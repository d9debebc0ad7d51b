"""Checks of the counters of Slingshot NICs: codewords, replays, pauses, errors. Rates are of the snapshot's window."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from fablint.model import ComponentKind
from fablint.model.preflight_results import Result, Severity
from fablint.preflight.base import HostCheck
from fablint.preflight.checks.growth import CountedPart, Excess, GrowthCheck, Limit
from fablint.preflight.checks.slingshot.cxi import LINE_RATES, NO_NIC
from fablint.preflight.host import CXI, Host
from fablint.snapshot.counter_deltas import Delta
from fablint.snapshot.counter_widths import CODE_WORD_BITS

_TELEMETRY = f"{CXI}/CXI/device/telemetry"
_BER_WARN, _BER_FAIL = 1e-7, 1e-6
_CLASSES = range(8)


class _TelemetryCheck(HostCheck):
    """Base of checks of the telemetry of each NIC with a link."""

    component: ClassVar[ComponentKind] = "cable"
    severity = Severity.WARN
    absent = NO_NIC
    counters: ClassVar[tuple[str, ...]]

    def look(self, host: Host) -> Iterable[Result]:
        for device in host.cxi:
            at = f"{CXI}/{device}/device/telemetry/"
            counted = host.all_grown_now(at.rstrip("/"), self.counters)
            if device not in host.cxi_up:
                yield self.skip(host.name, device, "the link is not up")
            elif not counted:
                yield self.skip(host.name, device, "its telemetry was not read twice")
            else:
                yield self.judged(host, device, at, counted)

    @abstractmethod
    def judged(self, host: Host, device: str, at: str, counted: dict[str, Delta]) -> Result:
        """Return the result for the counters below `at`; `counted` is their growth in the snapshot's window."""


class CxiUncorrected(_TelemetryCheck):
    id = "cxi.ber.ucw"
    what = "codewords that error correction could not correct"
    source = f"{_TELEMETRY}/hni_pcs_uncorrected_cw"
    rule = "none during the snapshot; some since the last reading warn"
    severity = Severity.FAIL
    remedy = "clean and reseat the cable, then replace it"
    counters = ("hni_pcs_uncorrected_cw",)

    def judged(self, host: Host, device: str, at: str, counted: dict[str, Delta]) -> Result:
        now, grown = counted[self.counters[0]], host.grown(at + self.counters[0])
        if now.growth:
            return self.failure(host.name, device, f"uncorrected codewords: {now}", now.growth, 0)
        if grown and grown.growth:
            return self.warning(host.name, device, f"uncorrected codewords: {grown}", grown.growth, 0)
        return self.ok(host.name, device, value=0)


class CxiCorrected(_TelemetryCheck):
    id = "cxi.ber.ccw"
    what = "bit error rate before correction, as corrected codewords of the line rate"
    source = f"{_TELEMETRY}/hni_pcs_corrected_cw"
    rule = f"below {_BER_FAIL:g}; {_BER_WARN:g} warns"
    severity = Severity.FAIL
    remedy = "clean and reseat the cable, then replace it"
    counters = ("hni_pcs_corrected_cw",)

    def judged(self, host: Host, device: str, at: str, counted: dict[str, Delta]) -> Result:
        grown, line = counted[self.counters[0]], LINE_RATES.get(host.cxi_port(device, "speed") or "")
        if not line:
            return self.skip(host.name, device, "the line rate of its speed is not known")
        rate = grown.rate / line
        if rate < _BER_WARN:
            return self.ok(host.name, device, value=rate)
        say = self.failure if rate >= _BER_FAIL else self.warning
        return say(host.name, device, f"bit error rate {rate:.1e} before correction", rate, _BER_WARN)


class CxiGood(_TelemetryCheck):
    id = "cxi.cw.rate"
    what = "good codewords per second"
    source = f"{_TELEMETRY}/hni_pcs_good_cw"
    rule = f"within 1 % of the line rate / {CODE_WORD_BITS} bits"
    severity = Severity.FAIL
    remedy = "clean and reseat the cable, then replace it"
    counters = ("hni_pcs_good_cw",)

    def judged(self, host: Host, device: str, at: str, counted: dict[str, Delta]) -> Result:
        grown, line = counted[self.counters[0]], LINE_RATES.get(host.cxi_port(device, "speed") or "")
        if not line:
            return self.skip(host.name, device, "the line rate of its speed is not known")
        if "@" not in (host.read(at + self.counters[0]) or ""):
            return self.skip(host.name, device, "the times of its readings are unknown")
        expected = line / CODE_WORD_BITS
        if abs(grown.rate / expected - 1) <= 0.01:
            return self.ok(host.name, device, value=grown.rate, unit="1/s")
        message = f"{grown.rate / 1e6:.2f} million codewords/s, {expected / 1e6:.2f} million at its speed"
        return self.failure(host.name, device, message, grown.rate, expected, "1/s")


class CxiReplay(_TelemetryCheck):
    id = "cxi.replay"
    what = "the replays of link layer retry"
    source = f"{_TELEMETRY}/hni_llr_tx_replay_event, hni_llr_rx_replay_event"
    rule = "less than one per second"
    remedy = "clean and reseat the cable; every replay delays the packets behind it"
    counters = ("hni_llr_tx_replay_event", "hni_llr_rx_replay_event")

    def judged(self, host: Host, device: str, at: str, counted: dict[str, Delta]) -> Result:
        name, rate = max(((name, grown.rate) for name, grown in counted.items()), key=lambda one: one[1])
        if rate < 1:
            return self.ok(host.name, device, value=rate, unit="1/s")
        return self.failure(host.name, device, f"{rate:.0f} {name.split('_')[2]} replays/s", rate, 1.0, "1/s")


class CxiPaused(_TelemetryCheck):
    id = "cxi.paused"
    what = "the share of time for which every Slingshot NIC is paused"
    source = f"{_TELEMETRY}/hni_rx_paused_0 to 7, hni_tx_paused_0 to 7"
    rule = "less than 1 % of the time on an idle host"
    component = "host"
    remedy = "look for a job that still sends; a host that pauses its peers receives too slowly"
    counters = tuple(f"hni_{side}_paused_{number}" for side in ("rx", "tx") for number in _CLASSES)

    def judged(self, host: Host, device: str, at: str, counted: dict[str, Delta]) -> Result:
        shares = {name: grown.rate * 1e-9 for name, grown in counted.items() if grown.growth}
        name = max(shares, key=shares.__getitem__, default="")
        share = shares.get(name, 0.0)
        if share < 0.01:
            return self.ok(host.name, device, value=share)
        _, side, _, number = name.split("_")
        return self.failure(
            host.name, device, f"{side} class {number} paused {min(share, 1):.0%} of the time", share, 0.01
        )


class CxiErrors(GrowthCheck):
    id = "cxi.errors"
    what = "bad, poisoned and discarded packets"
    source = f"{_TELEMETRY}/hni_rx_bad_*, hni_tx_poisoned_*, hni_discard_cntr_*, hni_pfc_fifo_oflw_cntr_*"
    rule = (
        "none during the snapshot, fewer than 10 in an hour; at the first reading totals not far above those of peers"
    )
    severity = Severity.WARN
    component = "nic"
    remedy = (
        "look at the cable (bad), at the host's memory and PCIe (poisoned), at classes and PFC (discarded, overflow)"
    )
    absent = NO_NIC
    limits: ClassVar = dict.fromkeys(
        (
            *(f"rx_bad_{kind}" for kind in ("opt", "ieee")),
            *(f"tx_poisoned_{kind}" for kind in ("opt", "ieee")),
            *(f"discard_cntr_{number}" for number in _CLASSES),
            *(f"pfc_fifo_oflw_cntr_{number}" for number in _CLASSES),
            "fgfc_discard",
        ),
        Limit(1, 10),
    )

    def parts(self, host: Host) -> Iterable[CountedPart]:
        for device in host.cxi:
            folder = f"{CXI}/{device}/device/telemetry"
            first, last = host.snapshot.readings_in(folder)
            files = {
                name: file
                for name, file in _FILES.items()
                if isinstance(first.get(file), str) and isinstance(last.get(file), str)
            }
            part = CountedPart(device, folder, files if len(files) < len(_FILES) else _FILES)
            missing = "" if part.grows(host) else "its telemetry was not read twice"
            yield part._replace(why_not=missing if device in host.cxi_up else "the link is not up")

    def judged(self, host: Host, part: CountedPart, found: Excess) -> Result:
        if words := found.words():
            return self.failure(host.name, part.target, ", ".join(words[:3]), found.most, 0)
        return self.ok(host.name, part.target)


_FILES = {name: f"hni_{name}" for name in CxiErrors.limits}

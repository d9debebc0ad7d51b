"""Checks of the counters of Slingshot NICs: codewords, replays, pauses, errors. Rates are of the snapshot's window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from fablint.model.preflight_results import Result, Severity
from fablint.preflight.check import Check, Judge
from fablint.preflight.host import CXI, Host
from fablint.preflight.judges import growth, limit
from fablint.preflight.judges.growth import CountedPart, Limit, any_excess
from fablint.preflight.judges.outputs import NO_SLINGSHOT_NIC
from fablint.snapshot.counter_deltas import Delta
from fablint.snapshot.counter_widths import CODE_WORD_BITS
from fablint.snapshot.parsers.slingshot_tools import LINE_RATES
from fablint.text.units import share_text

_TELEMETRY = f"{CXI}/CXI/device/telemetry"
_BER_WARN, _BER_FAIL = 1e-7, 1e-6
_CLASSES = range(8)


_Judged = Callable[[Check, Host, str, str, Mapping[str, Delta]], Result]


def telemetry(judged: _Judged, *counters: str) -> Judge:
    """Judge the telemetry of each NIC with a link.

    Parameters
    ----------
    judged
        Returns the result for the counters in a folder; their growth is that in the snapshot's window.
    counters
        Names of the counters.
    """

    def look(check: Check, host: Host) -> Iterator[Result]:
        for device in host.cxi:
            folder = f"{CXI}/{device}/device/telemetry"
            counted = host.all_grown_now(folder, counters)
            if device not in host.cxi_up:
                yield check.skip(host.name, device, "the link is not up")
            elif not counted:
                yield check.skip(host.name, device, "its telemetry was not read twice")
            else:
                yield judged(check, host, device, folder, counted)

    return limit(look, NO_SLINGSHOT_NIC)


def _judged_cxi_uncorrected(check: Check, host: Host, device: str, folder: str, counted: Mapping[str, Delta]) -> Result:
    now, grown = counted["hni_pcs_uncorrected_cw"], host.grown(f"{folder}/hni_pcs_uncorrected_cw")
    if now.growth:
        return check.failure(host.name, device, f"uncorrected codewords: {now}", now.growth, 0)
    if grown and grown.growth:
        return check.warning(host.name, device, f"uncorrected codewords: {grown}", grown.growth, 0)
    return check.ok(host.name, device, value=0)


CXI_UNCORRECTED = Check(
    id="cxi.ber.ucw",
    what="codewords that error correction could not correct",
    source=f"{_TELEMETRY}/hni_pcs_uncorrected_cw",
    rule="none during the snapshot; some since the last reading warn",
    severity=Severity.FAIL,
    component="cable",
    remedy="clean and reseat the cable, then replace it",
    judge=telemetry(_judged_cxi_uncorrected, "hni_pcs_uncorrected_cw"),
)


def _judged_cxi_corrected(check: Check, host: Host, device: str, folder: str, counted: Mapping[str, Delta]) -> Result:
    grown, line = counted["hni_pcs_corrected_cw"], LINE_RATES.get(host.cxi_port(device, "speed") or "")
    if not line:
        return check.skip(host.name, device, "the line rate of its speed is not known")
    rate = grown.rate / line
    if rate < _BER_WARN:
        return check.ok(host.name, device, value=rate)
    say = check.failure if rate >= _BER_FAIL else check.warning
    return say(host.name, device, f"bit error rate {rate:.1e} before correction", rate, _BER_WARN)


CXI_CORRECTED = Check(
    id="cxi.ber.ccw",
    what="bit error rate before correction, as corrected codewords of the line rate",
    source=f"{_TELEMETRY}/hni_pcs_corrected_cw",
    rule=f"below {_BER_FAIL:g}; {_BER_WARN:g} warns",
    severity=Severity.FAIL,
    component="cable",
    remedy="clean and reseat the cable, then replace it",
    judge=telemetry(_judged_cxi_corrected, "hni_pcs_corrected_cw"),
)


def _judged_cxi_good(check: Check, host: Host, device: str, folder: str, counted: Mapping[str, Delta]) -> Result:
    grown, line = counted["hni_pcs_good_cw"], LINE_RATES.get(host.cxi_port(device, "speed") or "")
    if not line:
        return check.skip(host.name, device, "the line rate of its speed is not known")
    if "@" not in (host.read(f"{folder}/hni_pcs_good_cw") or ""):
        return check.skip(host.name, device, "the times of its readings are unknown")
    expected = line / CODE_WORD_BITS
    if abs(grown.rate / expected - 1) <= 0.01:
        return check.ok(host.name, device, value=grown.rate, unit="1/s")
    message = f"{grown.rate / 1e6:.2f} million codewords/s, {expected / 1e6:.2f} million at its speed"
    return check.failure(host.name, device, message, grown.rate, expected, "1/s")


CXI_GOOD = Check(
    id="cxi.cw.rate",
    what="good codewords per second",
    source=f"{_TELEMETRY}/hni_pcs_good_cw",
    rule=f"within 1 % of the line rate / {CODE_WORD_BITS} bits",
    severity=Severity.FAIL,
    component="cable",
    remedy="clean and reseat the cable, then replace it",
    judge=telemetry(_judged_cxi_good, "hni_pcs_good_cw"),
)


def _judged_cxi_replay(check: Check, host: Host, device: str, folder: str, counted: Mapping[str, Delta]) -> Result:
    name, rate = max(((name, grown.rate) for name, grown in counted.items()), key=lambda one: one[1])
    if rate < 1:
        return check.ok(host.name, device, value=rate, unit="1/s")
    return check.failure(host.name, device, f"{rate:.0f} {name.split('_')[2]} replays/s", rate, 1.0, "1/s")


CXI_REPLAY = Check(
    id="cxi.replay",
    what="the replays of link layer retry",
    source=f"{_TELEMETRY}/hni_llr_tx_replay_event, hni_llr_rx_replay_event",
    rule="less than one per second",
    component="cable",
    remedy="clean and reseat the cable; every replay delays the packets behind it",
    judge=telemetry(_judged_cxi_replay, "hni_llr_tx_replay_event", "hni_llr_rx_replay_event"),
)


def _judged_cxi_paused(check: Check, host: Host, device: str, folder: str, counted: Mapping[str, Delta]) -> Result:
    shares = {name: grown.rate * 1e-9 for name, grown in counted.items() if grown.growth}
    name = max(shares, key=shares.__getitem__, default="")
    share = shares.get(name, 0.0)
    if share < 0.01:
        return check.ok(host.name, device, value=share)
    _, side, _, number = name.split("_")
    return check.failure(
        host.name, device, f"{side} class {number} paused {share_text(min(share, 1))} of the time", share, 0.01
    )


CXI_PAUSED = Check(
    id="cxi.paused",
    what="the share of time for which every Slingshot NIC is paused",
    source=f"{_TELEMETRY}/hni_rx_paused_0 to 7, hni_tx_paused_0 to 7",
    rule="less than 1 % of the time on an idle host",
    component="host",
    remedy="look for a job that still sends; a host that pauses its peers receives too slowly",
    judge=telemetry(
        _judged_cxi_paused, *(f"hni_{side}_paused_{number}" for side in ("rx", "tx") for number in _CLASSES)
    ),
)


_ERRORS = (
    *(f"rx_bad_{kind}" for kind in ("opt", "ieee")),
    *(f"tx_poisoned_{kind}" for kind in ("opt", "ieee")),
    *(f"discard_cntr_{number}" for number in _CLASSES),
    *(f"pfc_fifo_oflw_cntr_{number}" for number in _CLASSES),
    "fgfc_discard",
)
_ERROR_LIMITS = dict.fromkeys(_ERRORS, Limit(1, 10))
_FILES = {name: f"hni_{name}" for name in _ERRORS}


def _cxi_errors(host: Host) -> Iterable[CountedPart]:
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


CXI_ERRORS = Check(
    id="cxi.errors",
    what="bad, poisoned and discarded packets",
    source=f"{_TELEMETRY}/hni_rx_bad_*, hni_tx_poisoned_*, hni_discard_cntr_*, hni_pfc_fifo_oflw_cntr_*",
    rule=(
        "none during the snapshot, fewer than 10 in an hour; at the first reading totals not far above those of peers"
    ),
    component="nic",
    remedy=(
        "look at the cable (bad), at the host's memory and PCIe (poisoned), at classes and PFC (discarded, overflow)"
    ),
    judge=growth(
        _ERROR_LIMITS,
        _cxi_errors,
        any_excess(most=3),
        NO_SLINGSHOT_NIC,
    ),
)

"""What ethtool tells: error correction, flow control, optics. Outputs in the documented formats."""

from __future__ import annotations

import pytest
from preflight_help import host, nic, of, outcomes, sample, wrong

from fablint.model.preflight_results import Outcome
from fablint.preflight.check import Check
from fablint.preflight.checks.network.ethtool import LINK_FEC, LINK_OPTICS, LINK_PAUSE, LINK_POWER
from fablint.preflight.host import Host
from fablint.snapshot.host_snapshot import Output
from pinned import pinned_by

PINNED = pinned_by("preflight.toml", __file__)

PAUSE = "Pause parameters for hsn0:\nAutonegotiate:\toff\nRX:\t\t{}\nTX:\t\t{}\nRX negotiated: off\n"
MODULE = """\tIdentifier                                : 0x11 (QSFP28)
\tLaser bias current high alarm   (Chan 1)  : Off
\tLaser rx power low alarm    (Channel 1)   : {}
\tLaser rx power low warning  (Channel 1)   : {}
\tLaser rx power low alarm threshold        : 0.0457 mW / -13.40 dBm
"""


def fec(active: str = "RS", lost: int = 4) -> str:
    return f"""FEC parameters for hsn0:
Supported/Configured FEC encodings: Auto RS BaseR
Active FEC encoding: {active}
Statistics:
  corrected_blocks: 256
    Lane 0: 255
    Lane 1: 1
  uncorrectable_blocks: {lost}
"""


def asked(name: str, command: str, output: str | Output, later: str = "", **values: str) -> Host:
    said = {f"{command}/hsn0": output}
    return host(name, nic(**values), commands={**said, f"{command}-later/hsn0": later} if later else said)


def test_fec_that_differs() -> None:
    hosts = [asked(f"n{index}", "ethtool-fec", fec("None" if index == 3 else "RS")) for index in range(8)]
    assert wrong(of(LINK_FEC, *hosts)) == [("n3", "hsn0", Outcome.WARN, "FEC None, 7 others RS")]


def histogram(*bins: tuple[str, int]) -> str:
    """As ethtool 6.19 prints it, with the figures of each lane behind those of the port."""
    lines = [f"  fec_symbols_err_{name}: {count} (per-lane: {count} 0)" for name, count in bins]
    return fec() + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("first", "last", "outcome"),
    [
        ((("0", 445), ("1_to_3", 12), ("8_to_15", 2)), (("0", 10**9), ("1_to_3", 9000), ("8_to_15", 11)), Outcome.PASS),
        ((("0", 445), ("1_to_3", 12), ("8_to_15", 2)), (("0", 10**9), ("1_to_3", 9000), ("8_to_15", 12)), Outcome.WARN),
        ((("7", 5), ("8", 0), ("15", 0)), (("7", 10**6), ("8", 6), ("15", 4)), Outcome.WARN),
        ((("8", 10**6),), (("8", 10**6),), Outcome.PASS),  # earlier than the snapshot
        ((("8", 10**6),), (("8", 100),), Outcome.PASS),  # cleared
        ((("0", 4),), (("0", 5), ("8", 100)), Outcome.PASS),  # a bin that was read once
    ],
)
def test_blocks_that_fec_just_corrected(
    first: tuple[tuple[str, int], ...], last: tuple[tuple[str, int], ...], outcome: Outcome
) -> None:
    (result,) = of(LINK_FEC, asked("n1", "ethtool-fec", histogram(*first), histogram(*last)))
    assert result.outcome is outcome
    if outcome is Outcome.WARN:
        assert PINNED["10 blocks with 8 or more"] in result.message
    assert of(LINK_FEC, asked("n1", "ethtool-fec", histogram(*first)))[0].outcome is Outcome.PASS


def test_blocks_that_fec_could_not_correct() -> None:
    results = of(LINK_FEC, asked("n1", "ethtool-fec", fec(lost=4), fec(lost=7)))
    assert wrong(results) == [("n1", "hsn0", Outcome.FAIL, "3 uncorrectable blocks in some seconds")]
    assert outcomes(of(LINK_FEC, asked("n1", "ethtool-fec", fec(lost=4), fec(lost=4)))) == [Outcome.PASS]
    assert outcomes(of(LINK_FEC, asked("n1", "ethtool-fec", fec(lost=4)))) == [Outcome.PASS]


def test_pause_that_differs() -> None:
    hosts = [asked(f"n{index}", "ethtool-a", PAUSE.format("on", "off" if index == 3 else "on")) for index in range(8)]
    assert wrong(of(LINK_PAUSE, *hosts)) == [("n3", "hsn0", Outcome.WARN, PINNED["pause rx on, tx off; 7 others"])]
    assert outcomes(of(LINK_PAUSE, hosts[0])) == [Outcome.SKIP]


def test_optics_with_an_alarm() -> None:
    dark, fine = MODULE.format("On", "On"), MODULE.format("Off", "Off")
    hosts = [asked(f"n{index}", "ethtool-m", dark if index == 3 else fine) for index in range(8)]
    message = "Laser rx power low alarm (Channel 1); Laser rx power low warning (Channel 1)"
    assert wrong(of(LINK_OPTICS, *hosts)) == [("n3", "hsn0", Outcome.WARN, message)]


def test_flags_that_a_make_of_modules_always_has_are_no_fault() -> None:
    hosts = [asked(f"n{index}", "ethtool-m", MODULE.format("On", "Off")) for index in range(8)]
    assert outcomes(of(LINK_OPTICS, *hosts)) == [Outcome.PASS] * 8
    copper = asked("n1", "ethtool-m", "\tIdentifier : 0x11 (QSFP28)\n\tTransmitter technology : 0xa0 (Copper cable)\n")
    assert outcomes(of(LINK_OPTICS, copper)) == [Outcome.SKIP]


def test_what_cannot_be_seen_is_skipped_and_what_cannot_be_understood_is_reported() -> None:
    refused = Output(error=sample("host/ethtool-m-veth.err").strip(), status=1)
    checks: dict[str, Check] = {"ethtool-fec": LINK_FEC, "ethtool-a": LINK_PAUSE, "ethtool-m": LINK_OPTICS}
    for command, check in checks.items():
        (result,) = of(check, asked("n1", command, refused))
        assert (result.outcome, result.message) == (Outcome.SKIP, PINNED["ethtool: netlink error: Operation"])
        assert outcomes(of(check, asked("n1", command, "", operstate="down"), host("n2"))) == [Outcome.SKIP] * 2
        assert outcomes(of(check, asked("n1", command, " "))) == [Outcome.ERROR]


POWERS = {  # as qsfp.c, cmis.c and sfpdiag.c of ethtool print them
    "QSFP": "\tReceiver signal average optical power (Channel 1)     : 0.9131 mW / -0.39 dBm\n"
    "\tReceiver signal average optical power (Channel 2)     : 0.8 mW / {} dBm\n"
    "\tRcvr signal avg optical power(Channel 3)  : 0.0001 mW / -40.00 dBm\n",
    "OMA": "\tReceiver signal OMA (Channel 1)                    : 0.9131 mW / {} dBm\n",
    "SFP": "\tReceiver signal average optical power     : 0.5012 mW / {} dBm\n",
}


@pytest.mark.parametrize("form", POWERS)
def test_received_light_far_below_that_of_others(form: str) -> None:
    hosts = [asked(f"n{index}", "ethtool-m", POWERS[form].format(f"-1.{index}0")) for index in range(4)]
    assert wrong(of(LINK_POWER, *hosts)) == []
    assert wrong(of(LINK_POWER, *hosts, asked("odd", "ethtool-m", POWERS[form].format("-3.90")))) == []
    assert wrong(of(LINK_POWER, *hosts, asked("odd", "ethtool-m", POWERS[form].format("-6.20")))) == [
        ("odd", "hsn0", Outcome.WARN, PINNED["received optical power -6.20"])
    ]


def test_copper_cables_have_no_light() -> None:
    copper = "\tIdentifier                                : 0x11 (QSFP28)\n\tTransmitter technology : 0xa0 (Copper)\n"
    assert (
        outcomes(of(LINK_POWER, *(asked(f"n{index}", "ethtool-m", copper) for index in range(5)))) == [Outcome.SKIP] * 5
    )

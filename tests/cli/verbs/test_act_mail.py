"""`fablint act --mail`: a message that other programs parse."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email import message_from_string
from email.policy import default

import pytest
from act_cases import CABLE, EVERY, HOSTS, SLOW, verdict

from fablint.act import Envelope, HostFindings, address_of, mail_text
from fablint.errors import UsageError
from fablint.model import State
from finding_cases import finding
from pinned import pinned_by

PINNED = pinned_by("cli.toml", __file__)

TO = "operators@site.org"
ENVELOPE = Envelope(address_of("root@n1"), address_of(TO), datetime(2026, 1, 5, 2, 30, tzinfo=UTC))


def parsed(text: str):
    return message_from_string(text, policy=default)


def test_a_message_for_sendmail(fablint, tmp_path) -> None:
    (tmp_path / "verdict.json").write_text(verdict(EVERY))
    done = fablint("act", "verdict.json", "--mail", TO, "--most", "999")
    message = parsed(done.stdout)
    assert (done.returncode, message["To"], message.defects) == (0, TO, [])
    assert message["Subject"] == PINNED["FAULT, 4 faults, 1 suspect"]
    assert message["From"].addresses[0].domain
    assert message["Date"].datetime is not None
    text = message.get_content()
    assert all(name in text for name in ("host nid001005", "cable s2=s5", "scontrol update NodeName=nid001005"))
    as_json = fablint("act", "verdict.json", "--mail", TO, "--json", "--most", "999")
    assert parsed(json.loads(as_json.stdout)["mail"]).get_content() == text


def test_refused_drain_commands_are_named(fablint, tmp_path) -> None:
    (tmp_path / "verdict.json").write_text(verdict(EVERY))
    done = fablint("act", "verdict.json", "--mail", TO, "--most", "1")
    assert done.returncode == 6
    assert "# refused: too many hosts" in parsed(done.stdout).get_content()


def test_a_mail_about_nothing_says_the_verdict() -> None:
    message = parsed(mail_text(HostFindings([], HOSTS, verdict="incomplete"), "x.run", (), ENVELOPE))
    assert message["Subject"] == PINNED["INCOMPLETE, no part at fault"]
    assert "drain" not in message.get_content()


def test_names_add_no_header_and_keep_their_letters() -> None:
    odd = finding(State.FAULT, "switch", "s1 Bcc: x@y \u00e9\u4e2d", evidence="odd")
    text = mail_text(HostFindings([odd]), "a\nBcc: x@y \u00fc.run", ["x" * 2000], ENVELOPE)
    message = parsed(text)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 998
    assert message["Bcc"] is None
    assert message["Subject"].endswith("(a?Bcc: x@y \u00fc.run)")
    assert "\u00e9\u4e2d" in message.get_content()
    assert "x" * 2000 in message.get_content()


def test_a_long_command_is_one_line() -> None:
    text = mail_text(HostFindings([SLOW, CABLE]), "a.run", ["scontrol " + "n" * 300], ENVELOPE)
    assert "scontrol " + "n" * 300 in text.splitlines()


@pytest.mark.parametrize("text", ["", "ops", "@", "a@b, c@d", "a@b\nBcc: c@d", "A <a@b>", "\u00e9@b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        address_of(text)


def test_a_mail_has_no_other_sections(fablint, tmp_path) -> None:
    (tmp_path / "verdict.json").write_text(verdict(EVERY))
    done = fablint("act", "verdict.json", "--mail", TO, "--ticket")
    assert (done.returncode, done.stdout) == (2, "")
    assert PINNED["--mail prints one message"].begins(done.stderr)

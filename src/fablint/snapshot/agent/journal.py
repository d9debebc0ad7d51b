# ruff: noqa: UP006, UP035
"""Kernel records from systemd's journal, for users without access to /dev/kmsg and dmesg.

Members of the groups systemd-journal, adm and wheel may read it. Sent to every host before collector.py: standard
library only, Python 3.6, no files are written.
"""

import json
from typing import Any, Dict

from fablint.snapshot.agent.log_records import Log
from fablint.snapshot.agent.machine import Machine

JOURNAL = "journalctl"
MOST_RECORDS = 20000  # the last ones
_FIELDS = "PRIORITY,MESSAGE,_SOURCE_MONOTONIC_TIMESTAMP"
_ARGV = [JOURNAL, "-q", "-k", "-b", "-n", str(MOST_RECORDS), "--no-pager", "-o", "json", "--output-fields=" + _FIELDS]


def with_journal(machine: Machine, log: Dict[str, str], limit_s: float) -> Dict[str, str]:
    """Return the log; if it could not be read, the records of this boot in the journal."""
    if "output" in log:
        return log
    records = Log()
    for line in machine.ask(JOURNAL, _ARGV, limit_s).get("output", "").splitlines():
        try:
            add_record(records, json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # truncated, or not a record
    return {"output": records.text()} if records.count else log


def add_record(records: Log, record: Dict[str, Any]) -> None:
    """Add a record. Raises ValueError, TypeError, KeyError or AttributeError for other documents."""
    text = record["MESSAGE"]
    if isinstance(text, list):  # octets of a text that is not UTF-8
        text = bytes(text).decode("utf-8", "replace")
    records.add(int(record["PRIORITY"]) & 7, int(record["_SOURCE_MONOTONIC_TIMESTAMP"]) / 1e6, text.partition("\n")[0])

"""A table is printed line by line while it grows; what follows the last size comes at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fablint.cli.session import Session
from fablint.cli.table_output import TableOutput

HEAD = "\n# title\n# Size  us\n"


@dataclass
class Text:
    text: str

    def as_dict(self):
        return {"lines": self.text.count("\n")}


def test_each_size_is_printed_once(capsys):
    output = TableOutput(Session())
    output.show_part(Text(f"{HEAD}# not measured: 1, 2\n"))
    assert capsys.readouterr().out == ""
    output.show_part(Text(f"{HEAD}1  5.0\n2  -\n# not measured: 2\n"))
    assert capsys.readouterr().out == f"{HEAD}1  5.0\n"
    output.finish(Text(f"{HEAD}1  5.0\n2  6.0\n# fablint: both\n"))
    assert capsys.readouterr().out == "2  6.0\n# fablint: both\n"


def test_an_interrupted_table_ends_with_its_last_part(capsys):
    output = TableOutput(Session())
    output.show_part(Text(f"{HEAD}1  5.0\n# not measured: 2\n"))
    output.finish()
    assert capsys.readouterr().out == f"{HEAD}1  5.0\n# not measured: 2\n"


def test_json_is_printed_once(capsys):
    output = TableOutput(Session(json=True))
    output.show_part(Text(HEAD))
    output.finish(Text(f"{HEAD}1  5.0\n"))
    assert json.loads(capsys.readouterr().out) == {"format": 1, "lines": 4}


def test_nothing_measured_nothing_printed(capsys):
    TableOutput(Session()).finish()
    assert capsys.readouterr().out == ""

"""A table on stdout, line by line while it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fablint.cli.session import Session
    from fablint.report import Table


class TableOutput:
    """Print a table that grows: its lines have fixed widths, and lines below the last size are printed at the end.

    With --json the table is printed once, at the end.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._printed: list[str] = []
        self._table: Table | None = None

    def show_part(self, table: Table) -> None:
        """Print the sizes that are new."""
        self._table = table
        lines = table.text.splitlines()
        while lines and (lines[-1].startswith("#") or set(lines[-1].split()[1:]) <= {"-"}):  # no figure
            lines.pop()
        if not self._session.json:
            self._print(lines)

    def finish(self, table: Table | None = None) -> None:
        """Print the rest of the table, or of its last part."""
        self._table = table or self._table
        if self._table is None:
            return
        if self._session.json:
            self._session.result("", self._table.as_dict())
        else:
            self._print(self._table.text.rstrip("\n").splitlines())

    def _print(self, lines: list[str]) -> None:
        """Print the lines that follow those on the screen; the whole table where its first lines have changed."""
        printed_count = len(self._printed)
        new = lines[printed_count:] if lines[:printed_count] == self._printed else ["", *lines]
        if new:
            self._session.print("\n".join(new))
        self._printed = lines

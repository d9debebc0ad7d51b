"""The file of kept results. Each change is one transaction: a process that is killed leaves the state before it.

The journal is SQLite's rollback journal and not its write-ahead log, which needs shared memory between the processes
and therefore fails on network file systems. Writers wait for each other up to `_WAIT_S`. Several hosts may write to one
file if the file system has working byte-range locks (NFS 4, Lustre with -o flock).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fablint.errors import IncompleteError, UsageError
from fablint.history.records import RunRecord

FORMAT = 1
_WAIT_S = 60.0
_CACHE_KIB = 64 << 10  # a run of 1,000 hosts changes some thousand pages of 4 KiB
_MAGIC = b"SQLite format 3\0"
_SCHEMA = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, path TEXT NOT NULL, moment REAL NOT NULL,
    verdict TEXT NOT NULL, hosts INTEGER NOT NULL, facts TEXT NOT NULL);
CREATE TABLE component (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE metric (
    id INTEGER PRIMARY KEY, medium TEXT NOT NULL, kernel TEXT NOT NULL, size INTEGER NOT NULL, quantity TEXT NOT NULL,
    UNIQUE (medium, kernel, size, quantity));
CREATE TABLE figure (
    component INTEGER NOT NULL REFERENCES component, metric INTEGER NOT NULL REFERENCES metric,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, pairs INTEGER NOT NULL,
    p05 REAL NOT NULL, p10 REAL NOT NULL, median REAL NOT NULL, p90 REAL NOT NULL, p95 REAL NOT NULL, p99 REAL NOT NULL,
    PRIMARY KEY (component, metric, run)) WITHOUT ROWID;
CREATE TABLE finding (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, state TEXT NOT NULL, kind TEXT NOT NULL,
    component TEXT NOT NULL, effect REAL);
CREATE INDEX finding_of_component ON finding (component, run);
"""


class Database:
    """An open file of kept results."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open the file; with `create` make it if it is missing.

        Raises
        ------
        UsageError
            The file is missing, cannot be opened, is no history, or is of a newer fablint.
        """
        self.path = path
        if not create and not path.exists():
            raise UsageError(f"{path}: there is no history", "fablint history add RUN creates it")
        _refuse_other_files(path)
        try:
            self._connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._prepare()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise IncompleteError(f"{path}: another process writes it ({error})", "try again later") from error
            raise UsageError(f"{path}: cannot be opened ({error})", "give another file with --db") from error
        except sqlite3.DatabaseError as error:
            raise UsageError(f"{path}: is not a history of fablint ({error})", "give another file with --db") from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query."""
        return self._connection.execute(query, values).fetchall()

    def cursor(self, query: str) -> sqlite3.Cursor:
        """Return a cursor over the rows of a query, for results that do not fit in memory."""
        return self._connection.execute(query)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Change the file: all of the block, or nothing of it.

        Raises
        ------
        IncompleteError
            Another process writes for longer than a minute, or the disk is full.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise IncompleteError(f"{self.path}: cannot be written ({error})", "try again later") from error
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise IncompleteError(f"{self.path}: cannot be written ({error})", "free space, then repeat") from error
            raise

    def _prepare(self) -> None:
        """Create the tables in a new file; refuse other files."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and not self._tables():
            with self.transaction():
                if not self._tables():  # another process may have created them meanwhile
                    for statement in filter(None, map(str.strip, _SCHEMA.split(";"))):
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA user_version = {FORMAT}")
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            raise UsageError(
                f"{self.path}: history of format {version}, this fablint reads format {FORMAT}", "update fablint"
            )

    def _tables(self) -> int:
        (count,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return int(count)


def _refuse_other_files(path: Path) -> None:
    """Raise UsageError for a file that SQLite did not write: SQLite itself takes a short one for an empty database."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(_MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path}: cannot be opened ({error.strerror})", "give another file with --db") from error
    if begin and begin != _MAGIC:
        raise UsageError(f"{path}: is not a history of fablint", "give another file with --db")


def add(database: Database, record: RunRecord) -> bool:
    """Add a run; False if the history has it already. The run then keeps its place; only its path is updated."""
    with database.transaction() as connection:
        return insert(connection, record)


def insert(connection: sqlite3.Connection, record: RunRecord) -> bool:
    """Do the same as `add` within a transaction of the caller."""
    earlier = connection.execute("SELECT id FROM run WHERE key = ?", (record.key,)).fetchone()
    if earlier:
        connection.execute("UPDATE run SET path = ? WHERE id = ?", (record.path, *earlier))
        return False
    run = connection.execute(
        "INSERT INTO run (key, path, moment, verdict, hosts, facts) VALUES (?, ?, ?, ?, ?, ?)",
        (record.key, record.path, record.moment, record.verdict, record.hosts, json.dumps(record.facts)),
    ).lastrowid
    components = _ids(connection, "component", ("kind", "name"), [(one.kind, one.component) for one in record.figures])
    columns = ("medium", "kernel", "size", "quantity")
    metrics = _ids(connection, "metric", columns, [one.metric for one in record.figures])
    connection.executemany(
        "INSERT INTO figure VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (components[figure.kind, figure.component], metrics[figure.metric], run, figure.pairs, *figure.quantiles)
            for figure in record.figures
        ],
    )
    connection.executemany(
        "INSERT INTO finding VALUES (?, ?, ?, ?, ?)",
        [(run, one.state, one.kind, one.component, one.effect) for one in record.findings],
    )
    return True


def _ids(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], names: Sequence[tuple[object, ...]]
) -> Mapping[tuple[object, ...], int]:
    """Return the ids of all entries of a table of names, after adding those of `names` that are new."""
    listed = ", ".join(columns)
    query = f"SELECT id, {listed} FROM {table}"
    id_of_name = {tuple(name): number for number, *name in connection.execute(query)}
    new = [name for name in dict.fromkeys(names) if name not in id_of_name]
    places = ", ".join("?" for _ in columns)
    connection.executemany(f"INSERT INTO {table} ({listed}) VALUES ({places})", new)
    return {tuple(name): number for number, *name in connection.execute(query)} if new else id_of_name

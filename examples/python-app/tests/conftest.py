"""Every test runs the same statements on a plain table and on its twin with offloaded columns.

DIRECT_URL names Postgres, TOASTRACK_URL the same server through Toastrack. The tables have the
same names in two schemas, chosen by search_path, so the statements are the same to the byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from shelf import library

PLAIN, TWIN = "python_plain", "python_twin"

TABLES = """
create table documents (
    id int primary key,
    body text,
    note varchar(3000),
    data jsonb,
    verbatim json,
    raw bytea,
    small text
);
create table upserts (name text primary key, body text, data jsonb, version int default 1);
"""

# What Toastrack calls moving a column: a change of type, here by SQL.
OFFLOADED = {
    "documents": {
        "body": "text",
        "note": "varchar(3000)",
        "data": "jsonb",
        "verbatim": "json",
        "raw": "bytea",
    },
    "upserts": {"body": "text", "data": "jsonb"},
    "shelf": {
        "abstract": "varchar(4000)",
        "body": "text",
        "data": "jsonb",
        "content": "bytea",
    },
}


def url(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.exit(f"{name} is not set: run this through scripts/with-servers.sh", returncode=2)
    return value


def in_schema(base: str, schema: str) -> str:
    """The URL with the schema as the session's search_path."""
    separator = "&" if "?" in base else "?"
    return f"{base}{separator}options=-c%20search_path%3D{schema}"


def move_columns(direct: psycopg.Connection[Any]) -> bool:
    """Gives the twin's columns their offloaded types; False where Toastrack is not installed."""
    found = direct.execute("select to_regtype('toastrack.text') is not null").fetchone()
    if found != (True,):
        return False
    for table, columns in OFFLOADED.items():
        changes = ", ".join(
            f"alter {column} type toastrack.{kind}" for column, kind in columns.items()
        )
        direct.execute(f"alter table {TWIN}.{table} {changes}")
    return True


@dataclass(frozen=True)
class Servers:
    """How to reach the two sides."""

    plain: str
    twin: str
    direct: str
    offloads: bool


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    direct, toastrack = url("DIRECT_URL"), url("TOASTRACK_URL")
    sides = {PLAIN: in_schema(direct, PLAIN), TWIN: in_schema(direct, TWIN)}
    with psycopg.connect(direct, autocommit=True) as connection:
        for schema, side in sides.items():
            connection.execute(f"drop schema if exists {schema} cascade")
            connection.execute(f"create schema {schema}")
            with psycopg.connect(side) as creating:
                creating.execute(TABLES)
            library.create_tables(library.connect(side))
        offloads = move_columns(connection)
        if not offloads and direct != toastrack:
            pytest.exit("the schema toastrack is not installed in this database", returncode=2)
        yield Servers(sides[PLAIN], in_schema(toastrack, TWIN), direct, offloads)
        for schema in sides:
            connection.execute(f"drop schema {schema} cascade")


@dataclass(frozen=True)
class Failure:
    """An error as the application sees it."""

    kind: str
    sqlstate: str | None
    message: str | None


def outcome(action: Callable[[Any], Any], connection: Any) -> Any:
    try:
        return action(connection)
    except psycopg.Error as error:
        return Failure(type(error).__name__, error.sqlstate, error.diag.message_primary)


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 400 else f"{text[:200]} ... {text[-100:]} ({len(text)} characters)"


class Pair:
    """A connection to each side."""

    def __init__(self, servers: Servers, **settings: Any) -> None:
        self.servers = servers
        self.plain = psycopg.connect(servers.plain, autocommit=True, **settings)
        self.twin = psycopg.connect(servers.twin, autocommit=True, **settings)

    def close(self) -> None:
        self.plain.close()
        self.twin.close()

    def same(self, action: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        """Does the same on both sides, checks that the outcome is the same, and returns it."""
        plain, twin = outcome(action, self.plain), outcome(action, self.twin)
        # Not `assert plain == twin`: a difference of megabytes would be explained at length.
        if plain != twin:
            pytest.fail(f"plain: {shorten(plain)}\n twin: {shorten(twin)}", pytrace=True)
        assert repr(plain) == repr(twin), "equal, but of other Python types"
        return plain

    def run(
        self,
        sql: str,
        params: Any = None,
        *,
        binary: bool = False,
        fails: str | None = None,
        **options: Any,
    ) -> Any:
        """Executes one statement on both sides; compares all that the driver lets one see.

        `fails` is the SQLSTATE that the statement ends with; without it, it must work.
        """
        result = self.same(
            lambda connection: everything(
                connection.cursor(binary=binary).execute(sql, params, **options)
            )
        )
        sqlstate = result.sqlstate if isinstance(result, Failure) else None
        assert sqlstate == fails, f"{shorten(result)} from: {sql[:200]}"
        return result

    def clear(self) -> None:
        self.same(lambda connection: connection.execute("truncate documents, upserts").rowcount)


def everything(cursor: psycopg.Cursor[Any]) -> Any:
    """Rows, columns, counts and command tag of an executed statement."""
    columns = [tuple(column) for column in cursor.description or ()]
    formats = cursor.pgresult.fformat(0) if cursor.pgresult and columns else None
    rows = cursor.fetchall() if columns else None
    return columns, formats, rows, cursor.rowcount, cursor.statusmessage


@pytest.fixture
def pair(servers: Servers) -> Iterator[Pair]:
    both = Pair(servers)
    both.clear()
    yield both
    both.close()


@pytest.fixture
def raw_values(servers: Servers) -> Callable[[str], list[Any]]:
    """What stands in a column of the twin, read past Toastrack."""

    def read(column: str, table: str = "documents") -> list[Any]:
        with psycopg.connect(in_schema(servers.direct, TWIN)) as direct:
            # No cast: that would ask for the value. The type's own output is what the row holds.
            return [row[0] for row in direct.execute(f"select {column} from {table} order by ctid")]

    return read


REFERENCES = {
    "body": ("toast:", 62),
    "note": ("toast:", 62),
    "abstract": ("toast:", 62),
    "data": ('"toast:', 64),
    "verbatim": ('"toast:', 64),
    "raw": ("\\xf7544f4153540d0a", 102),
    "content": ("\\xf7544f4153540d0a", 102),
}


def is_reference(column: str, stored: str) -> bool:
    """Whether what stands in the row has the look of a reference of the column's type."""
    start, length = REFERENCES[column]
    return stored.startswith(start) and len(stored) == length

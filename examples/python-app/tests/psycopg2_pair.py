"""psycopg2 on both sides: the simple protocol, with every value as a literal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg2
import psycopg2.extensions
import psycopg2.extras

from conftest import Failure, Servers
from sides import agree

Connection = psycopg2.extensions.connection


def plain_bytes(value: Any) -> Any:
    """bytea as bytes, wherever it stands: a memoryview's repr is its address."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain_bytes, value))
    return bytes(value) if isinstance(value, memoryview) else value


def everything(cursor: psycopg2.extensions.cursor) -> Any:
    """Rows, columns, counts and command tag of an executed statement."""
    columns = [tuple(column) for column in cursor.description or ()]
    rows = plain_bytes(cursor.fetchall()) if columns else None
    return columns, rows, cursor.rowcount, cursor.statusmessage


def outcome(action: Callable[[Connection], Any], connection: Connection) -> Any:
    try:
        return action(connection)
    except psycopg2.Error as error:
        return Failure(type(error).__name__, error.pgcode, error.diag.message_primary)


class Pair2:
    """A connection to each side."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self.plain = self.connect(servers.plain)
        self.twin = self.connect(servers.twin)

    @staticmethod
    def connect(url: str) -> Connection:
        connection = psycopg2.connect(url)
        connection.autocommit = True
        # jsonb as the text that came, so that nothing is made equal by parsing.
        psycopg2.extras.register_default_json(connection, loads=str)
        psycopg2.extras.register_default_jsonb(connection, loads=str)
        return connection

    def close(self) -> None:
        self.plain.close()
        self.twin.close()

    def same(self, action: Callable[[Connection], Any], *, fails: str | None = None) -> Any:
        """Does the same on both sides, checks that the outcome is the same, and returns it."""
        result = agree(outcome(action, self.plain), outcome(action, self.twin))
        sqlstate = result.sqlstate if isinstance(result, Failure) else None
        assert sqlstate == fails, result
        return result

    def run(self, sql: str, values: Any = None, *, fails: str | None = None) -> Any:
        """Executes one statement on both sides; compares all that the driver lets one see."""

        def work(connection: Connection) -> Any:
            with connection.cursor() as cursor:
                cursor.execute(sql, values)
                return everything(cursor)

        return self.same(work, fails=fails)

    def clear(self) -> None:
        self.run("truncate documents, upserts")

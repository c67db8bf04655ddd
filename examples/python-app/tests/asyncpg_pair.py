"""asyncpg on both sides: binary formats, prepared statements and portals throughout."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from conftest import Failure, Servers
from sides import agree

Action = Callable[[asyncpg.Connection], Awaitable[Any]]


async def outcome(action: Action, connection: asyncpg.Connection) -> Any:
    try:
        return await action(connection)
    except asyncpg.PostgresError as error:
        return Failure(type(error).__name__, error.sqlstate, str(error))
    except (asyncpg.InterfaceError, TimeoutError) as error:
        return Failure(type(error).__name__, None, str(error))


class AsyncPair:
    """A connection to each side, on an event loop of its own."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self.runner = asyncio.Runner()
        self.plain = self.runner.run(self.connect(servers.plain))
        self.twin = self.runner.run(self.connect(servers.twin))

    @staticmethod
    async def connect(url: str) -> asyncpg.Connection:
        return await asyncpg.connect(url)

    def close(self) -> None:
        self.runner.run(self.plain.close())
        self.runner.run(self.twin.close())
        self.runner.close()

    def same(self, action: Action, *, fails: str | None = None) -> Any:
        """Does the same on both sides, checks that the outcome is the same, and returns it."""
        plain = self.runner.run(outcome(action, self.plain))
        twin = self.runner.run(outcome(action, self.twin))
        result = agree(plain, twin)
        sqlstate = result.sqlstate if isinstance(result, Failure) else None
        assert sqlstate == fails, result
        return result

    def run(self, sql: str, *values: Any, fails: str | None = None) -> Any:
        """Prepares and executes one statement; compares rows, types, parameters and the tag."""

        async def work(connection: asyncpg.Connection) -> Any:
            statement = await connection.prepare(sql)
            rows = await statement.fetch(*values)
            return (
                [tuple(row.items()) for row in rows],
                statement.get_parameters(),
                statement.get_attributes(),
                statement.get_statusmsg(),
            )

        return self.same(work, fails=fails)

    def clear(self) -> None:
        self.same(lambda connection: connection.execute("truncate documents, upserts"))

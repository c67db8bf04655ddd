"""asyncpg: portals, executemany, COPY, the statement cache, cancelling and notifications."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from asyncpg_pair import AsyncPair
from conftest import Servers
from sides import LARGE
from values import BYTES, JSONS, TEXTS, prose

BODY, OTHER, DATA, RAW = TEXTS["prose"], TEXTS["large"], JSONS["document"], BYTES["threshold"]
INSERT = "insert into documents (id, body, data, raw) values ($1, $2, $3, $4)"
ROWS = [(n, f"{n} {BODY}" if n % 3 else f"{n}", DATA, RAW) for n in range(60)]


@pytest.fixture(scope="module")
def connected(servers: Servers) -> Iterator[AsyncPair]:
    pair = AsyncPair(servers)
    yield pair
    pair.close()


@pytest.fixture
def pair(connected: AsyncPair) -> AsyncPair:
    connected.clear()
    return connected


@pytest.fixture
def filled(pair: AsyncPair) -> AsyncPair:
    pair.same(lambda connection: connection.executemany(INSERT, ROWS))
    return pair


def test_cursor_in_parts(filled: AsyncPair) -> None:
    async def read(connection: asyncpg.Connection) -> Any:
        seen = []
        async with connection.transaction():
            cursor = await connection.cursor("select * from documents where id < $1 order by id", 50)
            seen.append(await cursor.fetchrow())
            seen.append(await cursor.fetch(7))
            seen.append(await cursor.forward(5))
            seen.append(await cursor.fetch(1000))
            seen.append(await cursor.fetchrow())
        return seen

    seen = filled.same(read)
    assert len(seen[3]) == 50 - 1 - 7 - 5


def test_cursor_as_an_iterator(filled: AsyncPair) -> None:
    async def read(connection: asyncpg.Connection) -> Any:
        seen = []
        async with connection.transaction():
            async for row in connection.cursor("select id, body from documents order by id", prefetch=9):
                seen.append(tuple(row))
                if row["id"] % 20 == 0:
                    # Another statement between two parts of the portal.
                    seen.append(await connection.fetchval("select data from documents where id = $1", row["id"]))
        return seen

    assert len(filled.same(read)) == 63


def test_executemany_is_all_or_nothing(pair: AsyncPair) -> None:
    rows = [(n % 7, f"{n} {BODY}", DATA, RAW) for n in range(10)]
    pair.same(lambda connection: connection.executemany(INSERT, rows), fails="23505")
    pair.run("select count(*) from documents")


def test_fetchmany(pair: AsyncPair) -> None:
    """The rows of many executions of one statement, sent together."""
    rows = pair.same(lambda connection: connection.fetchmany(f"{INSERT} returning id, body, data", ROWS[:20]))
    assert len(rows) == 20
    pair.same(
        lambda connection: connection.fetchmany(
            "update documents set body = $2 where id = $1 returning body", [(n, OTHER) for n in range(20)]
        )
    )


def test_copy_records(pair: AsyncPair) -> None:
    """COPY FROM in the binary format, made by the driver."""
    columns = ["id", *LARGE]
    records = [(n, *LARGE.values()) for n in range(12)]
    pair.same(lambda connection: connection.copy_records_to_table("documents", records=records, columns=columns))
    pair.run("select * from documents order by id")
    nulls = [(100, None, "", None, None, b""), (101, "", None, "{}", "[]", None)]
    pair.same(lambda connection: connection.copy_records_to_table("documents", records=nulls, columns=columns))
    pair.same(
        lambda connection: connection.copy_records_to_table("documents", records=nulls, columns=columns),
        fails="23505",
    )
    pair.run("select * from documents where id >= 100 order by id")


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_copy_out_and_in(filled: AsyncPair, form: str) -> None:
    async def copy(connection: asyncpg.Connection) -> Any:
        out, query = io.BytesIO(), io.BytesIO()
        tags = [await connection.copy_from_table("documents", output=out, format=form)]
        tags.append(
            await connection.copy_from_query(
                "select id, body, data from documents where id < $1 order by id", 9, output=query, format=form
            )
        )
        await connection.execute("truncate documents")
        tags.append(await connection.copy_to_table("documents", source=io.BytesIO(out.getvalue()), format=form))
        return tags, out.getvalue(), query.getvalue()

    filled.same(copy)
    filled.run("select * from documents order by id")


def test_transactions_and_savepoints(pair: AsyncPair) -> None:
    async def work(connection: asyncpg.Connection) -> Any:
        seen: list[Any] = []
        async with connection.transaction():
            await connection.execute(INSERT, *ROWS[1])
            try:
                async with connection.transaction():
                    await connection.execute("update documents set body = $1", OTHER)
                    seen.append(await connection.fetchval("select body from documents"))
                    await connection.execute(INSERT, *ROWS[1])
            except asyncpg.UniqueViolationError as error:
                seen.append(str(error))
            seen.append(await connection.fetch("select * from documents"))
        transaction = connection.transaction(isolation="serializable", readonly=True, deferrable=True)
        await transaction.start()
        try:
            await connection.execute("update documents set body = $1", OTHER)
        except asyncpg.PostgresError as error:
            seen.append(error.sqlstate)
        try:
            await connection.fetch("select body from documents")
        except asyncpg.PostgresError as error:
            seen.append(error.sqlstate)
        await transaction.rollback()
        seen.append(await connection.fetch("select * from documents"))
        return seen

    seen = pair.same(work)
    assert seen[3:5] == ["25006", "25P02"]


def test_the_statement_cache_after_ddl(filled: AsyncPair) -> None:
    """asyncpg notices 0A000 "cached plan must not change result type" and prepares again."""

    async def work(connection: asyncpg.Connection) -> Any:
        select = "select * from documents where id = $1"
        seen = [await connection.fetchrow(select, 4)]
        seen.append(await connection.fetchrow(select, 5))
        await connection.execute("alter table documents add column later text default 'later'")
        try:
            seen.append(await connection.fetchrow(select, 4))
            async with connection.transaction():
                await connection.execute("alter table documents alter later type int using 7")
                try:
                    await connection.fetchrow(select, 5)
                except asyncpg.PostgresError as error:
                    seen.append((type(error).__name__, error.sqlstate))
                    raise
        except asyncpg.PostgresError as error:
            seen.append(str(error))
        await connection.execute("alter table documents drop column later")
        seen.append(await connection.fetchrow(select, 4))
        await connection.execute(INSERT, 1000, BODY, DATA, RAW)
        seen.append(await connection.fetchrow(select, 1000))
        return [tuple(item.items()) if isinstance(item, asyncpg.Record) else item for item in seen]

    filled.same(work)


def test_prepared_statements_kept_and_dropped(pair: AsyncPair) -> None:
    async def work(connection: asyncpg.Connection) -> Any:
        seen: list[Any] = []
        insert = await connection.prepare(f"{INSERT} returning *")
        select = await connection.prepare("select * from documents where id = $1")
        for n in range(8):
            seen.append(await insert.fetchrow(n, f"{n} {BODY}", DATA, RAW))
            seen.append(await select.fetchrow(n))
            seen.append(await select.explain(n) != [])
        await connection.execute("deallocate all")
        try:
            await select.fetchrow(1)
        except asyncpg.PostgresError as error:
            seen.append(error.sqlstate)
        connection._drop_global_statement_cache()
        await connection.reset()
        await connection.reload_schema_state()
        seen.append(await connection.fetch("select * from documents order by id"))
        return seen

    async def with_settings(connection: asyncpg.Connection) -> Any:
        path = await connection.fetchval("show search_path")
        seen = await work(connection)
        await connection.execute(f"set search_path = {path}")
        return seen

    pair.same(with_settings)


def test_without_a_statement_cache(servers: Servers, filled: AsyncPair) -> None:
    """What asyncpg does behind a pooler: unnamed statements only."""

    async def work(url: str) -> Any:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        seen = []
        for n in range(5):
            seen.append(await connection.fetch("select * from documents where id = $1", n))
            seen.append(await connection.fetch("update documents set body = $2 where id = $1 returning *", n, BODY))
        await connection.close()
        return [[tuple(row.items()) for row in rows] for rows in seen]

    run = filled.runner.run
    assert run(work(servers.plain)) == run(work(servers.twin))


def test_timeouts_and_cancelling(filled: AsyncPair) -> None:
    async def work(connection: asyncpg.Connection) -> Any:
        seen: list[Any] = []
        try:
            await connection.fetch("select pg_sleep(20), body from documents", timeout=0.2)
        except TimeoutError:
            seen.append("timeout")
        seen.append(await connection.fetchval("select body from documents where id = 1"))
        task = asyncio.ensure_future(connection.fetch("select pg_sleep(20)"))
        await asyncio.sleep(0.2)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            seen.append("cancelled")
        seen.append(await connection.fetchval("select body from documents where id = 2"))
        await connection.execute("set statement_timeout = 100")
        try:
            await connection.fetch("select pg_sleep(20)")
        except asyncpg.QueryCanceledError as error:
            seen.append((error.sqlstate, str(error)))
        await connection.execute("reset statement_timeout")
        return seen

    assert filled.same(work)[0] == "timeout"


def test_notifications(pair: AsyncPair) -> None:
    async def work(connection: asyncpg.Connection) -> Any:
        received: list[Any] = []
        notices: list[Any] = []
        heard = asyncio.Event()

        def listen(_: Any, __: int, channel: str, payload: str) -> None:
            received.append((channel, payload))
            if len(received) == 2:
                heard.set()

        connection.add_log_listener(lambda _, message: notices.append(str(message)))
        await connection.add_listener("shelf", listen)
        await connection.execute("select pg_notify('shelf', $1)", prose(5000))
        await connection.execute("notify shelf, 'short'")
        await connection.execute("do $$ begin raise notice '%', repeat('x', 5000); end $$")
        await asyncio.wait_for(heard.wait(), 5)
        await connection.remove_listener("shelf", listen)
        return received, len(notices)

    received, _ = pair.same(work)
    assert received == [("shelf", prose(5000)), ("shelf", "short")]


def test_scripts_of_several_statements(pair: AsyncPair) -> None:
    literal = BODY.replace("'", "''")
    script = f"""
        begin;
        insert into documents (id, body) values (1, '{literal}'), (2, '{literal}');
        update documents set small = body where id = 2;
        commit;
    """
    pair.same(lambda connection: connection.execute(script))
    pair.run("select * from documents order by id")


def test_a_pool(servers: Servers, pair: AsyncPair) -> None:
    async def work(url: str) -> Any:
        async with asyncpg.create_pool(url, min_size=2, max_size=8) as pool:
            await asyncio.gather(*(pool.execute(INSERT, n, f"{n} {BODY}", DATA, RAW) for n in range(40)))
            rows = await asyncio.gather(
                *(pool.fetchrow("select * from documents where id = $1", n) for n in range(40))
            )
        return [tuple(row.items()) for row in rows]

    run = pair.runner.run
    plain, twin = run(work(servers.plain)), run(work(servers.twin))
    assert len(plain) == 40
    assert plain == twin


def test_upserts(pair: AsyncPair) -> None:
    upsert = """
        insert into upserts (name, body, data) values ($1, $2, $3)
        on conflict (name) do update
        set body = excluded.body, data = excluded.data, version = upserts.version + 1
        returning *, (xmax = 0) as inserted
    """
    for body, data in [(BODY, DATA), (BODY, DATA), ("short", "{}"), (OTHER, JSONS["large"]), (None, None)]:
        pair.run(upsert, "one", body, data)
    pair.run("insert into upserts (name, body) values ($1, $2) on conflict do nothing returning *", "one", BODY)
    pair.run("select * from upserts")

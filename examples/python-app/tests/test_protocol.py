"""Cursors, pipelines, transactions, errors and prepared statements."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import psycopg
import pytest

from conftest import Pair, Servers, everything
from values import BYTES, JSONS, TEXTS, prose

BODY, LARGE = TEXTS["prose"], TEXTS["large"]
DATA = JSONS["document"]


@pytest.fixture
def filled(pair: Pair) -> Pair:
    def fill(connection: psycopg.Connection[Any]) -> int:
        cursor = connection.cursor()
        cursor.executemany(
            "insert into documents (id, body, data, raw) values (%s, %s, %s, %s)",
            [(n, f"{n} {BODY}" if n % 3 else f"{n}", DATA, BYTES["threshold"]) for n in range(60)],
        )
        return cursor.rowcount

    assert pair.same(fill) == 60
    return pair


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_server_side_cursor(filled: Pair, binary: bool) -> None:
    def read(connection: psycopg.Connection[Any]) -> Any:
        seen = []
        with connection.transaction(), connection.cursor("named", binary=binary) as cursor:
            cursor.itersize = 7
            cursor.execute("select * from documents order by id")
            seen.append(tuple(tuple(column) for column in cursor.description or ()))
            seen.append(cursor.fetchone())
            seen.append(cursor.fetchmany(5))
            seen.extend(iter(cursor))
        return seen

    assert len(filled.same(read)) == 1 + 1 + 1 + 54


def test_scrolling_cursor(filled: Pair) -> None:
    def read(connection: psycopg.Connection[Any]) -> Any:
        with connection.transaction(), connection.cursor("scrolling", scrollable=True) as cursor:
            cursor.execute("select id, body from documents order by id")
            seen = [cursor.fetchmany(3)]
            cursor.scroll(-2)
            seen.append(cursor.fetchone())
            cursor.scroll(50, mode="absolute")
            seen.append(cursor.fetchmany(100))
        return seen

    filled.same(read)


def test_cursor_with_hold_and_sql_cursors(filled: Pair) -> None:
    filled.run("begin")
    filled.run("declare held cursor with hold for select id, body, data from documents order by id")
    filled.run("fetch 3 from held")
    filled.run("commit")
    filled.run("fetch 3 from held")
    filled.run("move 10 in held")
    filled.run("fetch all from held", binary=False)
    filled.run("close held")
    filled.run("fetch all from held", fails="34000")


def test_rows_one_at_a_time(filled: Pair) -> None:
    def read(connection: psycopg.Connection[Any]) -> Any:
        return list(connection.cursor().stream("select id, body, raw from documents order by id"))

    assert len(filled.same(read)) == 60


def test_pipeline(pair: Pair) -> None:
    def work(connection: psycopg.Connection[Any]) -> Any:
        cursors = []
        with connection.pipeline():
            for n in range(20):
                connection.execute(
                    "insert into documents (id, body, data) values (%s, %s, %s)", (n, f"{n} {BODY}", DATA)
                )
                cursors.append(connection.execute("select * from documents where id = %s", (n,)))
                cursors.append(
                    connection.execute("update documents set body = %s where id = %s returning body", (LARGE, n))
                )
        return [everything(cursor) for cursor in cursors]

    assert len(pair.same(work)) == 40
    pair.run("select * from documents order by id")


def test_error_in_a_pipeline(pair: Pair) -> None:
    """An error ends the rest up to the next synchronisation point, in both the same."""

    def work(connection: psycopg.Connection[Any]) -> Any:
        seen: list[Any] = []
        try:
            with connection.pipeline() as pipeline:
                connection.execute("insert into documents (id, body) values (1, %s)", (BODY,))
                pipeline.sync()
                connection.execute("insert into documents (id, body) values (2, %s)", (BODY,))
                connection.execute("insert into documents (id, body) values (1, %s)", (LARGE,))
                connection.execute("insert into documents (id, body) values (3, %s)", (LARGE,))
                pipeline.sync()
        except psycopg.Error as error:
            seen.append((type(error).__name__, error.sqlstate))
        seen.append(connection.info.transaction_status.name)
        seen.append(connection.execute("select * from documents order by id").fetchall())
        return seen

    assert pair.same(work)[0] == ("UniqueViolation", "23505")


def test_error_in_a_transaction(pair: Pair) -> None:
    pair.run("begin")
    pair.run("insert into documents (id, body) values (1, %s)", (BODY,))
    pair.run("savepoint one")
    pair.run("insert into documents (id, body) values (1, %s)", (LARGE,), fails="23505")
    pair.run("insert into documents (id, body) values (2, %s)", (LARGE,), fails="25P02")
    pair.run("select body from documents", fails="25P02")
    pair.run("rollback to savepoint one")
    pair.run("insert into documents (id, body) values (2, %s) returning *", (LARGE,))
    pair.run("select body::int from documents", fails="22P02")
    pair.run("commit")
    pair.run("select * from documents")
    pair.run("insert into documents (id, body) values (3, %s)", (LARGE,))
    pair.run("select * from documents")


def test_rollback_and_nested_transactions(pair: Pair) -> None:
    def work(connection: psycopg.Connection[Any]) -> Any:
        seen = []
        with connection.transaction():
            connection.execute("insert into documents (id, body) values (1, %s)", (BODY,))
            try:
                with connection.transaction():
                    connection.execute("update documents set body = %s", (LARGE,))
                    seen.append(connection.execute("select body from documents").fetchall())
                    connection.execute("select 1 / 0")
            except psycopg.Error as error:
                seen.append(error.sqlstate)
            seen.append(connection.execute("select body from documents").fetchall())
        with connection.transaction(force_rollback=True):
            connection.execute("update documents set body = %s", (LARGE,))
        seen.append(connection.execute("select body from documents").fetchall())
        return seen

    pair.same(work)


def test_prepared_statements_reused_and_replaced(pair: Pair) -> None:
    insert = "insert into documents (id, body) values (%s, %s) returning *"
    for n in range(8):
        pair.run(insert, (n, f"{n} {BODY}"), prepare=True)
        pair.run("select * from documents where id = %s", (n,), prepare=True)
    pair.run("deallocate all")
    pair.run("select * from documents order by id")
    pair.same(lambda connection: connection.execute("discard all").statusmessage)

    def by_name(connection: psycopg.Connection[Any]) -> Any:
        pgconn = connection.pgconn
        seen = []
        for statement in (
            b"insert into documents (id, body) values ($1, $2) returning body",
            b"select body from documents where id = $1::int and body <> $2",
            b"update documents set body = $2 where id = $1 returning id, body",
        ):
            pgconn.prepare(b"again", statement)
            for n in (100, 101):
                result = pgconn.exec_prepared(b"again", [str(n).encode(), f"{n} {LARGE}".encode()])
                seen.append((result.status, [result.get_value(row, 0) for row in range(result.ntuples)]))
            seen.append(pgconn.prepare(b"again", statement).error_message)
            seen.append(pgconn.exec_(b"deallocate again").status)
        return seen

    pair.same(by_name)
    pair.run("select * from documents order by id")


def test_sql_prepare(pair: Pair) -> None:
    pair.run("prepare ins as insert into documents (id, body, data) values ($1, $2, $3) returning *")
    pair.same(
        lambda connection: everything(
            psycopg.ClientCursor(connection).execute("execute ins(%s, %s, %s)", (1, BODY, DATA))
        )
    )
    pair.run("prepare sel(int) as select * from documents where id = $1")
    pair.run("execute sel(1)")
    pair.run("execute sel(1)", binary=True)
    pair.run("deallocate ins")
    pair.run("execute ins(2, 'x', '{}')", fails="26000")


def test_a_statement_whose_table_changes(pair: Pair) -> None:
    select = "select * from changing where id = %s"
    pair.run("create temp table changing as select id, body::text from documents with no data")
    pair.run("insert into changing values (1, %s)", (BODY,))
    pair.run(select, (1,), prepare=True)
    pair.run("alter table changing add more text default 'more'")
    pair.run(select, (1,), prepare=True)
    pair.run("select 1")


def test_several_statements_in_one_query(filled: Pair) -> None:
    def work(connection: psycopg.Connection[Any]) -> Any:
        cursor = connection.execute(
            "begin; select id, body from documents where id < 3 order by id;"
            " update documents set body = 'x' where id = 1; select body from documents where id = 1; commit"
        )
        seen = [everything(cursor)]
        while cursor.nextset():
            seen.append(everything(cursor))
        return seen

    assert len(filled.same(work)) == 5


def test_cancel(pair: Pair) -> None:
    def work(connection: psycopg.Connection[Any]) -> Any:
        timer = threading.Timer(0.3, connection.cancel_safe)
        timer.start()
        try:
            connection.execute("select pg_sleep(20)")
        except psycopg.Error as error:
            # Postgres signals the process and its group: the second signal may come after the
            # first was answered. The request returns once both are sent.
            timer.join()
            return error.sqlstate, connection.execute("select 1").fetchall()
        return None

    assert pair.same(work) == ("57014", [(1,)])


def test_notices_and_notifications(pair: Pair) -> None:
    def work(connection: psycopg.Connection[Any]) -> Any:
        notices: list[Any] = []
        connection.add_notice_handler(lambda diag: notices.append((diag.severity, diag.message_primary)))
        connection.execute("listen shelf")
        connection.execute("do $$ begin raise notice 'a notice of %', repeat('x', 5000); end $$")
        connection.execute("select pg_notify('shelf', %s)", (prose(5000),))
        received = [notify.payload for notify in connection.notifies(timeout=5, stop_after=1)]
        return notices, received

    notices, received = pair.same(work)
    assert len(notices) == 1
    assert received == [prose(5000)]


def test_many_connections_at_once(servers: Servers, pair: Pair) -> None:
    """Sessions do not see each other's values, whatever the order."""

    async def session(url: str, number: int) -> Any:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            for n in range(10):
                await connection.execute(
                    "insert into documents (id, body) values (%s, %s)",
                    (number * 100 + n, f"{number} {n} {BODY}"),
                )
            cursor = await connection.execute(
                "select id, body from documents where id / 100 = %s order by id", (number,)
            )
            return await cursor.fetchall()

    async def sessions(url: str) -> Any:
        return await asyncio.gather(*(session(url, number) for number in range(12)))

    assert asyncio.run(sessions(servers.plain)) == asyncio.run(sessions(servers.twin))
    pair.run("select * from documents order by id")

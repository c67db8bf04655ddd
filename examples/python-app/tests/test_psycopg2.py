"""psycopg2: values as literals, server-side cursors, COPY, execute_values, two-phase commit."""

from __future__ import annotations

import io
import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import psycopg2.errors
import psycopg2.extras
import pytest
from psycopg2.extensions import ISOLATION_LEVEL_SERIALIZABLE

from conftest import Servers
from psycopg2_pair import Connection, Pair2, everything, plain_bytes
from sides import COLUMN_CASES, LARGE, assert_offloaded
from values import BYTES, JSONS, TEXTS, prose

BODY, OTHER, DATA, RAW = TEXTS["prose"], TEXTS["large"], JSONS["document"], BYTES["threshold"]
ROWS = [(n, f"{n} {BODY}" if n % 3 else f"{n}", DATA, RAW) for n in range(40)]


@pytest.fixture(scope="module")
def connected(servers: Servers) -> Iterator[Pair2]:
    pair = Pair2(servers)
    yield pair
    pair.close()


@pytest.fixture
def pair(connected: Pair2) -> Pair2:
    connected.clear()
    return connected


@pytest.fixture
def filled(pair: Pair2) -> Pair2:
    pair.same(insert_rows)
    return pair


def insert_rows(connection: Connection) -> Any:
    with connection.cursor() as cursor:
        psycopg2.extras.execute_values(
            cursor, "insert into documents (id, body, data, raw) values %s", ROWS, page_size=15
        )
        return cursor.rowcount, cursor.statusmessage


@pytest.mark.parametrize(("column", "value"), COLUMN_CASES)
def test_values(pair: Pair2, column: str, value: Any) -> None:
    pair.run(f"insert into documents (id, {column}) values (%s, %s) returning id, {column}", (1, value))
    pair.run(f"select *, octet_length({column}::text) from documents")
    pair.run(f"update documents set {column} = %s; select {column} from documents", (value,))


def test_large_values_leave_the_row(pair: Pair2, raw_values: Callable[..., list[Any]]) -> None:
    insert = "insert into documents (id, body, note, data, verbatim, raw) values "
    pair.run(f"{insert} (1, %s, %s, %s, %s, %s)", tuple(LARGE.values()))

    def pages(connection: Connection) -> Any:
        rows = [(n, *LARGE.values()) for n in range(2, 12)]
        with connection.cursor() as cursor:
            psycopg2.extras.execute_values(cursor, f"{insert} %s returning *", rows[:5], fetch=True)
            psycopg2.extras.execute_batch(cursor, f"{insert} (%s, %s, %s, %s, %s, %s)", rows[5:])
            return cursor.rowcount

    pair.same(pages)
    assert_offloaded(pair.servers, raw_values, LARGE)
    pair.run("select * from documents order by id")


def test_named_cursor(filled: Pair2) -> None:
    def read(connection: Connection) -> Any:
        connection.autocommit = False
        seen: list[Any] = []
        with connection, connection.cursor("named", scrollable=True) as cursor:
            cursor.itersize = 7
            cursor.execute("select * from documents order by id")
            seen.append(cursor.fetchone())
            seen.append(cursor.fetchmany(5))
            cursor.scroll(-3)
            seen.append(cursor.fetchmany(2))
            cursor.scroll(30, mode="absolute")
            seen.extend(cursor)
        with connection, connection.cursor("held", withhold=True) as cursor:
            cursor.execute("select id, body from documents order by id desc")
            connection.commit()
            seen.extend(cursor.fetchmany(4))
            connection.commit()
        connection.autocommit = True
        return plain_bytes(seen)

    filled.same(read)


@pytest.mark.parametrize("options", ["", "(format csv, header)", "(format binary)"])
def test_copy_expert(filled: Pair2, options: str) -> None:
    def copy(connection: Connection) -> Any:
        out = io.BytesIO()
        with connection.cursor() as cursor:
            cursor.copy_expert(f"copy documents to stdout {options}", out)
            counts = [cursor.rowcount]
            cursor.execute("truncate documents")
            out.seek(0)
            cursor.copy_expert(f"copy documents from stdin {options}", out, size=1000)
            counts.append(cursor.rowcount)
        return counts, out.getvalue()

    assert filled.same(copy)[0] == [40, 40]
    filled.run("select * from documents order by id")


def test_copy_from_and_to(pair: Pair2) -> None:
    lines = f"1\t{prose(63).strip()}\\n{'x' * 5000}\n2\t\\N\n3\t\n"

    def copy(connection: Connection) -> Any:
        out = io.StringIO()
        with connection.cursor() as cursor:
            cursor.copy_from(io.StringIO(lines), "documents", columns=("id", "body"))
            cursor.copy_to(out, "documents", sep="|", null="none", columns=("body", "id"))
        return out.getvalue()

    pair.same(copy)
    pair.run("select * from documents order by id")


def test_error_in_the_middle_of_copy(pair: Pair2) -> None:
    def copy(connection: Connection) -> Any:
        with connection.cursor() as cursor:
            cursor.copy_from(io.StringIO(f"1\t{'x' * 5000}\nno number\tx\n"), "documents", columns=("id", "body"))

    pair.same(copy, fails="22P02")
    pair.run("select count(*) from documents")


def test_transactions(pair: Pair2) -> None:
    def work(connection: Connection) -> Any:
        seen: list[Any] = []
        connection.autocommit = False
        insert = "insert into documents (id, body) values (%s, %s) returning body"
        with connection.cursor() as cursor:
            cursor.execute(insert, (1, BODY))
            cursor.execute("savepoint one")
            for statement, values in [(insert, (1, OTHER)), ("select body from documents", None)]:
                try:
                    cursor.execute(statement, values)
                except psycopg2.Error as error:
                    seen.append((error.pgcode, connection.info.transaction_status))
            cursor.execute("rollback to savepoint one")
            cursor.execute("select * from documents")
            seen.append(everything(cursor))
            connection.rollback()
            cursor.execute("select count(*) from documents")
            seen.append(cursor.fetchall())
            connection.commit()
            connection.set_session(isolation_level=ISOLATION_LEVEL_SERIALIZABLE)
            cursor.execute(insert, (2, OTHER))
            seen.append(cursor.fetchall())
            connection.commit()
            connection.set_session(isolation_level="DEFAULT")
        connection.autocommit = True
        return seen

    seen = pair.same(work)
    assert [code for code, _ in seen[:2]] == ["23505", "25P02"]
    pair.run("select * from documents")


def test_the_connection_as_a_context(pair: Pair2) -> None:
    def work(connection: Connection) -> Any:
        connection.autocommit = False
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute("insert into documents (id, body) values (1, %s)", (BODY,))
                cursor.execute("insert into documents (id, data) values (2, %s)", ("{" + "x" * 5000,))
        finally:
            connection.autocommit = True

    pair.same(work, fails="22P02")
    pair.run("select count(*) from documents")


def test_types_of_the_application(pair: Pair2) -> None:
    document = {"b": [1, 2.5, None, True], "a": {"text": prose(5000)}}
    pair.run(
        "insert into documents (id, data, verbatim, raw) values (1, %s, %s, %s) returning *",
        (psycopg2.extras.Json(document), psycopg2.extras.Json(document), psycopg2.Binary(RAW)),
    )
    pair.run("insert into documents (id, body) select * from unnest(%s, %s) returning *", ([2, 3, 4], [BODY, None, "'\\"]))
    pair.run("select array_agg(body order by id), array_agg(raw order by id) from documents")
    pair.run("select id from documents where body = any(%s)", ([BODY, "other"],))
    pair.run("select id from documents where body in %s", ((BODY, "other"),))

    def as_dicts(connection: Connection) -> Any:
        with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            cursor.execute("select id, body, data from documents order by id")
            return [dict(row) for row in cursor]

    pair.same(as_dicts)


@pytest.mark.parametrize(
    ("column", "value", "sqlstate"),
    [
        ("data", '{"a": ' + "x" * 5000, "22P02"),
        ("data", '{"a": "\\u0000' + "x" * 5000 + '"}', "22P05"),
        ("note", "x" * 3001, "22001"),
        ("nowhere", "x" * 3001, "42703"),
    ],
)
def test_refused_values(pair: Pair2, column: str, value: str, sqlstate: str) -> None:
    pair.run(f"insert into documents (id, {column}) values (1, %s)", (value,), fails=sqlstate)
    pair.run("select count(*) from documents")


def test_cancel_and_timeout(filled: Pair2) -> None:
    def cancel(connection: Connection) -> Any:
        timer = threading.Timer(0.2, connection.cancel)
        timer.start()
        try:
            with connection.cursor() as cursor:
                cursor.execute("select pg_sleep(20)")
        finally:
            timer.join()

    filled.same(cancel, fails="57014")
    filled.run("set statement_timeout = 100")
    filled.run("select pg_sleep(20)", fails="57014")
    filled.run("reset statement_timeout")
    filled.run("select body from documents where id = 1")


def test_notifications(pair: Pair2) -> None:
    def work(connection: Connection) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("listen shelf; notify shelf, 'one'")
            cursor.execute("select pg_notify('shelf', %s)", (prose(5000),))
            until = time.monotonic() + 5
            while len(connection.notifies) < 2 and time.monotonic() < until:
                select.select([connection], [], [], 0.1)
                connection.poll()
            cursor.execute("unlisten shelf")
        return [connection.notifies.pop(0).payload for _ in range(2)]

    assert pair.same(work) == ["one", prose(5000)]


def test_asynchronous_connection(servers: Servers, filled: Pair2) -> None:
    def wait(connection: Connection) -> None:
        while (state := connection.poll()) != psycopg2.extensions.POLL_OK:
            read = [connection] if state == psycopg2.extensions.POLL_READ else []
            write = [connection] if state == psycopg2.extensions.POLL_WRITE else []
            select.select(read, write, [], 10)

    def read(url: str) -> Any:
        connection = psycopg2.connect(url, async_=1)
        wait(connection)
        cursor = connection.cursor()
        cursor.execute("select id, body, raw from documents order by id")
        wait(connection)
        result = everything(cursor)
        connection.close()
        return result

    assert read(servers.plain) == read(servers.twin)


def test_large_objects(pair: Pair2) -> None:
    """libpq's FunctionCall messages pass."""

    def work(connection: Connection) -> Any:
        connection.autocommit = False
        with connection:
            large = connection.lobject(0, "wb")
            large.write(BYTES["large"])
            large.close()
            reading = connection.lobject(large.oid, "rb")
            reading.seek(10)
            seen = reading.read(50_000), reading.tell()
            reading.unlink()
        connection.autocommit = True
        return seen

    pair.same(work)


def test_several_connections(servers: Servers, pair: Pair2) -> None:
    def session(url: str, number: int, seen: dict[int, Any]) -> None:
        connection = Pair2.connect(url)
        with connection.cursor() as cursor:
            for n in range(10):
                cursor.execute(
                    "insert into documents (id, body) values (%s, %s)", (number * 100 + n, f"{number} {n} {BODY}")
                )
            cursor.execute("select id, body from documents where id / 100 = %s order by id", (number,))
            seen[number] = cursor.fetchall()
        connection.close()

    def sessions(url: str) -> Any:
        seen: dict[int, Any] = {}
        threads = [threading.Thread(target=session, args=(url, number, seen)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(seen.items())

    plain, twin = sessions(servers.plain), sessions(servers.twin)
    assert len(plain) == 6
    assert plain == twin

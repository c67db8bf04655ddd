"""COPY with psycopg 3, row by row and in every format, and everything in binary."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb

from conftest import Pair, everything
from values import BYTES, JSONS, TEXTS, prose

TYPES = ["int4", "text", "varchar", "jsonb", "json", "bytea", "text"]
BODY, OTHER = TEXTS["prose"], TEXTS["large"]
DATA = {"zebra": 1, "a": [2.5, None, "it's \"quoted\" \\"], "text": prose(5000)}
ROWS: list[tuple[Any, ...]] = [
    (1, BODY, prose(2900), Jsonb(DATA), Json(DATA), BYTES["large"], "small"),
    (2, None, None, None, None, None, None),
    (3, "", "", Jsonb({}), Json([]), b"", ""),
    (4, TEXTS["quotes"], "\t\n\r\\", Jsonb("toast:"), Json("toast:"), BYTES["magic"], "\\N"),
    (5, TEXTS["like_a_reference"], TEXTS["like_a_reference"], Jsonb(TEXTS["like_a_reference"]),
     Json(TEXTS["like_a_reference"]), BYTES["like_a_reference"], TEXTS["like_a_reference"]),
    (6, TEXTS["unicode"], TEXTS["threshold"], Jsonb(TEXTS["unicode"]), Json(TEXTS["unicode"]),
     BYTES["threshold"], TEXTS["unicode"]),
    (7, TEXTS["above_threshold"], TEXTS["below_threshold"], Jsonb(None), Json(None),
     BYTES["below_threshold"], None),
    (8, TEXTS["mebibyte"], None, None, None, BYTES["mebibyte"], None),
]  # fmt: skip


def write_rows(connection: psycopg.Connection[Any], form: str) -> Any:
    cursor = connection.cursor()
    with cursor.copy(f"copy documents from stdin (format {form})") as copy:
        copy.set_types(TYPES)
        for row in ROWS:
            copy.write_row(row)
    return cursor.rowcount, cursor.statusmessage


@pytest.mark.parametrize("form", ["text", "binary"])
def test_rows_in_and_out(pair: Pair, form: str) -> None:
    assert pair.same(lambda connection: write_rows(connection, form)) == (len(ROWS), f"COPY {len(ROWS)}")
    pair.run("select * from documents order by id")
    pair.run("select * from documents order by id", binary=True)

    def read(connection: psycopg.Connection[Any]) -> Any:
        seen = []
        for source in ("documents", "(select * from documents order by id desc)", "documents (body, id)"):
            with connection.cursor().copy(f"copy {source} to stdout (format {form})") as copy:
                if source != "documents (body, id)":
                    copy.set_types(TYPES)
                seen.append(list(copy.rows()))
        return seen

    pair.same(read)


OPTIONS = [
    "",
    "(format text, delimiter '|', null 'nothing')",
    "(format csv)",
    "(format csv, header, delimiter ';', quote '''', escape '\\')",
    "(format csv, header match, force_null (body, small))",
    "(format csv, force_not_null (body), null 'none')",
    "(format text, encoding 'latin1')",
    "(format binary)",
]


CUTS = [(options, 1000) for options in OPTIONS]
CUTS += [("", 1), ("(format csv)", 1), ("(format binary)", 1), ("", 100_000), ("(format binary)", 100_000)]


@pytest.mark.parametrize(("options", "size"), CUTS)
def test_options_and_cuts(pair: Pair, options: str, size: int) -> None:
    """The data comes in pieces that end anywhere, in the middle of escapes and of characters."""
    pair.same(lambda connection: write_rows(connection, "text"))
    pair.run("delete from documents where id not in (2, 3, 4, 5)" if size == 1 else "delete from documents where id > 6")
    if "latin1" in options:
        pair.run("delete from documents where body ~ '[^\\u0001-\\u00ff]'")
    out_options = re.sub(r" match|, force_(not_)?null \([a-z, ]*\)", "", options)

    def read(connection: psycopg.Connection[Any]) -> Any:
        with connection.cursor().copy(f"copy (select * from documents order by id) to stdout {out_options}") as copy:
            return [bytes(part) for part in copy]

    parts = pair.same(read)
    data = b"".join(parts)

    def write(connection: psycopg.Connection[Any]) -> Any:
        connection.execute("truncate documents")
        cursor = connection.cursor()
        with cursor.copy(f"copy documents from stdin {options}") as copy:
            for start in range(0, len(data), size):
                copy.write(data[start : start + size])
        return cursor.rowcount

    pair.same(write)
    pair.run("select * from documents order by id")


@pytest.mark.parametrize(
    ("data", "options", "sqlstate"),
    [
        (f"1\t{'x' * 5000}\nno number\tx\n", "", "22P02"),
        (f"1\t{'x' * 5000}\n2\ta\tb\n", "", "22P04"),
        (f"1\t{'x' * 5000}\n2\n", "", "22P04"),
        (f"1\t{'x' * 5000}\n1\t{'y' * 5000}\n", "", "23505"),
        (f"1,\"{'x' * 5000}", "(format csv)", "22P04"),
        (f"id,note\n1,{'x' * 5000}\n", "(format csv, header match)", "22P04"),
        ("PGCOPY\n", "(format binary)", "22P04"),
    ],
)
def test_errors_in_the_data(pair: Pair, data: str, options: str, sqlstate: str) -> None:
    def write(connection: psycopg.Connection[Any]) -> Any:
        with connection.cursor().copy(f"copy documents (id, body) from stdin {options}") as copy:
            copy.write(data.encode())
        return None

    assert pair.same(write).sqlstate == sqlstate
    pair.run("select count(*) from documents")


def test_copy_that_the_client_gives_up(pair: Pair) -> None:
    def give_up(connection: psycopg.Connection[Any]) -> Any:
        with connection.cursor().copy("copy documents (id, body) from stdin") as copy:
            copy.write(f"1\t{BODY[:63]}".encode())
            raise psycopg.DataError("enough")

    def leave(connection: psycopg.Connection[Any]) -> Any:
        with connection.cursor().copy("copy documents to stdout") as copy:
            return copy.read() is not None

    pair.same(give_up)
    pair.run("select count(*) from documents")
    pair.same(lambda connection: write_rows(connection, "binary"))
    assert pair.same(leave) is True
    pair.run("select count(*) from documents")


def test_copy_inside_a_transaction(pair: Pair) -> None:
    pair.run("begin")
    pair.same(lambda connection: write_rows(connection, "binary"))
    pair.run("savepoint one")
    assert pair.same(lambda connection: write_rows(connection, "text")).sqlstate == "23505"
    pair.run("rollback to savepoint one")
    pair.run("update documents set body = %s where id = 1 returning body", (OTHER,))
    pair.run("commit")
    pair.run("select * from documents order by id", binary=True)


def test_binary_parameters_and_results(pair: Pair) -> None:
    """Parameters in binary format, past the driver's threshold for prepared statements."""
    insert = (
        "insert into documents (id, body, note, data, verbatim, raw, small)"
        " values (%b, %b, %b, %b, %b, %b, %b) returning *"
    )
    for row in ROWS:
        pair.run(insert, row, binary=True)
        pair.run("select * from documents where id = %b", (row[0],), binary=True)
    for column, value in [("body", BODY), ("note", prose(2900)), ("data", Jsonb(DATA)), ("raw", BYTES["large"])]:
        pair.run(f"select id from documents where {column} = %b order by id", (value,), binary=True)
        pair.run(f"update documents set {column} = %b where id = %b returning *", (value, 2), binary=True)
    pair.run("select id from documents where body = any(%b) order by id", ([BODY, OTHER],), binary=True)
    pair.run("select array_agg(body order by id), array_agg(raw order by id), array_agg(data order by id) from documents", binary=True)


def test_executemany_with_results(pair: Pair) -> None:
    """executemany runs in pipeline mode; the results come one by one."""

    def work(connection: psycopg.Connection[Any]) -> Any:
        cursor = connection.cursor(binary=True)
        cursor.executemany(
            "insert into documents (id, body, raw) values (%s, %s, %s) returning id, body, raw",
            [(n, f"{n} {BODY}", BYTES["threshold"]) for n in range(30)],
            returning=True,
        )
        seen = [everything(cursor)]
        while cursor.nextset():
            seen.append(everything(cursor))
        return seen

    assert len(pair.same(work)) == 30


def test_ddl_under_prepared_statements(pair: Pair) -> None:
    """The table of the offloaded columns changes under a statement that libpq prepared."""
    pair.same(lambda connection: write_rows(connection, "binary"))

    def work(connection: psycopg.Connection[Any]) -> Any:
        pgconn, seen = connection.pgconn, []
        prepared = {
            b"sel": b"select * from documents where id = $1",
            b"one": b"select body, data from documents where id = $1",
            b"del": b"delete from documents where id = $1 and body is null returning *",
        }
        for name, statement in prepared.items():
            pgconn.prepare(name, statement)
        for change in (b"", b"alter table documents add later text default 'later'", b"", b"alter table documents drop later"):
            pgconn.exec_(change)
            for name, form in [(name, form) for name in prepared for form in (0, 1)]:
                result = pgconn.exec_prepared(name, [b"1"], result_format=form)
                values = [result.get_value(row, n) for row in range(result.ntuples) for n in range(result.nfields)]
                seen.append((result.status, result.error_message, values))
        for name in prepared:
            pgconn.exec_(b"deallocate " + name)
        return seen

    assert any(b"cached plan" in message for _, message, _ in pair.same(work))
    pair.run("insert into documents (id, body) values (%s, %s) returning *", (20, BODY))
    pair.run("select * from documents order by id")

"""asyncpg: each value in each column type, in the binary format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest

from asyncpg_pair import AsyncPair
from conftest import Servers
from sides import COLUMN_CASES, LARGE, assert_offloaded
from values import BYTES, JSONS, TEXTS, prose


@pytest.fixture(scope="module")
def connected(servers: Servers) -> Iterator[AsyncPair]:
    pair = AsyncPair(servers)
    yield pair
    pair.close()


@pytest.fixture
def pair(connected: AsyncPair) -> AsyncPair:
    connected.clear()
    return connected


@pytest.mark.parametrize(("column", "value"), COLUMN_CASES)
def test_values(pair: AsyncPair, column: str, value: Any) -> None:
    pair.run(f"insert into documents (id, {column}) values ($1, $2) returning id, {column}", 1, value)
    pair.run(f"select {column}, octet_length({column}::text) from documents")
    pair.run(f"update documents set {column} = $1 where id = $2 returning *", value, 1)


def test_large_values_leave_the_row(
    pair: AsyncPair, raw_values: Callable[..., list[Any]]
) -> None:
    pair.run(
        "insert into documents (id, body, note, data, verbatim, raw) values (1, $1, $2, $3, $4, $5)",
        *LARGE.values(),
    )
    pair.same(
        lambda connection: connection.executemany(
            "insert into documents (id, body, note, data, verbatim, raw)"
            " values ($1, $2, $3, $4, $5, $6)",
            [(n, *LARGE.values()) for n in range(2, 6)],
        )
    )
    assert_offloaded(pair.servers, raw_values, LARGE)
    pair.run("select * from documents order by id")


def test_arrays(pair: AsyncPair) -> None:
    bodies = [TEXTS["prose"], None, "", 'NULL, {"a"} \\ ', TEXTS["like_a_reference"]]
    raws = [BYTES["large"], None, b"", BYTES["magic"], BYTES["like_a_reference"]]
    datas = [JSONS["document"], None, "{}", '"toast:"', JSONS["like_a_reference"]]
    pair.run(
        "insert into documents (id, body, raw, data)"
        " select * from unnest($1::int[], $2::text[], $3::bytea[], $4::jsonb[]) returning *",
        [1, 2, 3, 4, 5], bodies, raws, datas,
    )
    pair.run("select array_agg(body order by id), array_agg(data order by id), array_agg(raw order by id) from documents")
    pair.run("select array[body, note], array[[body, body], [small, null]] from documents order by id")
    pair.run("select id from documents where body = any($1) order by id", bodies)
    pair.run("select id from documents where raw = any($1::bytea[]) order by id", raws)
    pair.run("select id from documents where data = any($1::jsonb[]) order by id", datas)
    pair.run("select id from documents where body <> all($1) order by id", [TEXTS["prose"]])
    pair.run("select body from documents where id = any($1::int[]) order by id", [1, 3])


def test_codecs_of_the_application(pair: AsyncPair) -> None:
    """A text codec makes asyncpg ask for that column in text format, the others in binary."""
    import json

    async def work(connection: asyncpg.Connection) -> Any:
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        document = {"b": 1, "a": [prose(4000), None, {"c": 2.5}]}
        inserted = await connection.fetch(
            "insert into documents (id, data, raw, body) values (1, $1, $2, $3) returning *",
            document, BYTES["large"], TEXTS["prose"],
        )
        selected = await connection.fetch("select data, raw, body from documents where data = $1", document)
        await connection.reset_type_codec("jsonb", schema="pg_catalog")
        return [tuple(row.items()) for row in inserted + selected]

    assert len(pair.same(work)) == 2


def test_records_and_composites(pair: AsyncPair) -> None:
    """Values inside a record that asks for the plain type."""
    pair.run("insert into documents (id, body, data) values (1, $1, $2)", TEXTS["prose"], JSONS["document"])
    pair.run("select row(id, body::text, data::jsonb) from documents")


@pytest.mark.parametrize(
    ("column", "value", "sqlstate"),
    [
        ("data", '{"a": ' + "x" * 5000, "22P02"),
        ("data", '{"a": "\\u0000' + "x" * 5000 + '"}', "22P05"),
        ("verbatim", "[1, 2" + " " * 5000, "22P02"),
        ("note", "x" * 3001, "22001"),
        ("body", "nul \0 " + "x" * 5000, "22021"),
    ],
)
def test_refused_values(pair: AsyncPair, column: str, value: str, sqlstate: str) -> None:
    insert = f"insert into documents (id, {column}) values (1, $1)"
    pair.run(insert, value, fails=sqlstate)
    pair.same(lambda connection: connection.executemany(insert, [(value,)]), fails=sqlstate)
    pair.run("select count(*) from documents")


def test_null_and_missing_parameters(pair: AsyncPair) -> None:
    pair.run("insert into documents (id, body, data, raw) values ($1, $2, $3, $4) returning *", 1, None, None, None)
    pair.run("insert into documents (id, body) values ($1, coalesce($2, 'none')) returning body", 2, None)
    pair.run("select $1::text is null, id from documents order by id", None)
    pair.run("insert into documents (id) values (1)", fails="23505")
    pair.run("insert into nowhere (body) values ($1)", TEXTS["prose"], fails="42P01")

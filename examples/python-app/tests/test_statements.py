"""SQL that writes, reads and computes with large values."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from conftest import Pair, Servers
from values import BYTES, JSONS, TEXTS, prose

BODY, LARGE, UNICODE = TEXTS["prose"], TEXTS["large"], TEXTS["unicode"]
DATA, RAW = JSONS["document"], BYTES["above_threshold"]


@pytest.fixture
def filled(pair: Pair) -> Pair:
    rows = [
        (1, BODY, BODY[:2500], DATA, DATA, RAW),
        (2, UNICODE, "short", JSONS["escapes"], JSONS["spaced"], BYTES["large"]),
        (3, "small", None, '{"a": 1, "title": "three"}', "[]", b"small"),
        (4, None, None, None, None, None),
        (5, BODY, BODY[:2500], DATA, DATA, RAW),
        (6, LARGE, "", '{"title": "six", "b": [1, 2, 3]}', "{}", b""),
    ]
    insert = (
        "insert into documents (id, body, note, data, verbatim, raw)"
        " values (%s, %s, %s, %s, %s, %s)"
    )
    for row in rows:
        pair.run(insert, row)
    return pair


READS = [
    "select * from documents order by id",
    "select id, length(body), octet_length(body), char_length(note), length(raw) from documents order by id",
    "select id, upper(body), left(body, 10), right(body, 10), reverse(note) from documents order by id",
    "select id, substring(body from 5 for 20), position('fox' in body), replace(body, 'fox', 'cat') from documents order by id",
    "select id from documents where body like '%%fox%%' order by id",
    "select id from documents where body ilike '%%FOX%%' and note ~ 'qu.ck' order by id",
    "select id, body || ' and more', 'before ' || note from documents order by id",
    "select id, md5(body), md5(raw), encode(raw, 'hex') from documents order by id",
    "select id, body = note, body < note, body > 'n', note is distinct from body from documents order by id",
    "select distinct body from documents order by body",
    "select distinct on (body) id, body from documents order by body, id",
    "select body, count(*), min(id) from documents group by body order by body",
    "select data, count(*) from documents group by data order by data",
    "select raw, count(*) from documents group by raw order by raw",
    "select min(body), max(body), min(note), max(note) from documents",
    "select string_agg(body, '|' order by id) from documents",
    "select array_agg(body order by id), array_agg(raw order by id) from documents",
    "select array[body, 'plain', null], array_length(array[body, note], 1) from documents order by id",
    "select coalesce(body, 'none'), coalesce(note, body), nullif(body, note) from documents order by id",
    "select case when id < 3 then body else note end from documents order by id",
    "select greatest(body, note), least(body, note) from documents order by id",
    "select body from documents where id < 3 union select note from documents order by 1",
    "select body from documents where id < 3 union all select small from documents order by 1 nulls last",
    "select body from documents intersect select body from documents order by 1 nulls last",
    "select a.id, b.id from documents a join documents b on a.body = b.body order by 1, 2",
    "select id from documents where body in (select body from documents where id = 5) order by id",
    "select id, data->'title', data->>'title', data#>>'{items,0,name}' from documents order by id",
    "select id from documents where data @> '{\"a\": 2}' order by id",
    "select id from documents where data ? 'items' order by id",
    "select id, data || '{\"z\": 1}', data - 'a', data - '{a,zebra}'::text[] from documents order by id",
    "select id, jsonb_set(data, '{title}', '\"new\"'), jsonb_typeof(data) from documents order by id",
    "select id, jsonb_array_length(data->'items'), jsonb_pretty(data) from documents order by id",
    "select id, key from documents, jsonb_object_keys(data) as key order by id, key",
    "select id, item->>'name' from documents, jsonb_array_elements(data->'items') as item order by 1, 2 limit 20",
    "select id, verbatim->>'title', json_typeof(verbatim), verbatim->'items'->0 from documents order by id",
    "select id, data::text, verbatim::text, data::json::text, verbatim::jsonb from documents order by id",
    "select id, raw || '\\x00'::bytea, substring(raw from 1 for 4), get_byte(raw || '\\x01'::bytea, 0) from documents order by id",
    "select id, to_tsvector('english', body) @@ to_tsquery('fox') from documents order by id",
    "with big as (select id, body from documents where length(body) > 3000) select * from big order by id",
    "select id, (select d.body from documents d where d.id = documents.id) from documents order by id",
    "select id, lag(body) over (order by id), row_number() over (partition by body order by id) from documents order by id",
    "select body from documents order by body desc nulls last limit 2 offset 1",
    "select id, body::varchar(20), note::text, body::char(10) from documents order by id",
    "select exists (select from documents where body = note), bool_or(body = note) from documents",
    "values ((select body from documents where id = 1), (select note from documents where id = 1))",
]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("sql", READS)
def test_reads(filled: Pair, sql: str, binary: bool) -> None:
    filled.run(sql, (), binary=binary)


def test_reads_in_the_simple_protocol(servers: Servers, filled: Pair) -> None:
    simple = Pair(servers, cursor_factory=psycopg.ClientCursor)
    for sql in READS:
        simple.run(sql, ())
    simple.run("; ".join(sql.replace("%%", "%") for sql in READS[:4]))
    simple.close()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("body = %s", BODY),
        ("body = %s::text", BODY),
        ("note = %s", BODY[:2500]),
        ("body = any(%s)", [BODY, UNICODE]),
        ("body <> %s", BODY),
        ("body > %s", BODY),
        ("data = %s", DATA),
        ("data @> %s", '{"zebra": 1}'),
        ("raw = %s", RAW),
        ("body like %s", "The quick%"),
    ],
)
def test_comparisons_with_parameters(filled: Pair, where: str, value: Any) -> None:
    filled.run(f"select id, body from documents where {where} order by id", (value,))
    filled.run(f"select id from documents where not ({where}) order by id", (value,), prepare=True)


def test_multi_row_values(pair: Pair) -> None:
    parameters = [item for n in range(5) for item in (n, f"{n} {BODY}", DATA)]
    marks = ", ".join(["(%s, %s, %s)"] * 5)
    pair.run(f"insert into documents (id, body, data) values {marks} returning id, body, data", parameters)
    pair.run("select * from documents order by id")


@pytest.mark.parametrize("cast", ["%s", "%s::text", "cast(%s as text)", "%s::varchar", "lower(%s)", "%s || 'x'", "coalesce(%s, '')"])
def test_expressions_around_a_parameter(pair: Pair, cast: str) -> None:
    pair.run(f"insert into documents (id, body) values (1, {cast}) returning body", (BODY,))
    pair.run(f"update documents set body = {cast} where id = 1 returning *", (UNICODE,))
    pair.run("select body, length(body) from documents")


def test_one_parameter_in_two_columns(servers: Servers) -> None:
    """The same $1 goes into an offloaded and into a plain column, and into an expression."""
    pair = Pair(servers, cursor_factory=psycopg.RawCursor)
    pair.clear()
    pair.run("insert into documents (id, body, small) values (1, $1, $1) returning *", (BODY,))
    pair.run("insert into documents (id, body, note) values (length($1), $1, left($1, 3000)) returning *", (BODY,))
    pair.run("update documents set small = $1, body = $1, note = left($1, 2900)", (UNICODE,))
    pair.run("select * from documents order by id")
    pair.close()


def test_insert_select_and_defaults(filled: Pair) -> None:
    filled.run("insert into documents (id, body, data) select id + 10, body, data from documents returning *")
    filled.run("insert into documents (id, small) select id + 20, body from documents returning small")
    filled.run("insert into documents values (40, default, default, %s, default)", (DATA,))
    filled.run("select * from documents order by id")


def test_upserts(pair: Pair) -> None:
    upsert = """
        insert into upserts (name, body, data) values (%s, %s, %s)
        on conflict (name) do update
        set body = excluded.body, data = excluded.data, version = upserts.version + 1
        returning *, (xmax = 0) as inserted
    """
    for body, data in [(BODY, DATA), (BODY, DATA), ("short", "{}"), (LARGE, JSONS["large"]), (None, None)]:
        pair.run(upsert, ("one", body, data))
        pair.run("select * from upserts")
    keep = "insert into upserts (name, body) values (%s, %s) on conflict do nothing returning *"
    pair.run(keep, ("one", BODY))
    pair.run(keep, ("two", BODY))
    replace = """
        insert into upserts (name, body) values (%s, %s)
        on conflict (name) do update set body = %s where upserts.body = %s returning *
    """
    pair.run(replace, ("two", "unused", UNICODE, BODY))
    pair.run("select * from upserts order by name")


def test_updates(filled: Pair) -> None:
    filled.run("update documents set body = body || %s where id = 1 returning body", ("!",))
    filled.run("update documents set body = %s, small = %s where id = any(%s)", (LARGE, LARGE, [2, 3]))
    filled.run("update documents set body = note, note = left(body, 100) where id = 5 returning *")
    filled.run("update documents set (body, raw) = (%s, %s) where id = 6 returning *", (UNICODE, RAW))
    filled.run("update documents d set body = o.body from documents o where d.id = 4 and o.id = 1 returning d.*")
    filled.run("update documents set data = jsonb_set(data, '{title}', %s) where id < 3 returning data", ('"changed"',))
    filled.run("update documents set data = data || %s where id = 1 returning data", ('{"more": [1, 2]}',))
    filled.run("delete from documents where body = %s returning *", (LARGE,))
    filled.run("with gone as (delete from documents where id = 1 returning *) select * from gone")
    filled.run("select * from documents order by id")


def test_merge_is_answered_as_postgres_answers_it(filled: Pair) -> None:
    filled.run(
        "merge into documents d using (select 1 as id) s on d.id = s.id"
        " when matched then update set body = %s when not matched then insert (id) values (s.id)",
        (UNICODE,),
    )
    filled.run("select body from documents where id = 1")


def test_bulk_insert_from_arrays(pair: Pair) -> None:
    ids, bodies = [1, 2, 3, 4], [BODY, None, 'NULL, {"a"} \\ ', LARGE]
    pair.run(
        "insert into documents (id, body) select * from unnest(%s::int[], %s::text[]) returning *",
        (ids, bodies),
    )
    pair.run("select array_agg(body order by id) from documents", binary=True)


@pytest.mark.parametrize("options", ["", "(format csv, header)", "(format binary)"])
def test_copy(filled: Pair, options: str) -> None:
    """COPY in both directions; large values come back whole, small ones go in as they are."""

    def copy_out(connection: psycopg.Connection[Any]) -> bytes:
        query = "copy (select * from documents order by id) to stdout"
        with connection.cursor().copy(f"{query} {options}") as copy:
            return b"".join(bytes(data) for data in copy)

    copied = filled.same(copy_out)

    def copy_in(connection: psycopg.Connection[Any]) -> Any:
        connection.execute("truncate documents")
        cursor = connection.cursor()
        with cursor.copy(f"copy documents from stdin {options}") as copy:
            copy.write(copied)
        return cursor.rowcount, cursor.statusmessage

    filled.same(copy_in)
    filled.run("select * from documents order by id")


def test_views_and_functions(filled: Pair) -> None:
    """Objects made on top of the table after its columns moved."""
    filled.run("create view pg_temp.seen as select id, body, upper(note) as loud from documents")
    filled.run("select * from pg_temp.seen order by id")
    filled.run(
        "create function pg_temp.body_of(wanted int) returns text language sql"
        " as 'select body from documents where id = wanted'"
    )
    filled.run("select pg_temp.body_of(1), length(pg_temp.body_of(2))")
    filled.run(
        "create function pg_temp.loud(wanted int) returns text language plpgsql as"
        " $$declare found text; begin select body into found from documents where id = wanted;"
        " return upper(found); end$$"
    )
    filled.run("select pg_temp.loud(1)")
    filled.run("create temp table copies as select id, body::text, data::jsonb from documents")
    filled.run("select * from copies order by id")

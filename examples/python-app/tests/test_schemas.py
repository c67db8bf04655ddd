"""The schema changes, and names mean other tables, while the session goes on."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from conftest import Pair, Servers, everything
from values import BYTES, JSONS, TEXTS

BODY, OTHER, DATA, RAW = TEXTS["prose"], TEXTS["large"], JSONS["document"], BYTES["large"]
INSERT = ("insert into documents (id, body) values ($1, $2) returning *", 1, BODY)
READ = ("select * from documents order by id",)
DROP = ("drop table documents",)

# Each list runs twice: the second time its statements are known.
CASES: dict[str, list[tuple[Any, ...]]] = {
    "a temporary table of the same name": [
        ("create temp table documents (id int, body text)",), INSERT,
        ("select * from documents where body = $1", BODY), DROP, READ,
    ],
    "with a column of another type": [
        ("create temp table documents (id int, body jsonb, data text)",),
        ("insert into documents values ($1, $2, $3) returning *", 1, DATA, BODY),
        ("insert into documents (id, body, data) values ($1, $2, $3) returning *", 1, BODY, BODY), READ, DROP, READ,
    ],
    "with a shorter column": [("create temp table documents (id int, body varchar(10))",), INSERT, DROP],
    "with an array": [
        ("create temp table documents (id int, body text[])",),
        ("insert into documents values (2, $1) returning *", [BODY, OTHER]), DROP,
    ],
    "with a domain": [
        ("create domain pg_temp.longer as text check (length(value) > 3)",),
        ("create temp table documents (id int, body pg_temp.longer)",), INSERT,
        ("insert into documents values (2, $1)", "ab"), DROP, ("drop domain pg_temp.longer",),
    ],
    "a WITH of the same name": [
        ("with documents(id, body) as (values (1, $1)) select *, length(body) from documents", BODY),
        ("with x as (select 5 as id, $1 as body) insert into documents (id, body) select id, body from x returning *", BODY),
    ],
    "another schema": [
        ("create temp table away (id int, body text)",), INSERT, ("alter table away rename to documents",), INSERT, READ,
        ("set search_path = pg_temp, public",), ("insert into documents values (3, $1) returning *", OTHER), READ, DROP,
    ],
    "a renamed column": [
        INSERT, ("alter table documents rename body to bodies",),
        ("insert into documents (id, bodies) values (7, $1) returning *", OTHER), READ,
        ("alter table documents rename bodies to body",), READ,
    ],
    "a renamed table": [
        INSERT, ("alter table documents rename to papers",), ("insert into papers (id, body) values (7, $1) returning *", OTHER),
        ("select * from papers order by id",), ("alter table papers rename to documents",), READ,
    ],
    "changes that are rolled back": [
        INSERT, ("begin",), ("alter table documents rename body to bodies",),
        ("insert into documents (id, bodies) values (7, $1) returning *", OTHER), ("truncate documents",), ("rollback",), READ,
    ],
    "tables made of the table": [
        INSERT, ("create table liked (like documents including all)",), ("insert into liked select * from documents",),
        ("insert into liked (id, body, data, raw) values (5, $1, $2, $3) returning *", OTHER, DATA, RAW),
        ("create table kid (more text) inherits (documents)",), ("insert into kid (id, body, more) values (5, $1, $1) returning *", OTHER),
        ("update documents set body = $1 where id = 5 returning *", BODY), READ, ("select * from liked order by id",),
        ("create materialized view seen as select body, data from documents",), ("select * from seen",),
        ("drop materialized view seen",), ("drop table kid",), ("drop table liked",),
    ],
    "triggers, checks, defaults and generated columns": [
        ("create function pg_temp.loud() returns trigger language plpgsql as $$begin new.small := left(new.body, 50);"
         " new.body := upper(new.body); return new; end$$",),
        ("create trigger loud before insert or update on documents for each row execute function pg_temp.loud()",), INSERT,
        ("update documents set body = $1 returning *", OTHER), ("drop function pg_temp.loud cascade",),
        ("alter table documents add g int generated always as (length(body)) stored, add check (length(body) < 30000),"
         " alter body set default 'none'",),
        ("insert into documents (id, body) values (4, default), (5, $1) returning *", BODY),
        ("update documents set body = $1", OTHER),
        ("alter table documents drop g, drop constraint if exists documents_body_check, alter body drop default",), READ,
    ],
    "a cursor's current row": [
        INSERT, ("begin",), ("declare c cursor for select * from documents for update",), ("fetch c",),
        ("update documents set body = $1 where current of c returning *", OTHER), ("close c",), ("commit",), READ,
    ],
    "two-phase commit": [("begin",), INSERT, ("prepare transaction 'examples'",), READ, ("rollback prepared 'examples'",), READ],
    "a session that is ended": [INSERT, ("select pg_terminate_backend(pg_backend_pid())",)],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_changes(servers: Servers, name: str) -> None:
    pair = Pair(servers, cursor_factory=psycopg.RawCursor)
    pair.clear()
    worked = 0
    for binary in (False, True):
        for sql, *values in CASES[name]:
            if pair.plain.closed:
                break
            result = pair.same(
                lambda connection: everything(connection.cursor(binary=binary).execute(sql, values or None))
            )
            worked += isinstance(result, tuple)
    assert worked > 0
    pair.close()

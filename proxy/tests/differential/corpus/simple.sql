# Blocks begin with "### name"; statements are parted by blank lines. Each block runs in a transaction
# that is rolled back, one statement at a time, in several protocols, and once as one simple query.

### reads of every column
select * from docs order by id

select id, body from docs order by id desc

select body, body, d, d from docs where id = 1

select b, j from docs where id in (1, 5, 6) order by id

table docs_view

select d.* from docs d where id = 5

select docs.body as "a name", short as body from docs where id = 2

select count(*), count(body), count(distinct body) from docs

### functions of text
select id, length(body), octet_length(body), char_length(long), length(b), octet_length(b) from docs order by id

select id, upper(left(body, 20)), lower(right(body, 5)), substring(body from 5 for 10), substr(long, 3, 4) from docs order by id

select id, position('lazy' in body), strpos(body, 'dog'), replace(left(body, 80), 'fox', 'FOX') from docs order by id

select id, md5(body), md5(b), sha256(b), hashtext(body) from docs order by id

select id, body || '!', '>' || body, body || long, id || body, short || body from docs order by id

select id, body like '%lazy%', body ilike '%LAZY%', body ~ 'q.ick', body similar to '%fox%', body not like 'a%' from docs order by id

select id, regexp_replace(left(body, 40), '[aeiou]', '_', 'g'), regexp_matches(body, 'fox') from docs where id in (1, 8) order by id

select id, split_part(body, ' ', 2), string_to_array(left(body, 30), ' '), reverse(left(body, 9)), trim(short) from docs order by id

select id, starts_with(body, 'The'), ascii(body), initcap(left(long, 10)), repeat(short, 3), quote_literal(short) from docs order by id

select id, to_tsvector('simple', body) @@ to_tsquery('simple', 'fox') from docs where id in (1, 2) order by id

select id, body::varchar(10), body::char(5), left(body, 8)::name, body::bytea from docs where id in (1, 2) order by id

select encode(b, 'hex'), encode(b, 'base64'), get_byte(b, 1), substring(b from 2 for 3), b || '\x00'::bytea from docs where id in (1, 2) order by id

select string_agg(body, ',' order by id) from docs

select string_agg(b, '\x2c'::bytea order by id) from docs

### comparisons
select id from docs where body = '@{big}' order by id

select id from docs where body = 'a' or short = 'b' order by id

select id from docs where body <> 'a' order by id

select id from docs where body in ('a', '', '@{at}') order by id

select id from docs where body = any (array['a', '@{big}']) order by id

select id from docs where body > 'M' order by id

select id from docs where body between 'A' and 'a' order by id

select id from docs where body is null or d is null order by id

select id from docs where body is distinct from long order by id

select a.id, b.id from docs a join docs b on a.body = b.body order by 1, 2

select a.id, b.id from docs a join docs b using (d) order by 1, 2

select a.id, o.id from docs a join other.docs o on a.body = o.body order by 1, 2

select a.id from docs a where exists (select from docs b where b.body = a.long) order by 1

select id from docs where d = '{"e": 2}' order by id

select id from docs where b = '\x00ff' order by id

select nullif(body, 'a'), greatest(body, 'b'), least(short, long) from docs order by id

### grouping and ordering
select body, count(*) from docs group by body order by body nulls first

select d, count(*) from docs group by d order by d nulls first

select b, count(*) from docs group by b order by b nulls first

select distinct body from docs order by body

select distinct d from docs order by d

select distinct on (body) body, id from docs order by body, id

select id from docs order by body desc nulls last, id

select id from docs order by d, id

select id from docs order by b, id

select max(id), min(id) from docs group by short order by 1

select body, row_number() over (partition by body order by id) from docs order by id

select lag(body) over (order by id), first_value(d) over (order by id) from docs order by id

select id, rank() over (order by body) from docs order by id

select j, count(*) from docs group by j

select distinct j from docs

### aggregates
select array_agg(body order by id) from docs

select array_agg(d order by id), array_agg(b order by id) from docs

select array_agg(j order by id), array_agg(short order by id), array_agg(long order by id) from docs where id < 6

select (array_agg(body order by id))[1], array_length(array_agg(body), 1) from docs

select array[body, long] from docs where id in (1, 2) order by id

select unnest(array_agg(body order by id)) from docs

select * from many order by id

select a[1], a[2:3], ds[1], bs[2] from many order by id

select unnest(a) from many order by id

select jsonb_agg(d order by id) from docs where id < 3

### json
select id, d -> 'title', d ->> 'title', d #> '{n,0}', d #>> '{n,1}' from docs order by id

select id, j -> 'title', j ->> 'body' from docs where id in (1, 2) order by id

select id, d @> '{"ok": true}', d ? 'body', d ?| array['e','x'], d ?& array['ok','n'] from docs order by id

select id, d || '{"z": 1}', d - 'body', d #- '{n,0}' from docs order by id

select id, jsonb_typeof(d), json_typeof(j) from docs order by id

select id, jsonb_object_keys(d) from docs where jsonb_typeof(d) = 'object' order by 1, 2

select jsonb_pretty(d) from docs where id = 1

select jsonb_set(d, '{title}', '"new"') from docs where id = 1

select key, value from docs, jsonb_each(d) where id = 1 order by key

select key, value from docs, json_each_text(j) where id = 1

select id, jsonb_array_length(d -> 'n') from docs where id = 1

select jsonb_path_query(d, '$.n[*]') from docs where id = 1

select d::text, j::text, d::json, j::jsonb from docs where id in (1, 5) order by id

select to_jsonb(d), to_json(body) from docs where id in (1, 2) order by id

select (d ->> 'title')::text, (d -> 'ok')::boolean from docs where id = 1

### subqueries, unions, common table expressions
select id, (select body from docs where id = 1) from docs where id = 2

select * from (select id, body, d from docs) s where id < 3 order by id

select body from docs where id = 1 union all select body from other.docs where id = 1

select body from docs where id = 1 union select long from docs where id = 8

select body from docs intersect select body from docs where id in (1, 2) order by 1

select body from docs except select long from docs order by 1

select body from docs where id = 1 union all select 'x'

select 'x' union all select body from docs where id = 1

with w as (select * from docs where id < 3) select body, d from w order by id

with w as materialized (select body from docs where id = 1) select length(body), body from w

with recursive r(id, body) as (select id, body from docs where id = 1 union all select r.id + 1, docs.body from r join docs on docs.id = r.id + 1) select * from r order by id

select coalesce(body, 'none'), coalesce(d, '{}'), coalesce(b, '\x') from docs order by id

select case when id = 1 then body else 'x' end, case id when 1 then d end from docs order by id

select (docs_of(2)).body

select * from docs_of(3)

select body_of(1), body_of(2), body_of(3), plpgsql_body(1)

values ((select body from docs where id = 1)), ('x')

select x.body from docs, lateral (select docs.body) x where docs.id = 1

select body from docs where id = 1 for update

select body from docs tablesample bernoulli (100) where id = 1

### insert
insert into docs(id, body) values (100, '@{big}') returning *

insert into docs values (101, '@{uni}', 's', '@{5000}', '@{json}', '@{json odd}', '@{bytes}', 1, 'n') returning *

insert into docs(id, body, d) values (102, E'@{e:quotes}', $${"a": "@{d:big}"}$$), (103, $q$@{d:uni}$q$, '[]'), (104, null, null) returning id, body, d

insert into docs(body, id) values ('@{big}'::text, 105), (cast('@{uni}' as text), 106), (text '@{noise}', 107) returning body

insert into docs(id, d, j) values (108, '@{json}'::jsonb, cast('@{json odd}' as json)) returning d, j

insert into docs(id, b) values (109, '@{bytes}'), (110, E'\\x@{noise}') returning b

insert into docs select id + 200, body, short, long, j, d, b from docs returning id, body, d

insert into docs(id, body) select 300 + g, '@{big}' from generate_series(1, 3) g returning body

insert into docs(id, body) values (310, (select body from docs where id = 1)) returning body

insert into docs(id, body) values (1, '@{uni}') on conflict (id) do update set body = excluded.body, d = '@{json odd}' returning body, d

insert into docs(id, body) values (1, '@{uni}') on conflict (id) do update set body = '@{big}' where docs.body <> excluded.body returning body

insert into docs(id, body) values (1, '@{uni}') on conflict do nothing returning body

insert into docs default values

### insert: positions of errors
insert into docs(id, body, nope) values (1, '@{big}', 2)

### insert: a type that does not fit behind a large literal
insert into docs(id, body, n) values (500, '@{big}', 'not a number')

### insert: several rows, the last is wrong
insert into docs(id, body) values (500, '@{big}'), (501, '@{uni}'), (502, nope)

### insert: unicode before an error
insert into docs(id, body, note) values (500, '@{uni}', 'é'), (501, '@{uni}', nope)

### insert: duplicate key
insert into docs(id, body) values (1, '@{big}')

### insert: invalid json
insert into docs(id, d) values (500, '@{json bad}')

### insert: zero in jsonb
insert into docs(id, d) values (500, '@{json nul}')

### insert: zero in json
insert into docs(id, j) values (500, '@{json nul}') returning j

select j ->> 'a' from docs where id = 500

### insert: too long
insert into docs(id, long) values (500, '@{5001}')

### insert: blanks that are too long are cut
insert into docs(id, long, short) values (500, '@{5000+blanks}', '@{varchar20+blanks}') returning long, short

### insert: bad bytes
insert into docs(id, b) values (500, '@{bytes bad}')

### insert: odd digits
insert into docs(id, b) values (500, '@{bytes odd}')

### insert: look-alikes
insert into docs(id, body, long, j, d, b) values (500, '@{lookalike}', '@{prefix+}', '@{json lookalike}', '@{json prefix}', '@{bytes magic}') returning *

insert into docs(id, body, d) values (501, 'toast:', '"toast:"'), (502, '@{lookalike big}', '@{json escaped prefix}') returning body, d

update docs set b = '@{bytes magic escape}' where id = 1 returning b

### update
update docs set body = '@{uni}' where id = 1 returning *

update docs set body = '@{big}', d = '@{json}', b = '@{bytes}' where id in (2, 3) returning body, d, b

update docs set body = body where id = 1 returning body

update docs set body = long, long = body where id = 1 returning body, long

update docs set body = default where id = 1 returning body

update docs set (body, long) = ('@{big}', '@{uni}') where id = 2 returning body, long

update docs set (body, long) = (select body, long from docs where id = 1) where id = 4 returning body, long

update docs set d = d || '{"added": 1}', body = body || ' more' where id = 1 returning d, body

! update docs set d['k'] = '1' where id = 2 returning d

### update from, delete using
update docs set body = o.body from other.docs o where o.id = docs.id and o.id = 1 returning docs.id, docs.body, o.body

delete from docs using other.docs o where o.body = docs.body and docs.id = 8 returning docs.id, docs.body

delete from docs where id > 4 returning *

truncate docs

select count(*) from docs

### schemas
insert into other.docs(id, body, d) values (100, '@{big}', '@{json}') returning *

insert into other.docs values (103, '@{big}', 'short', '@{uni}', '@{json odd}', '@{json odd}') returning *

update other.docs set body = '@{uni}' returning body

set local search_path = other

insert into docs(id, body, d) values (101, '@{big}', '@{json}') returning *

insert into docs values (104, '@{uni}') returning *

insert into public.docs(id, body) values (101, '@{big}') returning body

select body from docs where id = 101

set local search_path = other, public

insert into docs(id, body) values (102, '@{uni}') returning *

insert into kv values ('k', '@{big}', 1) returning *

### one name, two layouts
insert into twin values (2, '@{uni}', '@{json odd}', '@{bytes}') returning *

insert into other.twin values (1, 5, '@{json}', '@{bytes}') returning *

insert into other.twin(id, v, w) values (2, '@{json odd}', 7) returning *

set local search_path = other

insert into twin values (3, 6, '@{json}', '@{bytes}') returning *

insert into twin(v, w) values ('@{json}', 8), ('{}', 9) returning v, w

update twin set v = '@{json odd}', w = '10' where id = 3 returning *

reset search_path

update twin set v = '@{big}', w = '@{json}' where id = 1 returning *

create temp table kv(k int, v jsonb)

insert into kv values (1, '@{json}') returning *

insert into kv(k, v) values (2, '{}') returning *

alter table audited drop column d, add column d int

insert into audited values (10, '@{big}', 5) returning *

alter table audited alter body type jsonb using to_jsonb(length(body))

### a type that is changed in the transaction
alter table docs alter body type jsonb using to_jsonb(length(body::text))

insert into docs(id, body) values (100, '@{json}'), (101, '1') returning body

### views and triggers
select * from docs_view where id in (1, 2) order by id

insert into docs_view(id, body, d, b) values (100, '@{big}', '@{json}', '@{bytes}') returning *

update docs_view set body = '@{uni}' where id = 1 returning *

insert into audited values (2, '@{big}', '@{json}')

update audited set body = '@{uni}' where id = 1

select * from audit order by id

create rule also as on insert to kv do also insert into other.plain values (500, new.v, null)

insert into kv values ('ruled', '@{big}', 1)

select * from other.plain order by id

create materialized view mv as select id, body, d from docs where id in (1, 2)

select * from mv order by id

create table copied as select * from docs

select id, body, b from copied order by id

create temp table t (like docs)

insert into t(id, body) values (1, '@{big}') returning body

select id, body into into_table from docs where id = 1

select * from into_table

### prepared by SQL
prepare p as insert into docs(id, body) values ($1, $2) returning body

execute p(100, '@{big}')

execute p(101, 'small')

prepare q(text) as select id, body from docs where body = $1 order by id

execute q('@{big}')

execute q('a')

deallocate p

execute p(102, 'x')

### prepared by SQL with a type
prepare p(int, text, jsonb) as insert into docs(id, body, d) values ($1, $2, $3) returning body, d

execute p(100, '@{uni}', '@{json odd}')

create table made_by_execute as execute p(101, 'x', '{}')

### cursors
declare c cursor for select id, body, d from docs order by id

fetch c

fetch 2 from c

fetch all from c

fetch backward 2 from c

move backward all in c

fetch forward all in c

fetch first from c

fetch absolute 5 from c

fetch relative 0 from c

move 2 from c

close c

declare c binary cursor for select id, body, b from docs order by id

fetch 3 from c

declare s scroll cursor with hold for select body from docs order by id

fetch last from s

fetch prior from s

update docs set body = '@{uni}' where current of s

close all

fetch c

### cursor for update
declare u cursor for select * from docs where id = 1 for update

fetch u

update docs set body = '@{uni}' where current of u returning body

delete from docs where current of u

### settings
show bytea_output

set local bytea_output = 'escape'

select b, body from docs order by id

select bs from many order by id

select array_agg(b order by id) from docs

insert into docs(id, b) values (100, '@{bytes}') returning b

set local standard_conforming_strings = off

insert into docs(id, body) values (101, '@{noise}') returning body

insert into docs(id, body) values (102, 'a\tb@{noise}') returning body

reset standard_conforming_strings

set local escape_string_warning = off

insert into docs(id, body) values (103, E'a\tb@{noise}') returning body

set local client_min_messages = debug1

set local timezone = 'UTC'

set local extra_float_digits = 0

select 0.1::float8 + 0.2::float8

### errors inside a transaction
insert into docs(id, body) values (100, '@{big}')

savepoint one

insert into docs(id, d) values (101, '@{json bad}')

insert into docs(id, body) values (102, '@{big}')

rollback to one

insert into docs(id, body) values (103, '@{uni}') returning body

release one

select id, body from docs where id >= 100 order by id

select 1/0

select body from docs

rollback to nothing

### utility
explain (costs off) select body from docs where id = 1

explain (costs off, verbose) update docs set note = 'x' where id = 1

analyze docs

do $$ begin perform body from docs; raise notice 'here %', (select length(body) from docs where id = 1); end $$

do $$ declare r record; begin for r in select * from docs order by id loop raise notice '% %', r.id, left(r.body, 10); end loop; end $$

select noisy('x'), noisy(body) from docs where id = 1

call nothing()

comment on table docs is 'x'

lock table docs in share mode

select pg_notify('a_channel', 'payload')

### alter to the plain type and back
create table moved(id int, body text)

insert into moved values (1, '@{big}')

alter table moved add column more text default 'x'

select * from moved

insert into moved(id, body) values (2, '@{uni}') returning *

alter table moved rename column body to content

insert into moved(id, content) values (3, '@{big}') returning content

alter table docs add column extra text

insert into docs(id, body, extra) values (100, '@{big}', '@{uni}') returning body, extra

alter table docs rename to renamed

insert into renamed(id, body) values (101, '@{big}') returning body

alter table renamed rename body to nobody

insert into renamed(id, nobody) values (102, '@{uni}') returning *

alter table renamed drop column nobody

select * from renamed order by id

### partitions and inheritance
create table child() inherits (docs)

insert into child(id, body) values (400, '@{big}') returning body

select id, body from docs where id >= 400

select tableoid::regclass, body from docs where id >= 400

### syntax errors
selec 1

insert into docs(id, body) values (1, '@{big}'

### empty
;

### empty with a remark
-- nothing at all

### a literal that never ends
insert into docs(id, body) values (100, '@{big}

### many statements
insert into docs(id, body) values (100, '@{big}'); select body from docs where id = 100; update docs set body = '@{uni}' where id = 100 returning body; select 1/0; select 2

### statements with types of their own
select null::xml, '1 day'::interval, '{1,2}'::int[], row(1, 'x'), now() = now(), 1.50::numeric, 'a'::"char", true

select body::xml from docs where id = 2

! select id, body::text, (body)::varchar(3), cast(body as text) from docs where id in (1, 2) order by id

select body collate "C" < 'b' from docs where id in (1, 2) order by id

select pg_column_size(1), pg_typeof(1)

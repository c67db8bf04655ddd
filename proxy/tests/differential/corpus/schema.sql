# "T." is the schema of the types: none on the plain side, toastrack on the other.

create table docs(id int primary key, body T.text, short T.varchar(20), long T.varchar(5000),
  j T.json, d T.jsonb, b T.bytea, n int default 7, note text)

create table kv(k text primary key, v T.text, at int)

create table many(id serial, a T.text[], ds T.jsonb[], bs T.bytea[])

create schema other

create table other.docs(id int primary key, body text, short varchar(20), long varchar, j json, d jsonb)

# One name, two layouts: what fits one of the two must not be forced on the other.

create table twin(id int, v T.text, w T.jsonb, b T.bytea)

create table other.twin(id int, w int, v jsonb, b bytea)

insert into twin values (1, '@{big}', '@{json}', '@{bytes}')

create table other.plain(id int primary key, body text, b bytea)

create view docs_view as select id, body, d, b from docs

create function body_of(int) returns text language sql as 'select body from docs where id = $1'

create function docs_of(int) returns setof docs language sql as 'select * from docs where id <= $1 order by id'

create function plpgsql_body(which int) returns text language plpgsql as $f$
declare found_body text; begin select body into found_body from docs where id = which; return found_body || '!'; end $f$

create function put_body(int, text) returns void language sql as 'insert into docs(id, body) values ($1, $2)'

create table audited(id int primary key, body T.text, d T.jsonb)

create table audit(id int, old_body text, new_body text, size int)

create function audit_body() returns trigger language plpgsql as $f$
begin
  if tg_op = 'INSERT' then insert into audit values (new.id, null, new.body, length(new.body));
  else insert into audit values (new.id, old.body, new.body, length(new.body)); end if;
  return new;
end $f$

create trigger audited_body after insert or update on audited for each row execute function audit_body()

create function noisy(what text) returns text language plpgsql as $f$
begin raise notice 'noticed % characters', length(what); return what; end $f$

insert into docs(id, body, short, long, j, d, b, n, note) values
  (1, '@{big}', 'small', '@{uni}', '@{json}', '@{json}', '@{bytes}', 1, 'all large'),
  (2, 'a', 'b', 'c', '{"d":1}', '{"e": 2}', '\x00ff', 2, 'all small'),
  (3, null, null, null, null, null, null, 3, null),
  (4, '', '', '', '""', '""', '', 4, ''),
  (5, '@{quotes}', 'q''"\', '@{latin}', '@{json odd}', '@{json odd}', '@{bytes escape}', 5, 'quoted'),
  (6, '@{lookalike}', 'toast:', '@{prefix+}', '@{json lookalike}', '@{json lookalike}', '@{bytes magic}', 6, 'look-alikes'),
  (7, '@{at}', null, '@{at+1}', '@{json at}', '@{json at+1}', '@{bytes at+1}', 7, 'threshold'),
  (8, '@{big}', 'dup', '@{big}', '@{json}', '@{json}', '@{bytes}', 8, 'the same as 1')

insert into kv values ('one', '@{big}', 1), ('two', 'small', 2), ('three', null, 3)

insert into many(a, ds, bs) select array_agg(body order by id), array_agg(d order by id), array_agg(b order by id) from docs

insert into many(a) values (null), ('{}'), ('{x,NULL,"NULL"}')

insert into other.docs(id, body, d) values (1, '@{big}', '@{json}'), (2, 'small', '{}')

insert into other.plain values (1, 'x', null)

insert into audited values (1, '@{big}', '@{json}')

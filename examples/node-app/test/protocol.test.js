// Cursors, streams, transactions, errors, prepared statements and pools.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import pg from 'pg';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';
import { Pair } from './pair.js';
import { COLUMNS, prose } from './values.js';

const body = prose(20_000);
const large = COLUMNS.body.large;
const data = COLUMNS.data.document;
const raw = COLUMNS.raw['above the threshold'];

let pair;
before(async () => { pair = await Pair.open('protocol'); });
beforeEach(() => pair.clear());
after(() => pair.close());

async function fill(rows) {
  for (let n = 0; n < rows; n += 1) {
    await pair.run('insert into documents (id, body, data, raw) values ($1, $2, $3, $4)',
      [n, n % 3 ? `${n} ${body}` : `${n}`, data, raw], { name: 'fill' });
  }
}

test('a cursor reads a portal in parts', async () => {
  await fill(20);
  const rows = await pair.same(async (client) => {
    const cursor = client.query(new Cursor('select * from documents where id < $1 order by id', [15]));
    const seen = [];
    for (let part = await cursor.read(4); part.length > 0; part = await cursor.read(4)) seen.push(part);
    await cursor.close();
    return seen;
  });
  assert.deepEqual(rows.map((part) => part.length), [4, 4, 4, 3]);
});

test('a cursor is closed before its end', async () => {
  await fill(10);
  await pair.same(async (client) => {
    const cursor = client.query(new Cursor('select * from documents order by id'));
    const seen = await cursor.read(3);
    await cursor.close();
    return [seen, (await client.query('select body from documents where id = 7')).rows];
  });
});

test('a stream', async () => {
  await fill(20);
  const rows = await pair.same(async (client) => {
    const seen = [];
    for await (const row of client.query(new QueryStream('select * from documents order by id', [], { batchSize: 3 }))) {
      seen.push(row);
    }
    return seen;
  });
  assert.equal(rows.length, 20);
});

test('statements sent without waiting for each other', async () => {
  await pair.same((client) => Promise.all(Array.from({ length: 20 }, async (_, n) => {
    const inserted = await client.query('insert into documents (id, body) values ($1, $2) returning *', [n, `${n} ${body}`]);
    const { rows } = await client.query('select body from documents where id = $1', [n]);
    return [inserted.rows, rows];
  })));
  await pair.run('select * from documents order by id');
});

test('an error inside a transaction', async () => {
  await pair.run('begin');
  await pair.run('insert into documents (id, body) values (1, $1)', [body]);
  await pair.run('savepoint one');
  await pair.run('insert into documents (id, body) values (1, $1)', [large], { fails: '23505' });
  await pair.run('insert into documents (id, body) values (2, $1)', [large], { fails: '25P02' });
  await pair.run('select body from documents', [], { fails: '25P02' });
  await pair.run('rollback to savepoint one');
  await pair.run('insert into documents (id, body) values (2, $1) returning *', [large]);
  await pair.run('commit');
  await pair.run('begin');
  await pair.run('update documents set body = $1', ['gone']);
  await pair.run('rollback');
  await pair.run('select * from documents order by id');
});

test('named statements are used again', async () => {
  for (let n = 0; n < 6; n += 1) {
    await pair.run('insert into documents (id, body, data) values ($1, $2, $3) returning *',
      [n, `${n} ${large}`, data], { name: 'again' });
    await pair.run('update documents set body = $2 where id = $1 returning body', [n, body], { name: 'change' });
  }
  await pair.run('select * from documents order by id', [], { name: 'all' });
  await pair.run('select * from documents order by id', [], { name: 'all' });
});

test('upserts, multi-row inserts and data-modifying WITH', async () => {
  const upsert = `insert into documents (id, body, data) values ($1, $2, $3), ($4, $2, $3)
    on conflict (id) do update set body = excluded.body || '!', data = excluded.data, small = excluded.body returning *`;
  for (let n = 0; n < 3; n += 1) await pair.run(upsert, [n, body, data, n + 1]);
  await pair.run('with gone as (delete from documents where id = $1 returning *) select * from gone', [1]);
  await pair.run('insert into documents (id, body) select id + 100, body from documents returning *');
  await pair.run('update documents set body = $1, small = $1 where id = $2 returning *', [large, 2]);
  await pair.run('select * from documents order by id');
});

test('SQL that computes with large values', async () => {
  await fill(7);
  for (const text of [
    'select id, length(body), upper(left(body, 20)), md5(body), octet_length(raw) from documents order by id',
    "select id from documents where body like '%fox%' order by id",
    'select body, count(*) from documents group by body order by body',
    'select distinct data from documents',
    'select array_agg(body order by id), string_agg(body, $$,$$ order by id) from documents',
    "select id, data->>'title', data->'items'->0, data @> '{\"a\": 2}' from documents order by id",
    'select coalesce(body, note), case when id > 2 then body end from documents order by id',
    'select a.id from documents a join documents b using (body) order by 1',
    'select body from documents union select small from documents order by 1',
  ]) {
    await pair.run(text);
    await pair.run(text, [], { name: text.slice(0, 60) });
  }
});

test('several statements in one query', async () => {
  await fill(4);
  const results = await pair.run(
    "begin; select id, body from documents order by id; update documents set body = 'x' where id = 1; select * from documents order by id; commit");
  assert.equal(results.length, 5);
});

test('notifications and notices', async () => {
  await pair.same(async (client) => {
    const seen = [];
    const listen = (event) => seen.push([event.channel ?? event.severity, event.payload ?? event.message]);
    client.on('notification', listen);
    client.on('notice', listen);
    await client.query('listen shelf');
    await client.query("do $$ begin raise notice 'a notice of %', repeat('x', 5000); end $$");
    await client.query('select pg_notify($1, $2)', ['shelf', prose(5000)]);
    await client.query('select 1');
    client.off('notification', listen).off('notice', listen);
    await client.query('unlisten shelf');
    assert.equal(seen.length, 2);
    return seen;
  });
});

test('a pool of connections', async () => {
  const rows = await pair.same(async (_, connectionString) => {
    const pool = new pg.Pool({ connectionString, max: 8 });
    await Promise.all(Array.from({ length: 40 }, (_, n) =>
      pool.query('insert into documents (id, body, data) values ($1, $2, $3)', [n, `${n} ${body}`, data])));
    const { rows } = await pool.query('select * from documents order by id');
    await pool.end();
    return rows;
  });
  assert.equal(rows.length, 40);
});

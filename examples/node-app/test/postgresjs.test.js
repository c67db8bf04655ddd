// postgres.js: inferred parameter types, pipelined statements, cursors, COPY streams, savepoints.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import postgres from 'postgres';
import { Pair, isReference } from './pair.js';
import { COLUMNS, prose } from './values.js';

const body = prose(20_000);
const large = COLUMNS.body.large;
const data = COLUMNS.data.document;
const raw = COLUMNS.raw['above the threshold'];
// jsonb and json as the text that came, so that nothing is made equal by parsing.
const asText = { to: 3802, from: [114, 3802], serialize: (value) => value, parse: (value) => value };

let pair;
let sides;
before(async () => {
  pair = await Pair.open('postgresjs');
  const connect = (url) => postgres(url, { max: 1, types: { json: asText }, onnotice: () => {} });
  sides = [connect(pair.urls.plain), connect(pair.urls.twin)];
});
beforeEach(() => pair.clear());
after(async () => {
  await Promise.all(sides.map((sql) => sql.end()));
  await pair.close();
});

/** Rows, columns, counts and command tag; or the error. */
async function outcome(action, sql) {
  try {
    return describe(await action(sql));
  } catch (error) {
    if (!(error instanceof postgres.PostgresError)) throw error;
    return { failed: error.code, message: error.message, constraint: error.constraint_name };
  }
}

function describe(result) {
  if (!result?.columns) return result;
  return {
    rows: [...result],
    columns: result.columns.map(({ name, type }) => ({ name, type })),
    types: result.statement?.types,
    count: result.count,
    command: result.command,
  };
}

/** Does the same on both sides and checks that the outcome is the same. */
async function same(action, fails) {
  const [plain, twin] = [await outcome(action, sides[0]), await outcome(action, sides[1])];
  try {
    assert.deepStrictEqual(twin, plain);
  } catch {
    const short = (value) => JSON.stringify(value)?.slice(0, 600);
    assert.fail(`plain: ${short(plain)}\n twin: ${short(twin)}`);
  }
  assert.equal(plain?.failed, fails, JSON.stringify(plain)?.slice(0, 300));
  return plain;
}

for (const [column, values] of Object.entries(COLUMNS)) {
  for (const [name, value] of Object.entries(values)) {
    test(`${column}, ${name}`, async () => {
      await same((sql) => sql`insert into documents ${sql({ id: 1, [column]: value })} returning *`);
      await same((sql) => sql`select ${sql(column)}, octet_length(${sql(column)}::text) from documents where id = ${1}`);
      await same((sql) => sql`update documents set ${sql({ [column]: value })} where id = ${1} returning *`);
      await same((sql) => sql`select * from documents`.simple());
      await same((sql) => sql`select * from documents`.raw());
    });
  }
}

test('large values leave the row', async (context) => {
  if (!pair.offloads) return context.skip('Toastrack is not installed');
  const row = { body, note: prose(2900), data, verbatim: data, raw: COLUMNS.raw.mebibyte };
  await same((sql) => sql`insert into documents ${sql([{ id: 1, ...row }, { id: 2, ...row }])}`);
  for (const column of Object.keys(row)) {
    const stored = await pair.stored(column);
    assert.equal(stored.length, 2);
    for (const text of stored) assert.ok(isReference(column, text), text.slice(0, 80));
  }
});

const rows = Array.from({ length: 30 }, (_, n) => ({ id: n, body: n % 3 ? `${n} ${body}` : `${n}`, data, raw }));
const fill = (sql) => sql`insert into documents ${sql(rows)}`;

test('statements sent without waiting for each other', async () => {
  await same((sql) => Promise.all(rows.map((row) => sql`insert into documents ${sql(row)} returning id, body`)));
  await same((sql) => Promise.all(rows.flatMap(({ id }) => [
    sql`select * from documents where id = ${id}`,
    sql`update documents set body = ${large} where id = ${id} returning body`,
  ])));
  await same((sql) => Promise.allSettled([
    sql`select body from documents where id = 1`,
    sql`insert into documents ${sql(rows[1])}`,
    sql`select body from documents where id = 2`,
  ]).then((settled) => settled.map(({ status, value, reason }) => [status, describe(value), reason?.code])));
});

test('cursors', async () => {
  await same(fill);
  const parts = await same(async (sql) => {
    const seen = [];
    for await (const part of sql`select * from documents where id < ${25} order by id`.cursor(10)) seen.push([...part]);
    return seen;
  });
  assert.deepEqual(parts.map((part) => part.length), [10, 10, 5]);
  await same(async (sql) => {
    const seen = [];
    await sql`select id, body from documents order by id`.cursor(3, (part) => {
      seen.push([...part]);
      return seen.length === 3 ? sql.CLOSE : undefined;
    });
    seen.push([...await sql`select body from documents where id = 4`]);
    return seen;
  });
  await same(async (sql) => {
    const seen = [];
    await sql`select * from documents order by id`.forEach((row) => seen.push(row));
    return seen;
  });
});

test('copy in and out as streams', async () => {
  await same(fill);
  // On connections of their own: postgres.js leaves one unusable after a COPY TO (straight, too).
  const alone = async (url, action) => {
    const sql = postgres(url, { max: 1 });
    try {
      return await action(sql);
    } finally {
      await sql.end({ timeout: 0 });
    }
  };
  const read = async (sql) => {
    const parts = [];
    for await (const part of await sql`copy (select * from documents order by id) to stdout`.readable()) parts.push(part);
    return Buffer.concat(parts);
  };
  const texts = [];
  for (const url of [pair.urls.plain, pair.urls.twin]) texts.push(await alone(url, read));
  assert.ok(texts[0].equals(texts[1]) && texts[0].length > 30 * 10_000);
  await same((sql) => sql`truncate documents`);
  const parts = Array.from({ length: Math.ceil(texts[0].length / 7777) }, (_, n) => texts[0].subarray(n * 7777, (n + 1) * 7777));
  for (const url of [pair.urls.plain, pair.urls.twin]) {
    await alone(url, async (sql) => pipeline(Readable.from(parts), await sql`copy documents from stdin`.writable()));
  }
  const { rows: copied } = await same((sql) => sql`select * from documents order by id`);
  assert.equal(copied.length, 30);
});

test('transactions and savepoints', async () => {
  await same((sql) => sql.begin(async (sql) => {
    const seen = [];
    await sql`insert into documents ${sql(rows[1])}`;
    await sql.savepoint(async (sql) => {
      seen.push([...await sql`update documents set body = ${large} returning body`]);
      await sql`insert into documents ${sql(rows[1])}`;
    }).catch((error) => seen.push(error.code));
    seen.push([...await sql`select * from documents`]);
    return seen;
  }));
  await same((sql) => sql.begin('isolation level serializable', (sql) => [
    sql`insert into documents ${sql(rows[2])} returning body`,
    sql`update documents set body = ${large} where id = 1 returning body`,
    sql`select 1 / 0`,
  ]), '22012');
  await same((sql) => sql`select * from documents order by id`);
});

test('arrays', async () => {
  const bodies = [body, null, '', 'NULL, {"a"} \\ ', COLUMNS.body['like a reference']];
  await same((sql) => sql`insert into documents (id, body)
    select * from unnest(${[1, 2, 3, 4, 5]}::int[], ${bodies}::text[]) returning *`);
  await same((sql) => sql`select id from documents where body = any(${bodies}) order by id`);
  await same((sql) => sql`select id from documents where body in ${sql([body, 'x'])}`);
  await same((sql) => sql`select array_agg(body order by id) as bodies from documents`);
  await same((sql) => sql`select array[data] as data, array[raw] as raw from documents`);
});

test('statements described, prepared again after DDL, and not prepared', async () => {
  await same(fill);
  await same((sql) => sql`insert into documents (id, body, data, raw) values (${100}, ${body}, ${data}, ${raw})`
    .describe().then(({ string, types }) => [string, types]));
  await same((sql) => sql`select * from documents where id = ${1}`
    .describe().then(({ types, columns }) => [types, columns.map(({ name, type }) => [name, type])]));
  const select = (sql) => sql`select * from documents where id = ${4}`;
  for (let n = 0; n < 3; n += 1) await same(select);
  await same((sql) => sql`alter table documents add column later text default 'later'`);
  await same(select);
  await same(select);
  await same((sql) => sql`alter table documents drop column later`);
  await same((sql) => sql.unsafe('select id, body from documents where id = $1', [5], { prepare: true }));
  await same((sql) => sql.unsafe('select id, body from documents where id = $1', [6]));
  await same((sql) => sql.unsafe('select id, body from documents where id = 7; select data from documents where id = 7')
    .then((results) => results.map(describe)));
});

test('cancelled queries', async () => {
  await same(async (sql) => {
    const query = sql`select pg_sleep(20)`;
    const timer = setTimeout(() => query.cancel(), 200);
    try {
      await query;
    } finally {
      clearTimeout(timer);
    }
  }, '57014');
  await same((sql) => sql`select 1 as one`);
});

test('notifications', async () => {
  for (const url of [pair.urls.plain, pair.urls.twin]) {
    const sql = postgres(url, { max: 1 });
    const received = [];
    let heard;
    const both = new Promise((resolve) => { heard = resolve; });
    const { unlisten } = await sql.listen('shelf', (payload) => {
      if (received.push(payload) === 2) heard();
    });
    await sql.notify('shelf', prose(5000));
    await sql.notify('shelf', 'short');
    await both;
    assert.deepEqual(received, [prose(5000), 'short']);
    await unlisten();
    await sql.end();
  }
});

test('a pool of connections', async () => {
  const results = await Promise.all([pair.urls.plain, pair.urls.twin].map(async (url) => {
    const sql = postgres(url, { max: 6 });
    await Promise.all(rows.map((row) => sql`insert into documents ${sql(row)}`));
    const found = await Promise.all(rows.map(({ id }) => sql`select * from documents where id = ${id}`));
    await sql.end();
    return found.map((part) => [...part]);
  }));
  assert.deepStrictEqual(results[1], results[0]);
  assert.equal(results[0].length, 30);
});

for (const [column, value, fails] of [
  ['data', `{"a": ${'x'.repeat(5000)}`, '22P02'],
  ['verbatim', `[1, 2${' '.repeat(5000)}`, '22P02'],
  ['note', 'x'.repeat(3001), '22001'],
]) {
  test(`${column}: ${fails} at the write`, async () => {
    await same((sql) => sql`insert into documents ${sql({ id: 1, [column]: value })}`, fails);
    await same((sql) => sql`select count(*) from documents`);
  });
}

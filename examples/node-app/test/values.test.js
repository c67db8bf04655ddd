// Each value, in each column type, by each way the driver can send and fetch it.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import pg from 'pg';
import { Pair, isReference } from './pair.js';
import { COLUMNS, prose } from './values.js';

let pair;
before(async () => { pair = await Pair.open('values'); });
beforeEach(() => pair.clear());
after(() => pair.close());

/** The value as a literal of a simple query. */
function literal(value) {
  if (value === null) return 'null';
  return Buffer.isBuffer(value) ? `'\\x${value.toString('hex')}'` : pg.escapeLiteral(value);
}

for (const [column, values] of Object.entries(COLUMNS)) {
  for (const [name, value] of Object.entries(values)) {
    test(`${column}, ${name}: parameters`, async () => {
      const inserted = await pair.run(
        `insert into documents (id, ${column}) values ($1, $2) returning id, ${column}`, [1, value]);
      assert.equal(inserted.rowCount, 1);
      await pair.run(`select ${column} from documents`);
      for (let n = 0; n < 2; n += 1) {
        await pair.run(`select * from documents where id = $1`, [1], { name: `select ${column} ${name}` });
      }
      await pair.run(`update documents set ${column} = $1 where id = $2 returning *`, [value, 1]);
      await pair.run(`select ${column}, octet_length(${column}::text) from documents`);
      await pair.same(async (client) => (await client.query(`select ${column} from documents`)).rows);
    });

    test(`${column}, ${name}: literals`, async () => {
      await pair.run(`insert into documents (id, ${column}) values (1, ${literal(value)}) returning *`);
      await pair.run(`update documents set ${column} = ${literal(value)}; select ${column} from documents`);
    });
  }
}

for (const [column, name] of [['body', 'prose'], ['note', 'above the threshold'], ['data', 'document'],
  ['verbatim', 'document'], ['raw', 'above the threshold']]) {
  test(`${column}: large values leave the row`, async (context) => {
    if (!pair.offloads) return context.skip('Toastrack is not installed');
    const value = COLUMNS[column][name];
    await pair.run(`insert into documents (id, ${column}) values ($1, $2)`, [1, value]);
    await pair.run(`insert into documents (id, ${column}) values (2, ${literal(value)})`);
    const stored = await pair.stored(column);
    assert.equal(stored.length, 2);
    for (const text of stored) assert.ok(isReference(column, text), text.slice(0, 80));
  });
}

test('objects, arrays and buffers as the driver turns them into parameters', async () => {
  const data = { b: [1, 2.5, null, true], a: { text: prose(5000) } };
  await pair.run('insert into documents (id, data, verbatim, raw) values ($1, $2, $3, $4) returning *',
    [1, data, JSON.stringify([data]), Buffer.from(prose(5000))]);
  await pair.run('insert into documents (id, body) select * from unnest($1::int[], $2::text[]) returning *',
    [[2, 3, 4], [prose(4000), null, 'NULL, {"a"} \\ ']]);
  await pair.run('select id, body from documents where body = any($1)', [[prose(4000), 'x']]);
  await pair.same(async (client) => (await client.query('select * from documents order by id')).rows);
});

test('binary results', async () => {
  await pair.run('insert into documents (id, body, note) values (1, $1, $2)', [prose(9000), prose(2500)]);
  await pair.run('select id, body, note, small from documents', [], { binary: true });
  await pair.run('select id, body, note, small from documents where id = $1', [1], { binary: true, name: 'binary' });
});

for (const [column, value, fails] of [
  ['data', `{"a": ${'x'.repeat(5000)}`, '22P02'],
  ['data', `{"a": "\\u0000${'x'.repeat(5000)}"}`, '22P05'],
  ['verbatim', `[1, 2${' '.repeat(5000)}`, '22P02'],
  ['note', 'x'.repeat(3001), '22001'],
  ['body', `nul \0 ${'x'.repeat(5000)}`, '22021'],
]) {
  test(`${column}: ${fails} at the write`, async () => {
    await pair.run(`insert into documents (id, ${column}) values (1, $1)`, [value], { fails });
    await pair.run('select count(*) from documents');
  });
}

test('the comparison can fail', async () => {
  await pair.plain.query('insert into documents (id, body) values (1, $1)', [prose(5000)]);
  await pair.twin.query('insert into documents (id, body) values (1, $1)', [`${prose(4999)}!`]);
  await assert.rejects(pair.run('select body from documents'), assert.AssertionError);
});

// Drizzle over node-postgres: the queries that an ORM writes, on a table of its own.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { and, arrayContains, count, desc, eq, gt, ilike, inArray, isNull, like, max, ne, relations, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { customType, integer, json, jsonb, pgTable, text, varchar } from 'drizzle-orm/pg-core';
import { Pair, isReference } from './pair.js';
import { COLUMNS, prose } from './values.js';

const bytea = customType({ dataType: () => 'bytea' });
const documents = pgTable('documents', {
  id: integer().primaryKey(),
  body: text(),
  note: varchar({ length: 3000 }),
  data: jsonb(),
  verbatim: json(),
  raw: bytea(),
  small: text(),
});
const shelf = pgTable('shelf', {
  id: integer().generatedAlwaysAsIdentity().primaryKey(),
  name: varchar({ length: 200 }).notNull().unique(),
  abstract: varchar({ length: 4000 }),
  body: text(),
  data: jsonb(),
  content: bytea(),
  version: integer().notNull().default(1),
});
const related = relations(shelf, ({ one }) => ({
  document: one(documents, { fields: [shelf.version], references: [documents.id] }),
}));
const schema = { documents, shelf, related };

const body = prose(20_000);
const large = COLUMNS.body.large;
const data = JSON.parse(COLUMNS.data.document);
const raw = COLUMNS.raw['above the threshold'];
const rows = Array.from({ length: 12 }, (_, n) => ({
  id: n,
  body: n % 3 ? `${n} ${body}` : null,
  note: n % 2 ? prose(2900) : 'short',
  data: { ...data, n },
  verbatim: [data, n],
  raw: n % 4 ? raw : null,
  small: `${n}`,
}));

let pair;
before(async () => { pair = await Pair.open('drizzle'); });
beforeEach(() => pair.clear());
after(() => pair.close());

/** Does the same through Drizzle on both sides; Drizzle wraps the driver's error. */
const same = (action) => pair.same(async (client) => {
  try {
    return await action(drizzle(client, { schema }));
  } catch (error) {
    throw error.cause ?? error;
  }
});
const fill = () => same((db) => db.insert(documents).values(rows).returning());

test('rows inserted in one statement come back and leave the table', async () => {
  const inserted = await fill();
  assert.deepStrictEqual(inserted, rows);
  await same((db) => db.select().from(documents).orderBy(documents.id));
  if (!pair.offloads) return;
  for (const column of ['body', 'data', 'verbatim', 'raw']) {
    const stored = await pair.stored(column);
    assert.ok(stored.length >= 8);
    for (const value of stored) assert.ok(isReference(column, value), value.slice(0, 80));
  }
});

const queries = {
  equality: (db) => db.select({ id: documents.id }).from(documents).where(eq(documents.body, `1 ${body}`)),
  'not equal': (db) => db.select().from(documents).where(and(ne(documents.body, `1 ${body}`), gt(documents.id, 5))),
  like: (db) => db.select().from(documents).where(like(documents.body, '4%fox%')),
  ilike: (db) => db.select({ id: documents.id }).from(documents).where(ilike(documents.note, '%FOX%')).orderBy(documents.id),
  'in a list': (db) => db.select().from(documents).where(inArray(documents.body, [`1 ${body}`, `2 ${body}`])).orderBy(documents.id),
  null: (db) => db.select().from(documents).where(isNull(documents.body)).orderBy(documents.id),
  jsonb: (db) => db.select({ id: documents.id, title: sql`${documents.data}->>'title'` }).from(documents)
    .where(sql`${documents.data} @> ${JSON.stringify({ n: 3 })}::jsonb`),
  'jsonb equality': (db) => db.select({ id: documents.id }).from(documents).where(eq(documents.data, { ...data, n: 7 })),
  'array literal': (db) => db.select({ id: documents.id }).from(documents)
    .where(arrayContains(sql`array[${documents.body}, ${documents.small}]`, sql`array[${'5'}]`)),
  aggregates: (db) => db.select({ n: count(), last: max(documents.body) }).from(documents),
  group: (db) => db.select({ note: documents.note, n: count() }).from(documents).groupBy(documents.note).orderBy(desc(documents.note)),
  distinct: (db) => db.selectDistinct({ note: documents.note }).from(documents).orderBy(documents.note),
  limit: (db) => db.select().from(documents).orderBy(desc(documents.body), documents.id).limit(3).offset(2),
  bytes: (db) => db.select({ id: documents.id }).from(documents).where(eq(documents.raw, raw)).orderBy(documents.id),
  relational: (db) => db.query.documents.findMany({
    columns: { id: true, body: true, data: true }, orderBy: documents.id, extras: { size: sql`length(body)`.as('size') },
  }),
  first: (db) => db.query.documents.findFirst({ where: eq(documents.small, '5') }),
  with: (db) => {
    const big = db.$with('big').as(db.select().from(documents).where(sql`length(${documents.body}) > 3000`));
    return db.with(big).select().from(big).orderBy(big.id);
  },
  subquery: (db) => db.select().from(db.select({ id: documents.id, body: documents.body }).from(documents).as('inner'))
    .orderBy(sql`1`),
  join: (db) => db.select().from(documents).leftJoin(shelf, eq(shelf.version, documents.id)).orderBy(documents.id),
};

test('queries', async () => {
  await fill();
  await same((db) => db.insert(shelf).values([{ name: 'one', body, data, content: raw, version: 1 }, { name: 'two', version: 5 }]).returning());
  for (const [name, query] of Object.entries(queries)) {
    const found = await same(query);
    assert.ok(!found.failed && found.length !== 0, name);
  }
});

test('upserts', async () => {
  for (const text of [body, large, 'short', null]) {
    await same((db) => db.insert(shelf).values({ name: 'one', body: text, data: { text }, content: raw }).onConflictDoUpdate({
      target: shelf.name,
      set: { body: sql`excluded.body`, data: sql`excluded.data`, version: sql`${shelf.version} + 1` },
    }).returning());
    await same((db) => db.insert(shelf).values({ name: 'one', body: 'ignored' }).onConflictDoNothing().returning());
  }
});

test('updates and deletes', async () => {
  await fill();
  await same((db) => db.update(documents).set({ body: large, data: { large } }).where(gt(documents.id, 6)).returning());
  await same((db) => db.update(documents).set({ body: sql`${documents.body} || ${'!'}` }).where(eq(documents.id, 1)).returning());
  await same((db) => db.update(documents).set({ body: documents.note, raw: null }).where(eq(documents.id, 2)).returning());
  await same((db) => db.delete(documents).where(eq(documents.body, large)).returning());
  await same((db) => db.select().from(documents).orderBy(documents.id));
});

test('prepared statements', async () => {
  await fill();
  for (let n = 0; n < 7; n += 1) {
    await same((db) => db.select().from(documents).where(eq(documents.id, sql.placeholder('id'))).prepare('by_id').execute({ id: n }));
    await same((db) => db.insert(documents).values({ id: sql.placeholder('id'), body: sql.placeholder('body') }).returning()
      .prepare('add').execute({ id: 100 + n, body: `${n} ${large}` }));
  }
});

test('transactions and savepoints', async () => {
  const seen = await same(async (db) => {
    const seen = [];
    await db.transaction(async (tx) => {
      await tx.insert(documents).values(rows[1]);
      await tx.transaction(async (inner) => {
        await inner.update(documents).set({ body: large });
        seen.push(await inner.select().from(documents));
        await inner.insert(documents).values(rows[1]);
      }).catch((error) => seen.push((error.cause ?? error).code));
      seen.push(await tx.select().from(documents));
    }, { isolationLevel: 'repeatable read' });
    await db.transaction(async (tx) => {
      await tx.update(documents).set({ body: 'gone' });
      tx.rollback();
    }).catch((error) => seen.push(error.name));
    seen.push(await db.select().from(documents));
    return seen;
  });
  assert.equal(seen[1], '23505');
});

for (const [column, value, code] of [['note', 'x'.repeat(3001), '22001'], ['data', { text: `\0${'x'.repeat(5000)}` }, '22P05']]) {
  test(`${column}: ${code} at the write`, async () => {
    const { failed } = await same((db) => db.insert(documents).values({ id: 1, [column]: value }));
    assert.equal(failed.code, code);
  });
}

// Every test runs the same statements on a plain table and on its twin with offloaded columns.
//
// DIRECT_URL names Postgres, TOASTRACK_URL the same server through Toastrack. The tables have the
// same names in two schemas, chosen by search_path, so the statements are the same to the byte.

import assert from 'node:assert/strict';
import pg from 'pg';
import { createTables } from '../src/shelf.js';

const TABLES = `
  create table documents (
    id int primary key, body text, note varchar(3000), data jsonb, verbatim json, raw bytea, small text
  )`;

// What Toastrack calls moving a column: a change of type, here by SQL.
const OFFLOADED = {
  documents: { body: 'text', note: 'varchar(3000)', data: 'jsonb', verbatim: 'json', raw: 'bytea' },
  shelf: { abstract: 'varchar(4000)', body: 'text', data: 'jsonb', content: 'bytea' },
};

const REFERENCES = {
  body: ['toast:', 62],
  note: ['toast:', 62],
  data: ['"toast:', 64],
  verbatim: ['"toast:', 64],
  raw: ['\\xf7544f4153540d0a', 102],
};

function url(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this through scripts/with-servers.sh`);
  return value;
}

function inSchema(base, schema) {
  return `${base}${base.includes('?') ? '&' : '?'}options=-c%20search_path%3D${schema}`;
}

async function connect(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

/** Texts as they arrived, so that two values that a parser would make equal still differ. */
const unparsed = { getTypeParser: () => (value) => value };

/** All that the driver lets one see of a result, or of an error. */
async function outcome(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return { failed: { code: error.code, message: error.message, constraint: error.constraint } };
  }
}

function describe(result) {
  if (Array.isArray(result)) return result.map(describe);
  const { command, rowCount, rows, fields } = result;
  return {
    command,
    rowCount,
    rows,
    fields: fields.map(({ name, dataTypeID, dataTypeSize, dataTypeModifier, format }) => ({
      name, dataTypeID, dataTypeSize, dataTypeModifier, format,
    })),
  };
}

/** A connection to each side, with tables of its own; `close` removes them. */
export class Pair {
  static async open(name) {
    const pair = new Pair();
    pair.schemas = { plain: `node_${name}_plain`, twin: `node_${name}_twin` };
    pair.direct = await connect(url('DIRECT_URL'));
    for (const schema of Object.values(pair.schemas)) {
      await pair.direct.query(`drop schema if exists ${schema} cascade; create schema ${schema}`);
      const creating = await connect(inSchema(url('DIRECT_URL'), schema));
      await creating.query(TABLES);
      await createTables(creating);
      await creating.end();
    }
    pair.offloads = await pair.moveColumns();
    pair.urls = {
      plain: inSchema(url('DIRECT_URL'), pair.schemas.plain),
      twin: inSchema(url('TOASTRACK_URL'), pair.schemas.twin),
    };
    pair.plain = await connect(pair.urls.plain);
    pair.twin = await connect(pair.urls.twin);
    return pair;
  }

  /** Gives the twin's columns their offloaded types; false where Toastrack is not installed. */
  async moveColumns() {
    const { rows } = await this.direct.query("select to_regtype('toastrack.text') is not null as found");
    if (!rows[0].found) {
      assert.equal(url('DIRECT_URL'), url('TOASTRACK_URL'), 'the schema toastrack is not installed');
      return false;
    }
    for (const [table, columns] of Object.entries(OFFLOADED)) {
      const changes = Object.entries(columns).map(([column, type]) => `alter ${column} type toastrack.${type}`);
      await this.direct.query(`alter table ${this.schemas.twin}.${table} ${changes.join(', ')}`);
    }
    return true;
  }

  async close() {
    await this.plain.end();
    await this.twin.end();
    await this.direct.query(Object.values(this.schemas).map((schema) => `drop schema ${schema} cascade`).join(';'));
    await this.direct.end();
  }

  /** Does the same on both sides, checks that the outcome is the same, and returns it. */
  async same(action) {
    const plain = await outcome(() => action(this.plain, this.urls.plain));
    const twin = await outcome(() => action(this.twin, this.urls.twin));
    try {
      assert.deepStrictEqual(twin, plain);
    } catch {
      // The difference of two large values would fill the screen.
      const short = (value) => JSON.stringify(value)?.slice(0, 600);
      assert.fail(`plain: ${short(plain)}\n twin: ${short(twin)}`);
    }
    return plain;
  }

  /** Executes one statement on both sides; it must work unless `fails` names its SQLSTATE. */
  async run(text, values, { fails, ...options } = {}) {
    const result = await this.same(async (client) =>
      describe(await client.query({ text, values, types: unparsed, ...options })),
    );
    assert.equal(result.failed?.code, fails, `${JSON.stringify(result).slice(0, 300)} from: ${text.slice(0, 200)}`);
    return result;
  }

  async clear() {
    await this.run('truncate documents');
    await this.run('truncate shelf restart identity');
  }

  /** What stands in a column of the twin, read past Toastrack. */
  async stored(column) {
    const { rows } = await this.direct.query({
      text: `select ${column} as stored from ${this.schemas.twin}.documents where ${column} is not null order by id`,
      types: unparsed,
    });
    return rows.map((row) => row.stored);
  }
}

/** Whether what stands in the row has the look of a reference of the column's type. */
export function isReference(column, stored) {
  const [start, length] = REFERENCES[column];
  return stored.startsWith(start) && stored.length === length;
}

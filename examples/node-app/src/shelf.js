// A small document shelf: what the application does, apart from reading the command line.
// Nothing here knows of Toastrack; the connection string decides where the documents live.

import { basename, extname } from 'node:path';
import { readFile } from 'node:fs/promises';
import QueryStream from 'pg-query-stream';

export const TABLES = `
  create table if not exists shelf (
    id int generated always as identity primary key,
    name varchar(200) not null unique,
    abstract varchar(4000),
    body text,
    data jsonb,
    content bytea,
    version int not null default 1
  )`;

/** Creates what is missing. */
export async function createTables(client) {
  await client.query(TABLES);
}

/** The columns of one file: JSON, text, or bytes where it is neither. */
export async function fromFile(path) {
  const bytes = await readFile(path);
  const document = { name: basename(path), abstract: null, body: null, data: null, content: null };
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { ...document, content: bytes };
  }
  if (text.includes('\0')) return { ...document, content: bytes };
  if (extname(path) === '.json') return { ...document, data: JSON.parse(text) };
  return { ...document, body: text, abstract: [...text.slice(0, 4000)].slice(0, 2000).join('') };
}

/** Adds a document, or replaces the one of the same name; returns its row. */
export async function add(client, { name, abstract, body, data, content }) {
  const { rows } = await client.query({
    name: 'add',
    text: `insert into shelf (name, abstract, body, data, content) values ($1, $2, $3, $4, $5)
           on conflict (name) do update set abstract = excluded.abstract, body = excluded.body,
             data = excluded.data, content = excluded.content, version = shelf.version + 1
           returning *`,
    values: [name, abstract, body, data === null ? null : JSON.stringify(data), content],
  });
  return rows[0];
}

/** Name, kind and size in bytes of each document. */
export async function list(client) {
  const { rows } = await client.query(`
    select name,
           case when body is not null then 'text' when data is not null then 'json' else 'binary' end as kind,
           coalesce(octet_length(body), octet_length(content), octet_length(data::text)) as bytes
    from shelf order by name`);
  return rows;
}

/** The document as a file holds it, or null. */
export async function show(client, name) {
  const { rows } = await client.query('select body, data, content from shelf where name = $1', [name]);
  if (rows.length === 0) return null;
  const [{ body, data, content }] = rows;
  return content ?? Buffer.from(data === null ? (body ?? '') : JSON.stringify(data));
}

/** The names of the documents that mention a word. */
export async function search(client, word) {
  const { rows } = await client.query(
    "select name from shelf where body ilike '%' || $1 || '%' or data->>'title' ilike '%' || $1 || '%' order by name",
    [word],
  );
  return rows.map((row) => row.name);
}

/** All documents, one at a time. */
export async function* all(client) {
  yield* client.query(new QueryStream('select * from shelf order by name', [], { batchSize: 3 }));
}

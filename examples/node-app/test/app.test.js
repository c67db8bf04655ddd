// The application itself, run as a user runs it, once for each side.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Pair } from './pair.js';
import { COLUMNS, prose } from './values.js';

const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
let pair;
let directory;
before(async () => {
  pair = await Pair.open('app');
  directory = mkdtempSync(join(tmpdir(), 'shelf-'));
});
after(async () => {
  await pair.close();
  rmSync(directory, { recursive: true });
});

test('the same commands give the same output', async () => {
  const files = {
    'prose.txt': prose(300_000),
    'short.txt': 'short',
    'unicode.txt': '日本語 😀 é '.repeat(3000),
    'document.json': COLUMNS.data.large,
    'picture.bin': COLUMNS.raw.mebibyte,
  };
  const paths = Object.keys(files).map((name) => join(directory, name));
  const output = await pair.same((_, url) => {
    const shelf = (...words) => execFileSync(process.execPath, [main, ...words], {
      env: { ...process.env, DATABASE_URL: url },
      maxBuffer: 1 << 26,
    });
    for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
    const seen = [shelf('init'), shelf('add', ...paths), shelf('list'), shelf('search', 'lazy dog')];
    for (const name of Object.keys(files)) seen.push(shelf('show', name));
    writeFileSync(join(directory, 'prose.txt'), 'now short');
    return [...seen, shelf('add', paths[0]), shelf('show', 'prose.txt'), shelf('export')];
  });
  assert.equal(output[3].toString(), 'prose.txt\n');
  assert.equal(output[4].toString(), files['prose.txt']);
  assert.ok(output[8].equals(files['picture.bin']));
  assert.equal(output[9].toString(), 'prose.txt\tversion 2\n');
});

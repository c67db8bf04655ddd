// The command line: node src/main.js init | add FILE... | list | show NAME | search WORD | export

import pg from 'pg';
import * as shelf from './shelf.js';

const commands = {
  init: (client) => shelf.createTables(client),
  async add(client, ...paths) {
    for (const path of paths) {
      const row = await shelf.add(client, await shelf.fromFile(path));
      console.log(`${row.name}\tversion ${row.version}`);
    }
  },
  async list(client) {
    for (const { name, kind, bytes } of await shelf.list(client)) console.log(`${name}\t${kind}\t${bytes}`);
  },
  async show(client, name) {
    const document = await shelf.show(client, name);
    if (document === null) throw new Error(`no document is called ${name}`);
    process.stdout.write(document);
  },
  async search(client, word) {
    for (const name of await shelf.search(client, word)) console.log(name);
  },
  async export(client) {
    for await (const row of shelf.all(client)) console.log(JSON.stringify(row));
  },
};

async function main([command, ...rest]) {
  const run = Object.hasOwn(commands, command ?? '') ? commands[command] : null;
  if (run === null) throw new Error(`use: node src/main.js ${Object.keys(commands).join(' | ')}`);
  if (!process.env.DATABASE_URL) throw new Error('DATABASE_URL is not set: postgresql://user@host:port/database');
  const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  try {
    await run(client, ...rest);
  } finally {
    await client.end();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
});

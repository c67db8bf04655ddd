// Cuts data.json of @mdn/browser-compat-data into one file per interface, property, element or
// header: split-compat-data.js DATA_JSON DIRECTORY
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const [source, directory] = process.argv.slice(2);
const data = JSON.parse(fs.readFileSync(source, 'utf8'));

// Below these names the documents lie one level deeper than elsewhere.
const deeper = new Set(['css', 'html', 'http', 'javascript', 'svg', 'webdriver', 'webextensions']);

function write(names, value) {
  const file = path.join(directory, names[0], `${names.slice(1).join('.').replace(/[^\w.-]/g, '_')}.json`);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, JSON.stringify(value));
}

for (const [area, members] of Object.entries(data)) {
  if (area === '__meta') continue;
  for (const [name, value] of Object.entries(members)) {
    if (!deeper.has(area)) {
      write([area, name], value);
      continue;
    }
    for (const [inner, document] of Object.entries(value)) {
      write([area, name, inner], document);
    }
  }
}

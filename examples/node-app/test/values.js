// The values that every column type is tried with.

const THRESHOLD = 2048;
const MIB = 1 << 20;
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

// A small generator with a seed, so that a failure can be repeated.
let state = 20241201;
function next() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state >>> 8;
}

/** Text that does not compress. */
export function noise(size) {
  return Array.from({ length: size }, () => BASE64[next() % 64]).join('');
}

/** Text that compresses. */
export function prose(size) {
  const text = 'The quick brown fox jumps over the lazy dog, and it\'s "quoted".\n';
  return text.repeat(Math.ceil(size / text.length)).slice(0, size);
}

function noiseBytes(size) {
  return Buffer.from(Array.from({ length: size }, () => next() % 256));
}

const likeAReference = `toast:${noise(56)}`;

const texts = {
  null: null,
  empty: '',
  one: 'a',
  'below the threshold': noise(THRESHOLD - 1),
  threshold: noise(THRESHOLD),
  'above the threshold': noise(THRESHOLD + 1),
  prose: prose(20_000),
  large: noise(65_536),
  mebibyte: noise(MIB),
  unicode: 'naïve café, €, 日本語, 😀, e\u0301, \u2028, \ufeff; '.repeat(300),
  quotes: 'it\'s "quoted" \\ back\\\\slash $$dollar$$ E\'\\n\' %s $1 ? :name'.repeat(100),
  control: 'tab\there\nline\r\nbell\x07 escape\x1b del\x7f'.repeat(200),
  'like a reference': likeAReference,
  prefix: 'toast:',
  'prefix and more': `toast:${prose(5000)}`,
};

const document = {
  zebra: 1,
  a: 2,
  title: 'it\'s a "document"',
  items: Array.from({ length: 200 }, (_, n) => ({ name: `item ${n}`, price: n * 1.25, tags: ['a', 'b'] })),
};

const jsons = {
  null: null,
  'json null': 'null',
  number: '2.561422288066971e+16',
  'empty object': '{}',
  string: JSON.stringify(noise(5000)),
  'like a reference': JSON.stringify(likeAReference),
  document: JSON.stringify(document),
  spaced: JSON.stringify(document, null, 4),
  large: JSON.stringify({ all: Array.from({ length: 50 }, () => document) }),
  'duplicate keys': `{"b":1,"a":2,"b":3,"text":${JSON.stringify(prose(4000))}}`,
  escapes: `{"text":"\\u00e9\\ud83d\\ude00\\n\\t\\"\\\\\\/ ${'x'.repeat(3000)}"}`,
  unicode: JSON.stringify({ text: '日本語 😀 é'.repeat(500) }),
};

const bytes = {
  null: null,
  empty: Buffer.alloc(0),
  zero: Buffer.from([0]),
  'all bytes': Buffer.from(Array.from({ length: 256 }, (_, n) => n)),
  'below the threshold': noiseBytes(THRESHOLD - 1),
  threshold: noiseBytes(THRESHOLD),
  'above the threshold': noiseBytes(THRESHOLD + 1),
  mebibyte: noiseBytes(MIB),
  zeros: Buffer.alloc(100_000),
  'like a reference': Buffer.concat([Buffer.from('f7544f4153540d0a', 'hex'), noiseBytes(42)]),
  'magic and more': Buffer.concat([Buffer.from('f7544f4153540d0a', 'hex'), noiseBytes(5000)]),
};

const short = Object.fromEntries(Object.entries(texts).filter(([, text]) => text === null || text.length <= 3000));

export const COLUMNS = { body: texts, note: short, data: jsons, verbatim: jsons, raw: bytes };

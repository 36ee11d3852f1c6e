import { below, pick, type Random } from '../sim/random.ts';

/** Words and values that have broken parsers, stores and prompts. */
export const UNSEEN = [
  '\u200b',
  '\u200d',
  '\u2060',
  '\ufeff',
  '\u00ad',
  '\u202e',
  '\u2066',
  '\u2069',
  '\u3164',
  '\u180e',
];

const TEXTS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  '\udfff\ud800',
  '\u2028',
  '\r\n',
  '\u001b[31m',
  '\ufeff',
  '🎭',
  'é'.normalize('NFD'),
  'İ',
  '../../etc/passwd',
  '..\\..',
  '%00',
  '%2e%2e%2f',
  '${jndi:x}',
  '{{n}}',
  "' OR 1=1 --",
  '<script>alert(1)</script>',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '$where',
  '$gt',
  'a.b',
  '.',
  ':',
  '@',
  'null',
  'NaN',
  'Infinity',
  '-0',
  '1e999',
  '0x10',
  '9007199254740993',
  'c1:echo:1',
  'c1:echo:1:retry',
  'a:b:c:d:1',
  'run:r:step:1.2',
  'troupe',
  'system',
  '\u202eoche',
] as const;

const NUMBERS = [
  0,
  -0,
  -1,
  1.5,
  1e21,
  2 ** 31,
  2 ** 53,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_VALUE,
  Number.MIN_VALUE,
  // The result of JSON.parse for 1e999.
  Infinity,
  -Infinity,
] as const;

/** Keys with a meaning for JavaScript, a store's query language, a machine's snapshots or a reviver. */
export const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toJSON',
  'then',
  'length',
  '$gt',
  '$where',
  '$set',
  'a.b',
  '',
  'xstate$$type',
  'lc',
  'tenant',
  'conversation',
  'seq',
  'id',
  '\0',
] as const;

const MARKERS = [
  '{"xstate$$type":1,"id":"x"}',
  '{"$$type":1}',
  '{"lc":1,"type":"constructor","id":["x"],"kwargs":{}}',
  '{"$gt":""}',
  '{"$where":"sleep(1000)"}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toJSON":1,"toString":1,"valueOf":1}',
  '{"then":{}}',
  '{"length":4294967295,"0":1}',
  '{"length":{"toString":1,"valueOf":1}}',
  '[[[[]]]]',
  '[null]',
  '[{}]',
] as const;

const LONGEST = 20_000;

export function nastyText(random: Random): string {
  const roll = random();
  if (roll < 0.7) return pick(random, TEXTS);
  if (roll < 0.9) return Array.from({ length: 1 + below(random, 6) }, () => pick(random, TEXTS)).join('');
  if (roll < 0.96) return String.fromCharCode(...Array.from({ length: 8 }, () => below(random, 0x10000)));
  return pick(random, [...TEXTS, 'x'])
    .repeat(1 + below(random, 300))
    .slice(0, LONGEST);
}

export function nastyValue(random: Random): unknown {
  const roll = random();
  if (roll < 0.35) return nastyText(random);
  if (roll < 0.55) return pick(random, NUMBERS);
  if (roll < 0.65) return pick(random, [null, true, false]);
  if (roll < 0.9) return JSON.parse(pick(random, MARKERS));
  if (roll < 0.95) return Array.from({ length: below(random, 400) }, () => pick(random, TEXTS));
  return nested(random, pick(random, [3, 70, 600]));
}

/** Arrays and objects nested this many levels deep. */
export function nested(random: Random, levels: number): unknown {
  let value: unknown = pick(random, TEXTS);
  for (let level = 0; level < levels; level++) value = random() < 0.5 ? [value] : { a: value };
  return value;
}

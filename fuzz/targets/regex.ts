import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from 'vite';
import { pick, type Random } from '../../sim/random.ts';
import { Broken, type Target } from '../target.ts';
import { OUTSIDE_TEXTS } from './outside-texts.ts';

/**
 * Every regular expression that is written out in `src`, and every function that takes text from outside through ones
 * that are composed: given ever longer texts of one unit repeated. What grows faster than its text does not get far.
 */
export interface RegexInput {
  /** `file:line` of an expression, or the name of a function. */
  where: string;
  source: string;
  flags: string;
  before: string;
  unit: string;
  after: string;
}

const SIZES = [256, 2_048, 16_384, 65_536];
/** At the longest. Linear ones take a tenth of it. */
const SLOW_MS = 60;

/** Given nothing that is longer than this, whatever the caller says: a slow one does no harm there. */
const BOUNDED: Readonly<Record<string, number>> = {};

export function regexTarget(
  texts: Readonly<Record<string, (text: string) => unknown>> = OUTSIDE_TEXTS,
  folder = path.join(import.meta.dirname, '../../src'),
): Target<RegexInput> {
  const found = [
    ...literalsIn(folder),
    ...Object.keys(texts).map((where) => ({ where, source: '', flags: '' })),
  ];
  return {
    name: 'regex',
    keepKeys: true,
    make: (random) => {
      const { where, source, flags } = pick(random, found);
      return {
        where,
        source,
        flags,
        before: partOf(random, source),
        unit: unitOf(random, source),
        after: partOf(random, source),
      };
    },
    run({ where, source, flags, before, unit, after }) {
      const take = texts[where] ?? matcher(source, flags);
      const most = BOUNDED[where] ?? Infinity;
      for (const size of SIZES) {
        if (size > most) break;
        const text = before + unit.repeat(Math.ceil(size / Math.max(1, unit.length))) + after;
        const ms = timed(() => take(text));
        if (ms <= SLOW_MS) continue;
        const again = Math.min(
          timed(() => take(text)),
          timed(() => take(text)),
        );
        if (again > SLOW_MS)
          throw new Broken(`${where} takes ${Math.round(again)} ms for ${text.length} letters`, 'slow');
      }
      return 'accepted';
    },
  };
}

function timed(work: () => unknown): number {
  const { user, system } = process.cpuUsage();
  work();
  const after = process.cpuUsage();
  return (after.user - user + after.system - system) / 1_000;
}

/** As it is used: all matches where it is global. */
function matcher(source: string, flags: string): (text: string) => unknown {
  const pattern = new RegExp(source, flags);
  return (text) => (flags.includes('g') ? text.replace(pattern, '') : pattern.exec(text));
}

const UNITS = [
  ' ',
  '\n',
  '\t',
  'a',
  'A',
  '0',
  '-',
  '.',
  '/',
  '\\',
  ':',
  '@',
  '[',
  ']',
  '<',
  '>',
  '`',
  '"',
  '(',
  '*',
  '\u200b',
  'é',
  '{',
  ',',
  '=',
  '?',
  '。',
  '\r\n',
  '\u0301',
];

function unitOf(random: Random, source: string): string {
  const unit = random() < 0.5 ? pick(random, UNITS) : piecesOf(source, random);
  return random() < 0.6 ? unit : unit + pick(random, UNITS);
}

function partOf(random: Random, source: string): string {
  const roll = random();
  if (roll < 0.3) return '';
  return roll < 0.6
    ? pick(random, UNITS)
    : piecesOf(source, random) + (roll < 0.8 ? '' : pick(random, UNITS));
}

/** Words that the expression itself has: what brings it past its first letters. */
function piecesOf(source: string, random: Random): string {
  const pieces = source
    .replace(/\\[a-zA-Z](?:\{[^}]*\})?/g, ' ')
    .match(/[A-Za-z0-9@<>/:`"'[\]().,_=#-]+/g) ?? [''];
  return pick(random, pieces).slice(0, 40) || pick(random, UNITS);
}

interface Expression {
  where: string;
  source: string;
  flags: string;
}

function literalsIn(folder: string): Expression[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  return files.flatMap((name) => {
    const text = readFileSync(path.join(folder, name), 'utf8');
    const found: Expression[] = [];
    collect(parseSync(name, text).program, text, name, found);
    return found;
  });
}

function collect(node: unknown, text: string, name: string, found: Expression[]): void {
  if (typeof node !== 'object' || node === null) return;
  const { regex, start } = node as { regex?: { pattern: string; flags: string }; start?: number };
  if (regex) {
    const line = text.slice(0, start).split('\n').length;
    found.push({ where: `${name}:${line}`, source: regex.pattern, flags: regex.flags.replace('y', '') });
  }
  for (const child of Object.values(node)) collect(child, text, name, found);
}

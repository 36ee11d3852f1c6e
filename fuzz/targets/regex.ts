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

const SIZES = [32, 128, 512, 2_048, 8_192, 32_768, 65_536];
/** At the longest. Linear ones take a tenth of it. */
const SLOW_MS = 60;

/**
 * Slow ones that do no harm, as `file source`, or the name of a function: what they are given is short, or is no text
 * from outside. Whoever gives one of them more takes it off this list.
 */
const HARMLESS: Readonly<Record<string, string>> = {
  'inspector/row.ts ([^:]+):\\d+$': 'turn ids, of 220 letters at most',
  'inspector/render-html.ts ([^:]+):(\\d+)$': 'turn ids, of 220 letters at most',
  'context/extract/find-words.ts [^/\\\\]*$': 'words of 256 letters at most',
  'context/extract/find-pending.ts ^\\s*(?:[-*+•]|\\d{1,3}[.)])?\\s*\\[([ xX✓✔])\\]\\s+(.+)$':
    'sentences, which do not begin with blanks',
  'gateway/page.ts \\/+$': 'a header, of 16 kB at most',
  'gateway/access/check-scope.ts \\/+$': 'where the app is mounted',
  'providers/request-parts.ts \\n*<reminder-key>\\n<\\/reminder-key>':
    'prompts that are recorded, by developers',
  'providers/codex/config.ts \\/+$': 'a setting',
  'cli/http-client.ts \\/+$': 'an argument of the command line',
  'cli/author-named.ts ^-+|-+$': 'an argument of the command line',
  limitIn: 'the first 4,000 letters of an error of a provider',
  'context/retrieve/words.ts (?<=^.*[aeiouy].*)(?:(?<!e)ed|ing|ly)$': 'words of 64 letters at most',
  'context/extract/collect-facts.ts [.:@-]+$': 'ids of 256 letters at most',
};

export function regexTarget(
  texts: Readonly<Record<string, (text: string) => unknown>> = OUTSIDE_TEXTS,
  folder = path.join(import.meta.dirname, '../../src'),
): Target<RegexInput> {
  const named = Object.keys(texts).map((where) => ({ where, source: '', flags: '' }));
  const found = [...literalsIn(folder), ...named].filter((each) => !isHarmless(each));
  return {
    name: 'regex',
    keepKeys: true,
    whole: true,
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
      for (const size of SIZES) {
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

function isHarmless({ where, source }: Expression): boolean {
  const file = where.split(':')[0] ?? '';
  return Object.hasOwn(HARMLESS, source === '' ? where : `${file} ${source}`);
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
    found.push({ where: `${name}:${line}`, source: regex.pattern, flags: regex.flags });
  }
  for (const child of Object.values(node)) collect(child, text, name, found);
}

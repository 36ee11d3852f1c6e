import { pick, type Random } from '../../sim/random.ts';
import { type Expression, literalsIn, matcher } from '../expressions/index.ts';
import { Broken, type Target } from '../target.ts';
import { OUTSIDE_TEXTS } from './outside-texts.ts';

/**
 * Tests every regular expression of `src`, and every function that applies several to external text, with ever longer
 * repetitions of one unit. Work that grows faster than the text is a finding.
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
/** Maximum CPU time. Linear expressions take a tenth of it. */
const SLOW_MS = 60;

export function regexTarget(
  texts: Readonly<Record<string, (text: string) => unknown>> = OUTSIDE_TEXTS,
  expressions: readonly Expression[] = literalsIn(),
): Target<RegexInput> {
  const named = Object.keys(texts).map((where) => ({ where, source: '', flags: '' }));
  const found = [...expressions, ...named];
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
      const take = texts[where] ?? matcher({ source, flags });
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

/** Words in the expression itself, which get past its first letters. */
function piecesOf(source: string, random: Random): string {
  const pieces = source
    .replace(/\\[a-zA-Z](?:\{[^}]*\})?/g, ' ')
    .match(/[A-Za-z0-9@<>/:`"'[\]().,_=#-]+/g) ?? [''];
  return pick(random, pieces).slice(0, 40) || pick(random, UNITS);
}

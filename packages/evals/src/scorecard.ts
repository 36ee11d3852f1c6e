import { readFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import path from 'node:path';
import * as z from 'zod';
import { TroupeError } from './troupe.ts';
import { clip, quoted } from './show-run.ts';

const VERSION = 1;

/** Outcome of a score in one run. `none`: it has no value there. `failed`: it threw, or its judge did not answer. */
export const RunScore = z.discriminatedUnion('kind', [
  z.object({
    score: z.string(),
    kind: z.literal('scored'),
    value: z.union([z.number(), z.boolean()]),
    why: z.string(),
  }),
  z.object({ score: z.string(), kind: z.literal('none'), why: z.string() }),
  z.object({ score: z.string(), kind: z.literal('failed'), why: z.string() }),
]);
export type RunScore = z.infer<typeof RunScore>;

/** A score over all runs of a scenario. */
export const ScoreSummary = z.object({
  /** Name of the score. */
  score: z.string(),
  /** `rate`: the share of true values, with Wilson's interval. `mean`: the mean of numbers, with the interval of Student's t. */
  measure: z.enum(['rate', 'mean']),
  /** Which values are better. */
  better: z.enum(['more', 'less']),
  /** Runs that have a value. */
  n: z.int().min(0),
  /** Runs in which the score failed. */
  failed: z.int().min(0),
  /** Null: no run has a value. */
  mean: z.number().nullable(),
  /** Lower end of the 95 % interval. Null: unknown, as with a single number. */
  low: z.number().nullable(),
  /** Upper end. */
  high: z.number().nullable(),
});
export type ScoreSummary = z.infer<typeof ScoreSummary>;

/** One run of a scenario. */
export const ScoredRun = z.object({
  /** Number of the run, from 1. */
  seed: z.int(),
  /** Its conversation, if its data were kept, in `runs/<conversation>`. */
  conversation: z.string().optional(),
  scores: z.array(RunScore),
});
export type ScoredRun = z.infer<typeof ScoredRun>;

/** A scenario with its runs. */
const ScoredScenario = z.object({
  scenario: z.string(),
  scores: z.array(ScoreSummary),
  runs: z.array(ScoredRun),
});
type ScoredScenario = z.infer<typeof ScoredScenario>;

/** Scores of scenarios over repeated runs. Nothing in it differs between two replays of the same recording. */
export const Scorecard = z.object({
  version: z.literal(VERSION),
  /** Number of runs of each scenario. */
  repeats: z.int().min(1),
  /** The scenarios, in the order in which they were given. */
  scenarios: z.array(ScoredScenario),
  /** The cost of all judges. Dollars are null if a model has no price. */
  judges: z.object({ calls: z.int(), tokens: z.number(), dollars: z.number().nullable() }),
});
export type Scorecard = z.infer<typeof Scorecard>;

/** Reads `scores.json`. Throws `config_invalid`. */
export function readScorecard(file: string): Scorecard {
  try {
    return Scorecard.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    const why = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new TroupeError('config_invalid', `there are no scores in ${file}: ${why}`, { file }, { cause });
  }
}

/**
 * `better` and `worse`: the 95 % interval of the difference excludes zero, or a score fails in more runs than before. `same`:
 * no difference is shown. `new` and `gone`: the other side does not have this score, or measures it otherwise.
 */
export type Change = 'better' | 'same' | 'worse' | 'new' | 'gone';

/** A score of a scenario, before and after. */
export interface ComparedScore {
  /** Name of the scenario. */
  scenario: string;
  /** Name of the score. */
  score: string;
  /** How it changed. */
  change: Change;
  /** Null: the baseline does not have this score. */
  before: ScoreSummary | null;
  /** Null: the score no longer exists. */
  after: ScoreSummary | null;
}

/** Compares scores with a baseline, in the order of `after`. Scores that are gone come last. */
export function compareScores(before: Scorecard, after: Scorecard): ComparedScore[] {
  const earlier = byName(before);
  const later = byName(after);
  const compared = [...later].map(([key, { scenario, summary }]): ComparedScore => {
    const was = earlier.get(key)?.summary ?? null;
    return { scenario, score: summary.score, change: changeOf(was, summary), before: was, after: summary };
  });
  const gone = [...earlier]
    .filter(([key]) => !later.has(key))
    .map(([, { scenario, summary }]): ComparedScore => {
      return { scenario, score: summary.score, change: 'gone', before: summary, after: null };
    });
  return [...compared, ...gone];
}

/** Names of the scores that became worse, for the exit code of a command, or an assertion. */
export function worseOnes(compared: readonly ComparedScore[]): string[] {
  return compared.flatMap(({ scenario, score, change }) =>
    change === 'worse' ? [`${scenario}: ${score}`] : [],
  );
}

function byName({ scenarios }: Scorecard): Map<string, { scenario: string; summary: ScoreSummary }> {
  return new Map(
    scenarios.flatMap(({ scenario, scores }) =>
      scores.map((summary) => [JSON.stringify([scenario, summary.score]), { scenario, summary }] as const),
    ),
  );
}

function changeOf(before: ScoreSummary | null, after: ScoreSummary): Change {
  if (before === null) return 'new';
  if (after.failed / runsOf(after) > before.failed / runsOf(before)) return 'worse';
  if (before.measure !== after.measure) return 'new';
  const difference = differenceOf(before, after);
  if (difference === null || (difference.low <= 0 && difference.high >= 0)) return 'same';
  const isMore = difference.low > 0;
  return isMore === (after.better === 'more') ? 'better' : 'worse';
}

function runsOf({ n, failed }: ScoreSummary): number {
  return Math.max(1, n + failed);
}

/** A mean with its 95 % interval. `low` and `high` are null if the interval is unknown. */
interface Estimate {
  mean: number | null;
  low: number | null;
  high: number | null;
}

const Z = 1.959963985;
/** Quantiles of Student's t at 97.5 %, for 1 to 30 degrees of freedom. */
const T = [
  12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814, 2.20099, 2.17881,
  2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596, 2.07961, 2.07387, 2.06866, 2.0639,
  2.05954, 2.05553, 2.05183, 2.04841, 2.04523, 2.04227,
];
const DIGITS = 6;

/** The share of true values, with Wilson's interval, which is right even for few runs and never outside 0 to 1. */
export function rateOf(values: readonly boolean[]): Estimate {
  const n = values.length;
  if (n === 0) return { mean: null, low: null, high: null };
  const rate = values.filter(Boolean).length / n;
  const scale = 1 + Z ** 2 / n;
  const middle = (rate + Z ** 2 / (2 * n)) / scale;
  const half = (Z / scale) * Math.sqrt((rate * (1 - rate)) / n + Z ** 2 / (4 * n ** 2));
  return {
    mean: rounded(rate),
    low: rounded(Math.max(0, middle - half)),
    high: rounded(Math.min(1, middle + half)),
  };
}

/** The mean, with the interval of Student's t. A single number has no interval. */
export function meanOf(values: readonly number[]): Estimate {
  const n = values.length;
  if (n === 0) return { mean: null, low: null, high: null };
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n === 1) return { mean: rounded(mean), low: null, high: null };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const half = quantile(n - 1) * Math.sqrt(squares / (n - 1) / n);
  return { mean: rounded(mean), low: rounded(mean - half), high: rounded(mean + half) };
}

/**
 * The 95 % interval of `after - before`, from both intervals: for rates by Newcombe (1998, method 10), for means by Zou and
 * Donner (2008). Null if one of them has no interval.
 */
function differenceOf(before: Estimate, after: Estimate): { low: number; high: number } | null {
  const { mean: a, low: lowA, high: highA } = before;
  const { mean: b, low: lowB, high: highB } = after;
  if (a === null || b === null || lowA === null || lowB === null || highA === null || highB === null)
    return null;
  return {
    low: rounded(b - a - Math.hypot(b - lowB, highA - a)),
    high: rounded(b - a + Math.hypot(highB - b, a - lowA)),
  };
}

/** Beyond the table, a series expansion is accurate to five digits. */
function quantile(freedom: number): number {
  const known = T[freedom - 1];
  if (known !== undefined) return known;
  const first = (Z ** 3 + Z) / (4 * freedom);
  const second = (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * freedom ** 2);
  return Z + first + second;
}

/** Rounds, so that a file of scores is readable, and the same on all machines. */
function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}

const MOST_NAME = 60;

/**
 * A table for the terminal, which is also Markdown, for a comment or the summary of a job. With a baseline it shows what has
 * changed. If the data of runs were kept, it ends with how to view them; `folders` are those of the scores and of the baseline.
 */
export function scoresTable(
  scores: Scorecard,
  before?: Scorecard,
  folders: readonly [after: string, before?: string] = ['FOLDER'],
): string {
  const rows = compareScores(before ?? scores, scores).map((row) => rowOf(row, before !== undefined));
  const heads = ['scenario', 'score', 'mean [95 %]', 'runs', ...(before ? ['before', ''] : [])];
  const table = [heads, heads.map(() => ''), ...rows];
  const widths = heads.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0), 3));
  const lines = table.map((row, at) => {
    const cells = widths.map((width, column) =>
      at === 1 ? '-'.repeat(width) : (row[column] ?? '').padEnd(width),
    );
    return `| ${cells.join(' | ')} |`;
  });
  const { calls, tokens, dollars } = scores.judges;
  const price = dollars === null ? 'unknown' : String(Number(dollars.toFixed(4)));
  const judged = calls === 0 ? [] : ['', `Judges: ${calls} calls, ${tokens} tokens, dollars: ${price}`];
  const how = howToShow(scores, ...folders);
  return [...lines, ...judged, ...(how === null ? [] : ['', how])].join('\n');
}

function rowOf({ scenario, score, change, before, after }: ComparedScore, isCompared: boolean): string[] {
  const row = [cell(scenario), cell(score), summaryWords(after), runsWords(after)];
  return isCompared ? [...row, summaryWords(before), change] : row;
}

/** A mean with its interval: `0.8 [0.49, 0.943]`. */
export function summaryWords(summary: ScoreSummary | null): string {
  if (summary === null || summary.mean === null) return '-';
  const { mean, low, high } = summary;
  return low === null || high === null ? short(mean) : `${short(mean)} [${short(low)}, ${short(high)}]`;
}

function runsWords(summary: ScoreSummary | null): string {
  if (summary === null) return '-';
  return summary.failed > 0 ? `${summary.n} (${summary.failed} failed)` : String(summary.n);
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Names are the developer's own; control characters and borders would break the table. */
function cell(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const plain = stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
  return clip(plain, MOST_NAME).replaceAll('|', '\\|');
}

/**
 * JUnit XML for a CI's pages: a suite for each scenario, a case for each score. A score that failed in a run is an error, one
 * that is worse than the baseline is a failure, one without a value is skipped. It has no times, so that two replays give the
 * same bytes.
 */
export function scoresJunit(scores: Scorecard, before?: Scorecard): string {
  const compared = compareScores(before ?? scores, scores);
  const suites = scores.scenarios.map(({ scenario, runs }) => {
    const cases = compared
      .filter((row) => row.scenario === scenario && row.after !== null)
      .map((row) => caseOf(row, runs));
    const having = (element: string) => cases.filter((xml) => xml.includes(`<${element} `)).length;
    const counts = { tests: cases.length, failures: having('failure'), errors: having('error') };
    return element('testsuite', { name: scenario, ...counts, skipped: having('skipped') }, cases.join(''));
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', { name: 'scores' }, suites.join(''))}`;
}

function caseOf(row: ComparedScore, runs: Scorecard['scenarios'][number]['runs']): string {
  const { scenario, score, change, before, after } = row;
  const taken = runs.flatMap(({ seed, scores }) =>
    scores.filter((each) => each.score === score).map((each) => runWords(seed, each)),
  );
  const words = `${summaryWords(after)}, ${after?.n} runs\n${taken.join('\n')}`;
  const inner = [
    ...(after && after.failed > 0
      ? [element('error', { message: `failed in ${after.failed} runs`, type: 'error' })]
      : []),
    ...(change === 'worse' && after?.failed === 0
      ? [
          element('failure', {
            message: `worse: ${summaryWords(before)} before, now ${summaryWords(after)}`,
            type: 'worse',
          }),
        ]
      : []),
    ...(after?.n === 0 && after.failed === 0 ? [element('skipped', { message: 'no value' })] : []),
    element('system-out', {}, escaped(words)),
  ];
  return element('testcase', { classname: scenario, name: score }, inner.join(''));
}

function runWords(seed: number, taken: RunScore): string {
  const value = taken.kind === 'scored' ? String(taken.value) : taken.kind;
  return `run ${seed}: ${value}${taken.why === '' ? '' : ` - ${taken.why}`}`;
}

/** `inner` is already XML. */
function element(name: string, attributes: Record<string, string | number>, inner = ''): string {
  const list = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`);
  return `<${name}${list.join('')}>${inner}</${name}>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\n': '&#10;',
  '\t': '&#9;',
  '\r': '&#13;',
};

/** Code of our own, because nothing else of XML is needed. Characters that XML 1.0 cannot contain become U+FFFD. */
function escaped(text: string): string {
  return (
    text
      .toWellFormed()
      // oxlint-disable-next-line no-control-regex
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
      .replace(/[&<>"'\n\t\r]/g, (char) => ENTITIES[char] ?? char)
  );
}

/** Scores as JSON, which `readScorecard` reads. */
export function scoresJson(scores: Scorecard): string {
  return `${JSON.stringify(scores, null, 2)}\n`;
}

/**
 * Writes `scores.json`, `scores.xml` for a CI, and `scores.md` for people into a folder. With a baseline, the files show what
 * has changed.
 */
export function writeScores(folder: string, scores: Scorecard, before?: Scorecard): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'scores.json'), scoresJson(scores));
  writeFileSync(path.join(folder, 'scores.xml'), scoresJunit(scores, before));
  writeFileSync(path.join(folder, 'scores.md'), `${scoresTable(scores, before)}\n`);
}

/** Names that `scoreScenarios` gives. A name from a file must not lead out of its folder. */
const CONVERSATION = /^\w[\w-]{0,199}$/;

/** The data directory of a run within the folder that keeps it. */
export function folderOfRun(keep: string, conversation: string): string {
  return path.join(keep, 'runs', conversation);
}

/** Conversations of the runs whose data were kept. */
export function keptConversations({ scenarios }: Scorecard): Set<string> {
  const named = scenarios.flatMap(({ runs }) => runs.flatMap(({ conversation }) => conversation ?? []));
  return new Set(named.filter((conversation) => CONVERSATION.test(conversation)));
}

/** How a developer can view runs whose data were kept. Null if none were kept. `before`: the folder of the baseline. */
function howToShow(scores: Scorecard, folder: string = 'FOLDER', before?: string): string | null {
  if (keptConversations(scores).size === 0) return null;
  const folders = [folder, ...(before === undefined ? [] : [before])];
  return `look at the conversations: npx troupe eval show ${folders.map(quoted).join(' ')}`;
}

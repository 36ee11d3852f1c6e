import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Figure, figureLine, isMet, type Scored } from './figure.ts';
import { type Options, USAGE } from './options.ts';
import { scoreCache } from './sections/cache.ts';
import { scoreCarry } from './sections/carry.ts';
import { scoreCold } from './sections/cold.ts';
import { estimatorSection } from './sections/estimator.ts';
import { scoreFacts } from './sections/facts.ts';
import { scoreFirstQuestion } from './sections/first-question.ts';
import { scoreFive } from './sections/five.ts';
import { scoreFraming } from './sections/framing.ts';
import { scoreFuzz } from './sections/fuzz.ts';
import { scoreHandOvers, scoreSummaryRequests } from './sections/hand-overs.ts';
import { scoreCorrections, scoreGoals, scoreLanguages, scorePrecision } from './sections/judgement.ts';
import { scoreInvariants } from './sections/invariants.ts';
import { scorePolicy } from './sections/policy.ts';
import { scoreRoom } from './sections/room.ts';
import { retentionSection } from './sections/retention.ts';
import { retrievalSection } from './sections/retrieval.ts';
import { scoreRewrites } from './sections/rewrites.ts';
import { scoreSpecifications } from './sections/specifications.ts';
import { scoreSpeed } from './sections/speed.ts';

/**
 * `npm run score:context`: figures for the context module, without a model. Progress is on stderr. A missed goal
 * fails the run only with `--strict`; a broken invariant or a crash always does. docs/contributing/score.md explains the figures.
 */
const SECTIONS: Record<string, { title: string; score: (options: Options) => Promise<Scored> }> = {
  specifications: { title: 'Specifications: 120 behaviours', score: scoreSpecifications },
  invariants: { title: 'Invariants, on every real log', score: scoreInvariants },
  cache: { title: 'Cache: the layout at four vendors', score: scoreCache },
  framing: { title: 'Framing: what prompts cost beyond words', score: scoreFraming },
  policy: { title: 'Policy: prunes and compactions beside an append-only log', score: scorePolicy },
  rewrites: { title: 'Rewrites: what stays verbatim, and what they gain', score: scoreRewrites },
  retention: {
    title: 'Retention: what can still be found when a log is made short',
    score: retentionSection,
  },
  facts: { title: 'Facts needed later, at points of each log', score: scoreFacts },
  carry: { title: 'A second compaction, and what the first one kept', score: scoreCarry },
  five: { title: 'Five compactions in a row, and what is left of each part', score: scoreFive },
  room: { title: 'Room: what is shown of more than has room', score: scoreRoom },
  goals: { title: 'Goals: a request that its author replaces', score: scoreGoals },
  corrections: { title: 'Corrections: the newer word of a person', score: scoreCorrections },
  precision: { title: 'Precision: demands among talk of friends', score: scorePrecision },
  'hand-overs': { title: 'Hand-overs: what the receiver reads', score: scoreHandOvers },
  'summary-requests': { title: 'Framing of summary requests', score: scoreSummaryRequests },
  languages: { title: 'Languages in which demands are found', score: scoreLanguages },
  'first-question': {
    title: 'First question of a process, about what left the window',
    score: scoreFirstQuestion,
  },
  retrieval: { title: 'Retrieval: evidence found on LoCoMo', score: retrievalSection },
  estimator: { title: 'Estimator: beside recorded usage', score: estimatorSection },
  fuzz: { title: 'Fuzz: random conversations in random windows', score: scoreFuzz },
  speed: { title: 'Speed and memory', score: scoreSpeed },
  cold: { title: 'Cold: the first turn of a new process', score: scoreCold },
};

const OUT = fileURLToPath(new URL('./out/context.json', import.meta.url));

const { values: given } = parseArgs({
  options: {
    only: { type: 'string' },
    json: { type: 'string', default: OUT },
    quick: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    'fuzz-rounds': { type: 'string' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});
const wanted = given.only?.split(',') ?? Object.keys(SECTIONS);
const unknown = wanted.filter((name) => !(name in SECTIONS));
if (given.help || unknown.length > 0) {
  console.error(USAGE, `\nsections: ${Object.keys(SECTIONS).join(', ')}`);
  process.exit(given.help ? 0 : 2);
}

const options: Options = {
  quick: given.quick,
  fuzzRounds: Number(given['fuzz-rounds'] ?? (given.quick ? 500 : 10_000)),
  seed: Number(given.seed),
  note: (line) => process.stderr.write(`    ${line}\n`),
};

console.log(`Node ${process.version}, ${cpus().length} cores, seed ${options.seed}${quickly(options)}`);
const results: (Scored & { section: string; seconds: number })[] = [];
for (const section of wanted) {
  const { title, score } = SECTIONS[section] as (typeof SECTIONS)[string];
  process.stderr.write(`  ${section} ...\n`);
  const start = performance.now();
  const scored = await score(options);
  const seconds = (performance.now() - start) / 1_000;
  results.push({ section, seconds, ...scored });
  console.log(`\n${title} (${seconds.toFixed(1)} s)`);
  if (scored.skipped !== undefined) console.log(`  skipped: ${scored.skipped}`);
  for (const one of scored.figures) console.log(figureLine(one));
  for (const line of scored.violations.slice(0, 20)) console.log(`  VIOLATION ${line}`);
}
writeJson(path.resolve(given.json));

const missed = results.flatMap(({ section, figures }) =>
  figures.filter((one) => isMet(one) === false).map(({ name }) => `${section}: ${name}`),
);
const violations = results.reduce((sum, { violations: some }) => sum + some.length, 0);
console.log(`\n${missed.length} goal(s) missed, ${violations} invariant violation(s).`);
for (const name of missed) console.log(`  MISSED ${name}`);
process.exitCode = violations > 0 || (given.strict && missed.length > 0) ? 1 : 0;

function writeJson(file: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  const withVerdict = (one: Figure) => ({ ...one, met: isMet(one) });
  const sections = results.map(({ figures, ...rest }) => ({ ...rest, figures: figures.map(withVerdict) }));
  const { quick, seed, fuzzRounds } = options;
  const about = { node: process.version, cores: cpus().length, quick, seed, fuzzRounds };
  writeFileSync(file, `${JSON.stringify({ ...about, sections }, null, 2)}\n`);
}

function quickly({ quick }: Options): string {
  return quick ? ', --quick: no figures to quote' : '';
}

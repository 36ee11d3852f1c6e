import { inspect, parseArgs } from 'node:util';
import { randomOf } from '../sim/random.ts';
import { type Figures, fuzzTarget } from './fuzz-target.ts';
import type { Target } from './target.ts';
import { SHARES, TARGETS } from './targets/index.ts';

/**
 * `npm run fuzz -- --inputs N --seed S [--only events,fences,...] [--json]`: runs N inputs, divided over the targets
 * by their shares. Exits with 1 if anything crashed, hung, answered 500 or broke an invariant. `--only X --input N
 * --seed S` runs one input again and prints it.
 */
const USAGE = 'npm run fuzz -- [--inputs N] [--seed S] [--only TARGET,...] [--input N] [--json]';
const PROGRESS_MS = 5_000;
const SHOWN_CHARS = 4_000;

const values = readFlags();
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : numberOf('seed', values.seed);
const inputs = numberOf('inputs', values.inputs, 1);
const names = values.only === undefined ? Object.keys(SHARES) : values.only.split(',');
for (const name of names) if (!Object.hasOwn(TARGETS, name)) fail(`there is no target ${name}`);

process.exitCode =
  values.input === undefined ? await runAll() : await runAgain(numberOf('input', values.input));

function readFlags() {
  try {
    const { values: given } = parseArgs({
      options: {
        inputs: { type: 'string', default: '100000' },
        seed: { type: 'string' },
        only: { type: 'string' },
        input: { type: 'string' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    return given.help ? fail('usage') : given;
  } catch (problem) {
    return fail(problem instanceof Error ? problem.message : String(problem));
  }
}

function numberOf(name: string, text: string, least = 0): number {
  const number = Number(text);
  return text.trim() !== '' && Number.isSafeInteger(number) && number >= least
    ? number
    : fail(`--${name} must be a whole number from ${least} on, not ${text}`);
}

function fail(problem: string): never {
  process.stderr.write(`${problem}\n${USAGE}\ntargets: ${Object.keys(TARGETS).join(', ')}\n`);
  process.exit(2);
}

async function open(name: string): Promise<Target> {
  const target = await TARGETS[name]?.();
  return target ?? fail(`there is no target ${name}`);
}

async function runAll(): Promise<number> {
  process.stderr.write(`seed ${seed}\n`);
  const shares = names.map((name) => SHARES[name] ?? 100);
  const whole = shares.reduce((sum, share) => sum + share, 0);
  const all: Figures[] = [];
  for (const [index, name] of names.entries()) {
    const target = await open(name);
    const count = Math.round((inputs * (shares[index] ?? 0)) / whole);
    const figures = await fuzzTarget(target, { seed, inputs: count, onProgress: progress(name, count) });
    await target.close?.();
    all.push(figures);
    for (const finding of figures.findings) {
      console.log(`${name}: ${finding.kind} at input ${finding.input}: ${finding.message}`);
      console.log(`  repeat: npm run fuzz -- --only ${name} --seed ${seed} --input ${finding.input}`);
      if (finding.smallest !== null) console.log(`  smallest: ${shown(finding.smallest)}`);
    }
  }
  if (values.json) console.log(JSON.stringify({ seed, targets: all }));
  else printTable(all);
  return all.some(({ findings }) => findings.length > 0) ? 1 : 0;
}

async function runAgain(number: number): Promise<number> {
  const [name = '', ...more] = names;
  if (more.length > 0) fail('--input needs --only with one target');
  const target = await open(name);
  console.log(shown(target.make(randomOf(seed, `${name}/${number}`))));
  const { findings, codes } = await fuzzTarget(target, { seed, inputs: 1, from: number });
  await target.close?.();
  for (const { kind, message, smallest } of findings)
    console.log(`${kind}: ${message}\nsmallest: ${shown(smallest)}`);
  if (findings.length === 0) console.log(Object.keys(codes).join());
  return findings.length > 0 ? 1 : 0;
}

function printTable(all: readonly Figures[]): void {
  const rows = all.map(
    ({ target, inputs: count, parts, codes, findings, slowestMs, slowestInput, seconds }) => {
      const of = (...kinds: string[]) => findings.filter(({ kind }) => kinds.includes(kind)).length;
      const { accepted = 0, ...refused } = codes;
      return {
        target,
        inputs: count,
        parts,
        accepted,
        refused: Object.entries(refused)
          .map(([code, times]) => `${code} ${times}`)
          .join(', '),
        crashes: of('crash', 'rejection'),
        hangs: of('hang', 'slow'),
        '500s': of('500'),
        broken: of('broken'),
        'slowest ms': `${slowestMs.toFixed(1)} (input ${slowestInput})`,
        seconds: seconds.toFixed(1),
        'per second': Math.round(count / seconds),
      };
    },
  );
  for (const { refused, ...row } of rows) {
    console.log(
      Object.entries(row)
        .map(([name, value]) => `${name} ${value}`)
        .join(' | '),
    );
    console.log(`    refused: ${refused === '' ? 'none' : refused}`);
  }
  const count = all.reduce((sum, each) => sum + each.inputs, 0);
  const seconds = all.reduce((sum, each) => sum + each.seconds, 0);
  const found = all.reduce((sum, { findings }) => sum + findings.length, 0);
  console.log(
    `${count} inputs, ${found} findings, ${seconds.toFixed(1)} s, ${Math.round(count / seconds)}/s, seed ${seed}`,
  );
}

function shown(value: unknown): string {
  const text =
    typeof value === 'string' ? JSON.stringify(value) : inspect(value, { depth: 12, breakLength: 120 });
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}… (${text.length} letters)`;
}

function progress(name: string, total: number): (done: number) => void {
  let reportedAt = performance.now();
  return (done) => {
    if (performance.now() - reportedAt < PROGRESS_MS) return;
    reportedAt = performance.now();
    process.stderr.write(`${name}: ${done}/${total}\n`);
  };
}

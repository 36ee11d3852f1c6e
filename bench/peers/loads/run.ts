import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { DATA } from '../../../test/support/real-logs.ts';
import { percentile } from '../../support.ts';
import { shown } from '../shown.ts';
import { createInstaller, type Installed } from './installer.ts';
import type { Contender, Load } from './load.ts';
import { LOADS } from './loads.ts';

/**
 * `npm run bench:others`: loads that others have published or met, with Troupe and with the one that met them, in one run.
 * Every play is a fresh process; who begins changes from round to round. Prints one table of medians.
 * `--only LOAD` and `--contender NAME` (each may be repeated), `--runs N` (default 1), `--data DIR` (the transcripts),
 * `--short` (small sizes, which only show that the scripts run), `--json`.
 */
const TIMEOUT_MS = 1_800_000;

const { values: given } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    contender: { type: 'string', multiple: true, default: [] },
    runs: { type: 'string', default: '1' },
    data: { type: 'string', default: DATA },
    short: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const runs = Math.max(1, Math.trunc(Number(given.runs)) || 1);
const data = path.resolve(given.data);
const chosen = LOADS.filter(({ name }) => given.only.length === 0 || given.only.includes(name));
if (chosen.length === 0) throw new Error(`--only is one of: ${LOADS.map(({ name }) => name).join(', ')}`);

/** A contender with how it is started. */
type Ready = Contender & Installed;

const installed = createInstaller();
const skipped: string[] = [];
const failed: string[] = [];
const found = new Map<string, Record<string, number>[]>();
const loadBefore = loadavg()[0] ?? 0;
const loads: { load: Load; contenders: Ready[] }[] = [];
for (const load of chosen) {
  const contenders = await contendersOf(load);
  if (contenders.length > 0) loads.push({ load, contenders });
  for (let round = 0; round < runs; round++)
    for (let index = 0; index < contenders.length; index++) {
      const contender = contenders[(index + round) % contenders.length];
      if (contender) play(load, contender, round);
    }
}
if (given.json) console.log(JSON.stringify(report()));
else print();
if (failed.length > 0) process.exitCode = 1;

/** Those that can be had here; of the others it is said why not. */
async function contendersOf(load: Load): Promise<Ready[]> {
  if (load.needsData && !existsSync(path.join(data, load.name))) {
    skipped.push(`${load.name}: no data`);
    return [];
  }
  const ready: Ready[] = [];
  for (const contender of load.contenders) {
    if (given.contender.length > 0 && !given.contender.includes(contender.name)) continue;
    const ways = await installed(contender.needs);
    if ('not' in ways) skipped.push(`${load.name}, ${contender.name}: ${ways.not}`);
    else ready.push({ ...contender, ...ways });
  }
  return ready;
}

function play(load: Load, { name, script, mode = 'only', command, env }: Ready, round: number): void {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-others-'));
  const size = given.short ? load.short : load.size;
  const began = performance.now();
  console.error(`bench:others: ${load.name} ${name} ${round + 1}/${runs}`);
  try {
    const args = [path.join(import.meta.dirname, script), mode, `${size}`, dir, data];
    const output = execFileSync(command, args, {
      encoding: 'utf8',
      timeout: TIMEOUT_MS,
      env: { ...process.env, ...env },
      maxBuffer: 2 ** 26,
      // What a long play says of its progress is seen at once.
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const line = output.trim().split('\n').at(-1) ?? '{}';
    const key = `${load.name} ${name}`;
    found.set(key, [...(found.get(key) ?? []), JSON.parse(line) as Record<string, number>]);
  } catch (error) {
    failed.push(`${load.name}, ${name}: ${String(error).split('\n')[0]}`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.error(`bench:others: ${load.name} ${name} ${round + 1}/${runs} took ${seconds} s`);
}

/** Null: it failed, or does not measure this. */
function medianOf(load: string, contender: string, key: string): number | null {
  const values = (found.get(`${load} ${contender}`) ?? []).flatMap((each) => each[key] ?? []);
  return values.length === 0 ? null : percentile(values, 0.5);
}

function report(): object {
  const figures = loads.flatMap(({ load, contenders }) =>
    contenders.flatMap(({ name, version }) =>
      load.figures.map(({ key, title, published }) => ({
        load: load.name,
        contender: name,
        version,
        figure: title,
        value: medianOf(load.name, name, key),
        published: published ?? null,
      })),
    ),
  );
  const { short } = given;
  return { ...machine(), runs, short, figures, skipped, failed };
}

function machine(): { node: string; cores: number; loadAverage: number } {
  return { node: process.version, cores: cpus().length, loadAverage: Number(loadBefore.toFixed(1)) };
}

function print(): void {
  const { node, cores, loadAverage } = machine();
  const size = given.short ? ', short' : '';
  console.log(`Node ${node}, ${cores} cores, load ${loadAverage} at the start, ${runs} run(s)${size}\n`);
  console.log('| | troupe | beside it | published there, not measured here |');
  console.log('|---|--:|---|---|');
  for (const { load, contenders } of loads) {
    const [own] = contenders.filter(({ name }) => name === 'troupe');
    const others = contenders.filter(({ name }) => name !== 'troupe');
    const names = others.map(({ name, version }) => (version === '' ? name : `${name} ${version}`));
    console.log(`| **${load.title}** | ${own?.version ?? ''} | ${names.join('; ')} | |`);
    for (const { key, title, published = '' } of load.figures) {
      const cell = (name: string) => shownOf(medianOf(load.name, name, key));
      console.log(
        `| ${title} | ${own ? cell('troupe') : ''} | ${others.map(({ name }) => cell(name)).join('; ')} | ${published} |`,
      );
    }
  }
  for (const why of skipped) console.log(`\nskipped: ${why}`);
  for (const why of failed) console.log(`\nfailed: ${why}`);
}

/** Counts have no decimals. */
function shownOf(value: number | null): string {
  if (value === null) return '–';
  return Number.isInteger(value) ? value.toLocaleString('en') : shown(value);
}

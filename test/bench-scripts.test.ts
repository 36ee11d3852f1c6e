import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { LOADS } from '../bench/peers/loads/loads.ts';
import { HAS_DATA } from './support/real-logs.ts';

const BENCH = path.join(path.dirname(import.meta.dirname), 'bench');
const LOADS_FOLDER = path.join(BENCH, 'peers/loads');
const MINUTES = 60_000;

test('every script that a benchmark starts by its name exists', () => {
  const sources = readdirSync(BENCH).filter((file) => file.endsWith('.ts'));
  const text = sources.map((file) => readFileSync(path.join(BENCH, file), 'utf8')).join('\n');
  const scripts = [...text.matchAll(/\bmeasure\('([^']+)'/g)].map(([, name]) => `${name}.ts`);
  expect(scripts.length).toBeGreaterThan(15);
  expect(scripts.filter((script) => !existsSync(path.join(BENCH, script)))).toEqual([]);
});

test('every script that plays a load of others exists, Troupe among those of each', () => {
  const contenders = LOADS.flatMap((load) => load.contenders);
  expect(
    contenders.map(({ script }) => script).filter((script) => !existsSync(path.join(LOADS_FOLDER, script))),
  ).toEqual([]);
  expect(LOADS.filter((load) => load.contenders[0]?.name !== 'troupe')).toEqual([]);
});

interface Report {
  figures: { load: string; contender: string; figure: string; value: number | null }[];
  skipped: string[];
  failed: string[];
}

async function playShort(args: readonly string[]): Promise<Report> {
  const command = [path.join(LOADS_FOLDER, 'run.ts'), '--short', '--json', '--contender', 'troupe', ...args];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: path.dirname(BENCH) });
  return JSON.parse(stdout) as Report;
}

test(
  'the loads of others are played in a short form, where nothing is installed for it',
  { timeout: 10 * MINUTES },
  async () => {
    const { figures, skipped, failed } = await playShort(['--contender', 'bare loop']);
    expect({ skipped, failed }).toEqual({ skipped: HAS_DATA ? [] : ['tau: no data'], failed: [] });
    const valueOf = (load: string, figure: string) =>
      figures.find((each) => each.load === load && each.contender === 'troupe' && each.figure === figure)
        ?.value;
    const wanted = LOADS.filter(({ needsData }) => HAS_DATA || !needsData);
    for (const load of wanted)
      for (const { title } of load.figures) expect(valueOf(load.name, title), title).toBeTypeOf('number');
    expect(valueOf('history-growth', 'model calls reached')).toBe(5);
    if (HAS_DATA) {
      expect(valueOf('tau', 'trajectories played')).toBe(6);
      expect(valueOf('tau', 'violations')).toBe(0);
      expect(valueOf('tau', 'prompts that the log gives again byte for byte, %')).toBe(100);
    }
  },
);

test('trajectories that are not there are skipped, and it is said', { timeout: 5 * MINUTES }, async () => {
  const { figures, skipped } = await playShort([
    '--only',
    'tau',
    '--data',
    path.join(BENCH, 'no-such-folder'),
  ]);
  expect({ figures, skipped }).toEqual({ figures: [], skipped: ['tau: no data'] });
});

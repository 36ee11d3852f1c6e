import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installHelm } from '../test/services/helm.ts';

/**
 * `npm run test:real`: the suites of the stores and queues, and every test of the distributed mode, on each server that can
 * be had here. Prints a line for each: parts with versions, suite, result. Exits 1 if a test failed. A part that cannot be had is
 * there with its reason. Words given to it choose the rows.
 */
const ROOT = path.dirname(import.meta.dirname);
/** Each database once and each kind of Redis once. */
const PAIRS = [
  { TROUPE_TEST_MONGODB: 'MongoDB engine', TROUPE_TEST_REDIS: 'redis-server' },
  { TROUPE_TEST_MONGODB: 'SecantusDB', TROUPE_TEST_REDIS: 'Valkey' },
  { TROUPE_TEST_MONGODB: 'any mongod', TROUPE_TEST_REDIS: 'redis-server' },
  { TROUPE_TEST_MONGODB: 'MongoDB replica set', TROUPE_TEST_REDIS: 'redis-server' },
  { TROUPE_TEST_MONGODB: 'MongoDB engine', TROUPE_TEST_REDIS: 'Redis Cluster' },
  { TROUPE_TEST_MONGODB: 'MongoDB engine', TROUPE_TEST_REDIS: 'Redis Sentinel' },
] as const;
const SUITES = {
  'stores and queues': ['--project', 'embedded', 'test/store', 'test/queue'],
  'many processes': ['--project', 'embedded', 'test/distributed'],
  'distributed mode': ['--project', 'distributed'],
} as const;
/** `npm run test:real -- 'Redis Cluster' 'many processes'`: only the rows that have all these words. */
const wanted = process.argv.slice(2);

interface Row {
  parts: string;
  suite: string;
  result: string;
}

let failed = 0;
for (const pair of PAIRS)
  for (const { parts, suite, result } of suitesOf(pair)) {
    // As soon as it is known: a suite takes minutes.
    show({ parts, suite, result });
  }
const ALONE = 'PostgreSQL alone';
if (wanted.every((word) => `${ALONE} distributed mode`.includes(word))) {
  const { services, counts, missing } = runSuite(SUITES['distributed mode'], {
    TROUPE_TEST_DISTRIBUTED: 'postgres',
  });
  const parts = services.split(', ').at(-1) ?? '';
  show({ parts: `${parts} alone`, suite: 'distributed mode', result: missing ?? counts });
}
const helm = await installHelm();
const chart = 'path' in helm ? runSuite(['--project', 'embedded', 'test/deploy'], {}).counts : helm.not;
show({ parts: 'Helm', suite: 'chart, image, units', result: chart });
if (failed > 0) process.exitCode = 1;

function show({ parts, suite, result }: Row): void {
  console.log(`${parts.padEnd(72)}  ${suite.padEnd(19)}  ${result}`);
  if (/ [1-9]\d* failed/.test(result)) failed += 1;
}

function* suitesOf(pair: (typeof PAIRS)[number]): Generator<Row, void> {
  for (const [suite, args] of Object.entries(SUITES)) {
    const row = [...Object.values(pair), suite].join(' ');
    if (!wanted.every((word) => row.includes(word))) continue;
    console.error(`test:real: ${Object.values(pair).join(' and ')}: ${suite} ...`);
    const { services, counts, missing } = runSuite(args, pair);
    if (missing !== undefined) {
      yield { parts: Object.values(pair).join(', '), suite: '-', result: missing };
      return;
    }
    yield { parts: services, suite, result: counts };
  }
}

function runSuite(
  args: readonly string[],
  pair: object,
): { services: string; counts: string; missing?: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-real-'));
  const log = path.join(folder, 'log');
  try {
    const env = { ...process.env, ...pair, TROUPE_TEST_CLIS: 'none' };
    const output = openSync(log, 'w');
    spawnSync(process.execPath, ['test/run.ts', ...args], {
      cwd: ROOT,
      env,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    const text = readFileSync(log, 'utf8');
    const services = /^services: MongoDB: (.*), Redis: (.*), PostgreSQL: (.*)$/m.exec(text);
    const lines = text.trimEnd().split('\n');
    const none = services?.slice(1).find((each) => each.startsWith('none ('));
    if (!services || none !== undefined)
      return { services: '', counts: '', missing: `not here: ${none ?? lines.at(-1) ?? 'no output'}` };
    // The name of each failed test, and its error.
    for (const line of lines.filter((each) => /^ *FAIL |^\w*Error: /.test(each))) console.error(line);
    return { services: services.slice(1).join(', '), counts: lines.at(-1) ?? '' };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

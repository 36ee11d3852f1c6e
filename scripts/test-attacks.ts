import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * `npm run test:attacks [-- --json]`: runs the cases of `test/attacks` as `npm test` does, with the services they
 * need, and reports how each attack was refused. Exits with 1 unless all were.
 *
 * An attack is refused if every case with its number passed and at least one did. A skipped attack counts as not
 * refused.
 */
const ROOT = path.dirname(import.meta.dirname);
const [, TABLE = ''] = readFileSync(path.join(ROOT, 'docs/contributing/attacks.md'), 'utf8').split(
  '## The attacks',
);
const ATTACKS = Math.max(...[...TABLE.matchAll(/^\| (\d+) \|/gm)].map(([, n]) => Number(n)));

interface Case {
  title: string;
  status: string;
  meta?: { refusedAs?: string[] };
}

interface Outcome {
  attack: number;
  /** Name of its first case. */
  name: string;
  refused: boolean;
  /** Error codes, or what happened instead. */
  as: string[];
  cases: number;
  /** Titles of the cases that failed or were skipped. */
  open: string[];
}

const isJson = process.argv.includes('--json');
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== '--json'));

async function main(args: readonly string[]): Promise<number> {
  const scratch = mkdtempSync(path.join(tmpdir(), 'troupe-attacks-'));
  const report = path.join(scratch, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const code = await run(['test/run.ts', '--project', 'embedded', 'test/attacks', ...reporters, ...args]);
    const outcomes = outcomesOf(casesIn(report));
    const refused = outcomes.filter((each) => each.refused).length;
    if (isJson) console.log(JSON.stringify({ refused, attacks: ATTACKS, outcomes }, null, 2));
    else for (const line of linesOf(outcomes)) console.log(line);
    return refused === ATTACKS && code === 0 ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** With `--json` standard output carries only the report. */
function run(args: readonly string[]): Promise<number> {
  const stdio = ['inherit', isJson ? 2 : 'inherit', 'inherit'] as const;
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: [...stdio] });
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
}

/** Empty when the tests ended before they wrote a report. */
function casesIn(report: string): Case[] {
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
      testResults: { assertionResults: Case[] }[];
    };
    return testResults.flatMap(({ assertionResults }) => assertionResults);
  } catch {
    return [];
  }
}

function outcomesOf(all: readonly Case[]): Outcome[] {
  return Array.from({ length: ATTACKS }, (_, index) => {
    const prefix = `attack ${index + 1}: `;
    const cases = all.filter(({ title }) => title.startsWith(prefix));
    const open = cases.filter(({ status }) => status !== 'passed').map(({ title }) => title);
    return {
      attack: index + 1,
      name: cases[0]?.title.slice(prefix.length) ?? 'no case',
      refused: cases.length > 0 && open.length === 0,
      as: [...new Set(cases.flatMap(({ meta }) => meta?.refusedAs ?? []))],
      cases: cases.length,
      open,
    };
  });
}

function linesOf(outcomes: readonly Outcome[]): string[] {
  const lines = outcomes.map(({ attack, name, refused, as, open }) => {
    const how = refused ? `refused: ${as.join(' | ')}` : `NOT REFUSED: ${open.join(' | ') || 'no case ran'}`;
    return `${`${attack}`.padStart(2)}  ${name}\n      ${how}`;
  });
  const refused = outcomes.filter((each) => each.refused).length;
  return [...lines, `${refused} of ${outcomes.length} attacks refused`];
}

import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { FEATURES } from '../../turn-weight/features.ts';
import { compare, nextRecord, SAVE, type TurnRecord } from '../../turn-weight/ratchet.ts';
import { functionLines, parseFunctions, readRecord } from '../../turn-weight/record-files.ts';
import type { Report, SceneReport } from '../../turn-weight/report.ts';

const ROOT = path.dirname(path.dirname(import.meta.dirname));

/** Counted in a process of its own: what is loaded here is transformed for the tests. */
async function weigh(...args: string[]): Promise<Report> {
  const { PATH, HOME, TMPDIR } = process.env;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [path.join(ROOT, 'turn-weight/run.ts'), '--counted', '--json', ...args],
    { cwd: ROOT, env: { PATH, HOME, TMPDIR }, maxBuffer: 64 * 1_024 * 1_024 },
  );
  return JSON.parse(stdout) as Report;
}

describe('a warm turn', () => {
  let report: Report;
  beforeAll(async () => {
    report = await weigh();
  });

  test('executes and writes what the record says: what is more is refused, and what is less is written down', () => {
    const differences = compare(readRecord(), report);
    expect(differences, differences.join('\n')).toEqual([]);
  });

  test('is counted for each kind of turn and each door', () => {
    expect(report.scenes.map(({ scene }) => scene)).toEqual(Object.keys(readRecord().scenes));
  });

  test('has the same counts when it is weighed alone', async () => {
    const { scenes } = await weigh('--scene', 'handover');
    expect(scenes).toEqual(report.scenes.filter(({ scene }) => scene === 'handover'));
  });

  test('waits for the disk, as all that is acknowledged does', () => {
    for (const { scene, synced, transactions } of report.scenes) {
      expect(synced, scene).toBeGreaterThanOrEqual(2);
      expect(transactions, scene).toBeGreaterThanOrEqual(synced);
    }
  });
});

test('each feature that a plain turn must not execute has files', () => {
  const files = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((file) =>
    file.replaceAll(path.sep, '/'),
  );
  const without = Object.entries(FEATURES).filter(([, fits]) => !files.some((file) => fits.test(file)));
  expect(without.map(([feature]) => feature)).toEqual([]);
});

describe('the record', () => {
  const scene = (of: Partial<SceneReport>): SceneReport => ({
    scene: 'plain',
    files: 1,
    functions: 2,
    calls: 3,
    statements: 4,
    transactions: 3,
    synced: 2,
    list: { 'turn.ts begin': 1, 'turn.ts commit': 2 },
    sql: [],
    elsewhere: { packages: 0, node: 0 },
    ...of,
  });
  const reportOf = (of: Partial<SceneReport> = {}): Report => ({ node: 'v1', scenes: [scene(of)] });
  const NOTHING: TurnRecord = { node: '', scenes: {}, raised: [], functions: new Map() };
  const record = nextRecord(NOTHING, reportOf(), undefined);
  const heavier = {
    functions: 3,
    list: { 'turn.ts begin': 1, 'turn.ts commit': 1, 'steering/steer.ts steer': 1 },
    files: 2,
  };
  const lighter = { functions: 1, list: { 'turn.ts begin': 3 } };

  test('is met by the same counts', () => {
    expect(compare(record, reportOf())).toEqual([]);
  });

  test('names the functions that are new when a turn is heavier', () => {
    expect(compare(record, reportOf(heavier))).toEqual([
      'plain: 2 files, more than the 1 of the record',
      'plain: 3 functions, more than the 2 of the record',
      'plain: 1 files of features that are off, more than the 0 of the record',
      'plain: runs steering/steer.ts steer, which is not in the record',
      expect.stringContaining('Make it lighter'),
    ]);
  });

  test('is lowered when a turn is lighter, by the command that is named', () => {
    expect(compare(record, reportOf(lighter))).toEqual([
      'plain: 1 functions, fewer than the 2 of the record',
      'plain: no longer runs turn.ts commit',
      `Write the record anew: ${SAVE}`,
    ]);
    const next = nextRecord(record, reportOf(lighter), undefined);
    expect(compare(next, reportOf(lighter))).toEqual([]);
  });

  test('is not raised without a reason, and keeps the reason until the count is as low again', () => {
    expect(() => nextRecord(record, reportOf(heavier), undefined)).toThrow(/functions 2 → 3[^]*--raise/);
    expect(() => nextRecord(record, reportOf(heavier), ' ')).toThrow(/--raise/);
    const raised = nextRecord(record, reportOf(heavier), 'people steer');
    expect(raised.raised).toEqual([
      { scene: 'plain', count: 'files', from: 1, to: 2, reason: 'people steer' },
      { scene: 'plain', count: 'functions', from: 2, to: 3, reason: 'people steer' },
      { scene: 'plain', count: 'off', from: 0, to: 1, reason: 'people steer' },
    ]);
    expect(nextRecord(raised, reportOf(heavier), undefined).raised).toEqual(raised.raised);
    expect(nextRecord(raised, reportOf(), undefined).raised).toEqual([]);
  });

  test('holds calls only for the Node that counted them', () => {
    expect(compare(record, reportOf({ calls: 9 }))).toHaveLength(2);
    expect(compare(record, { ...reportOf({ calls: 9 }), node: 'v2' })).toEqual([]);
  });

  test('has a line for each function, with the turns that execute it', () => {
    const all = ['plain', 'tool', 'mcp'];
    const functions = new Map([
      ['a.ts one', all],
      ['a.ts two', ['tool', 'mcp']],
      ['b.ts three', ['mcp']],
    ]);
    const text = functionLines(functions, all);
    expect(text).toBe('a.ts one · *\na.ts two · * -plain\nb.ts three · mcp\n');
    expect(parseFunctions(text, all)).toEqual(functions);
  });
});

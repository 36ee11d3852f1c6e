import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createStoryClock, demoCompany, newTestRun } from '../../examples/demo/company.ts';
import { playAll } from '../../examples/demo/scenes.ts';
import { jsonScreen } from '../../examples/demo/screen.ts';
import { Stage } from '../../examples/demo/stage.ts';
import { createTroupe } from '../../src/index.ts';
import { rowOf } from '../../src/library/projection/row.ts';
import { DATA, HAS_DATA, realLogs } from '../support/real-logs.ts';
import { folded } from './logs.ts';

test('the demo gives ten turns of three agents, their missed messages and one handoff', async () => {
  const clock = createStoryClock();
  const testRun = newTestRun();
  await using troupe = await createTroupe(demoCompany({ slow: false, testRun }), { clock });
  const stage = new Stage(
    troupe,
    'c',
    jsonScreen(() => undefined),
  );
  await playAll({ stage, pass: (minutes) => clock.pass(minutes), testRun, rest: async () => undefined });
  const { events } = await troupe.events('c');
  const { agents, turns, totals, tasks, arrows } = folded(events);
  expect(
    turns.map(({ id, trigger, missed, status, retries, callCount, handoff }) =>
      [id, trigger?.name, missed?.count ?? 0, status, retries, callCount, handoff?.to.join() ?? ''].join(' '),
    ),
  ).toEqual([
    'c:planner:1 Ana 0 done 0 0 ',
    'c:coder:1 Ben 2 done 0 0 ',
    'c:reviewer:1 Ana 4 done 0 0 ',
    'c:coder:2 Ben 2 done 0 0 ',
    'c:planner:2 Ana 6 done 0 0 ',
    'c:planner:3 Ana 0 done 0 1 coder',
    'c:coder:3 Planner 3 done 0 0 ',
    'c:reviewer:2 Ben 7 done 1 0 ',
    'c:coder:4 Ana 2 done 0 1 ',
    'c:coder:5 Ben 0 done 0 0 ',
  ]);
  expect(Object.values(agents).map(({ id, condition, pending }) => [id, condition, pending])).toEqual([
    ['planner', 'idle', []],
    ['coder', 'idle', []],
    ['reviewer', 'idle', []],
  ]);
  expect(totals).toMatchObject({ events: events.length, turns: 10, failed: 0, running: 0, compactions: 0 });
  expect([tasks, arrows.length]).toEqual([[], 10]);
  const rows = events.map(rowOf);
  expect(rows.filter(({ level }) => level === 'problem').map(({ kind, agent }) => [kind, agent])).toEqual([
    ['error', 'reviewer'],
  ]);
  expect(rows.every(({ summary }) => summary !== '')).toBe(true);
});

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

describe.runIf(HAS_DATA)('real transcripts', () => {
  const files = HAS_DATA
    ? readdirSync(DATA, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.jsonl'))
    : [];
  test('give agents without turns and a row for every event', async () => {
    let read = 0;
    for (const file of files.slice(0, 6)) {
      const logs = await realLogs(file).catch(() => []);
      for (const log of logs.slice(0, 20)) {
        read += log.length;
        const { agents, turns, totals, seq } = folded(log);
        expect([seq, totals.events]).toEqual([log.length, log.length]);
        expect(totals.running).toBe(turns.filter(({ status }) => status === 'running').length);
        for (const { condition } of Object.values(agents)) expect(['idle', 'failed']).toContain(condition);
        for (const event of log) expect(rowOf(event).summary.length).toBeLessThanOrEqual(200);
      }
    }
    expect(read).toBeGreaterThan(0);
  });
});

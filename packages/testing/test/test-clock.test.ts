import { expect, test } from 'vitest';
import { createTroupe, defineTool, type ScriptInput, type Troupe } from '../../../src/index.ts';
import * as z from 'zod';
import { cpuMsOf } from '../../../test/support/cpu-ms.ts';
import { createFakeClock } from '../src/fake-clock.ts';
import { createTestClock } from '../src/index.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 5, 9);

const desk = (rules: ScriptInput['rules'], tools: string[] = []) => ({
  id: 'desk',
  provider: 'scripted' as const,
  script: { rules },
  tools,
});
const fallback = { defaults: { respondWhenUnaddressed: 'desk' } };

async function said(troupe: Troupe): Promise<[string, number][]> {
  const { events } = await troupe.events('c');
  return events.flatMap(({ kind, author, body, at }) =>
    kind === 'message' && author.kind === 'agent'
      ? [[(body as { content: string }).content, at - START]]
      : [],
  );
}

const reminders: ScriptInput['rules'] = [
  { when: { contains: 'call Ben' }, reply: 'Call Ben!' },
  { when: { step: 2 }, reply: 'I will.' },
  {
    when: { contains: 'Remind' },
    calls: [{ name: 'remind', args: { text: 'call Ben', inMinutes: 2 * 24 * 60 } }],
  },
];

test('three days pass in less than 50 ms of CPU, and the reminder of the second comes on it', async () => {
  const clock = createTestClock();
  await using troupe = await createTroupe({ agents: [desk(reminders, ['remind'])], ...fallback }, { clock });
  await troupe.send('c', { author: ANA, content: 'Remind me.' });
  await troupe.idle();
  expect(await said(troupe)).toEqual([['I will.', 0]]);
  const first = await cpuMsOf(() => clock.pass(3 * DAY));
  expect(clock.now()).toBe(START + 3 * DAY);
  expect(await said(troupe)).toEqual([
    ['I will.', 0],
    ['Call Ben!', 2 * DAY],
  ]);
  // The first run also compiles code, so the fastest of three counts.
  const later = [await cpuMsOf(() => clock.pass(3 * DAY)), await cpuMsOf(() => clock.pass(3 * DAY))];
  expect(Math.min(first, ...later)).toBeLessThan(50);
});

test('idle ends while the clock stands and a turn waits to try again; the time that passes lets it go on', async () => {
  const clock = createTestClock();
  const rules = [{ when: { call: 1 }, fail: { code: 'provider_overloaded' } }, { reply: 'Here.' }];
  await using troupe = await createTroupe({ agents: [desk(rules)], ...fallback }, { clock });
  await troupe.send('c', { author: ANA, content: 'Are you there?' });
  await troupe.idle();
  await troupe.idle({ conversation: 'c' });
  expect(await said(troupe)).toEqual([]);
  const ms = clock.untilNext() ?? 0;
  expect(ms).toBeGreaterThan(0);
  await clock.pass(ms);
  expect(await said(troupe)).toEqual([['Here.', Math.floor(ms)]]);
  expect(clock.untilNext()).toBeNull();
});

test('a scripted model that takes its time takes none of the test', async () => {
  const clock = createTestClock();
  const rules = [{ reply: 'At last.', delayMs: 6 * HOUR, chunk: 4, chunkDelayMs: 1_000 }];
  await using troupe = await createTroupe({ agents: [desk(rules)], ...fallback }, { clock });
  const answer = troupe.ask('c', { author: ANA, content: 'Well?' });
  await troupe.idle();
  await clock.pass(7 * HOUR);
  expect((await answer).text).toBe('At last.');
  expect(await said(troupe)).toEqual([['At last.', 6 * HOUR + 1_000]]);
});

test('idle does not end while a tool is at work, and its work takes no time on the clock', async () => {
  const clock = createTestClock();
  const working = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const slow = defineTool({
    name: 'slow',
    description: 'Takes its time.',
    schema: z.object({}),
    run() {
      begun.resolve();
      return working.promise;
    },
  });
  const rules = [{ when: { step: 2 }, reply: '{{last}}' }, { calls: [{ name: 'slow', args: {} }] }];
  await using troupe = await createTroupe(
    { agents: [desk(rules, ['slow'])], tools: [slow], ...fallback },
    { clock },
  );
  await troupe.send('c', { author: ANA, content: 'Go.' });
  await begun.promise;
  let isIdle = false;
  const idle = troupe.idle().then(() => (isIdle = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isIdle).toBe(false);
  working.resolve('done');
  await idle;
  expect(await said(troupe)).toEqual([['done', 0]]);
});

test('an approval that nobody decides is denied once its time has passed, and each day of a schedule comes', async () => {
  const clock = createTestClock();
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    schema: z.object({}),
    needsApproval: { deadlineMs: DAY },
    run: () => 'paid',
  });
  const rules: ScriptInput['rules'] = [
    { when: { contains: 'Good morning' }, reply: 'Morning.' },
    { when: { matches: 'denied|nobody decided' }, reply: 'Not paid.' },
    { when: { contains: 'Pay' }, calls: [{ name: 'pay', args: {} }] },
  ];
  const schedules = [
    { name: 'morning', cron: '0 8 * * *', conversation: 'd', to: 'desk', content: 'Good morning' },
  ];
  await using troupe = await createTroupe(
    { agents: [desk(rules, ['pay'])], tools: [pay], schedules, ...fallback },
    { clock },
  );
  await troupe.send('c', { author: ANA, content: 'Pay.' });
  await clock.pass(3 * DAY);
  expect(await said(troupe)).toEqual([['Not paid.', DAY]]);
  const { events } = await troupe.events('d');
  const mornings = events.filter(({ kind, author }) => kind === 'message' && author.kind === 'system');
  expect(mornings.map(({ at }) => at - START)).toEqual([DAY - HOUR, 2 * DAY - HOUR, 3 * DAY - HOUR]);
});

test('limits that really run out count as time, those of upkeep do not, and pauses end with pass alone', async () => {
  const system = createFakeClock();
  const clock = createTestClock({}, system);
  const upkeep = clock.sleep(20_000, undefined, 'upkeep');
  await system.advance(20_000);
  await upkeep;
  expect(clock.now()).toBe(START);
  const limit = clock.sleep(20_000);
  await system.advance(20_000);
  await limit;
  expect(clock.now()).toBe(START + 20_000);
  let isOver = false;
  void clock.sleep(20_000, undefined, 'pause').then(() => (isOver = true));
  await system.advance(60_000);
  expect(isOver).toBe(false);
  await clock.pass(20_000);
  expect(isOver).toBe(true);
});

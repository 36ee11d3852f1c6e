import { expect, test } from 'vitest';
import { createTestClock } from '../../packages/testing/src/index.ts';
import type { Troupe } from '../../src/index.ts';
import type { ScriptInput } from '../../src/providers/script.ts';
import { ANA } from '../support/engine-stage.ts';
import { openTroupe } from '../support/mode.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function said(troupe: Troupe): Promise<[string, number][]> {
  const { events } = await troupe.events('c');
  const [{ at: began } = { at: 0 }] = events;
  return events.flatMap(({ kind, author, body, at }) =>
    kind === 'message' && author.kind === 'agent'
      ? [[(body as { content: string }).content, at - began]]
      : [],
  );
}

const desk = (rules: ScriptInput['rules'], tools: string[] = []) => ({
  agents: [{ id: 'desk', provider: 'scripted' as const, script: { rules }, tools }],
  defaults: { respondWhenUnaddressed: 'desk' },
});

test('time that a test moves brings what is due, one after the other, and each may lead to the next', async () => {
  const clock = createTestClock();
  const again = { name: 'remind', args: { text: 'water the flowers', inMinutes: 24 * 60 } };
  const rules = [{ when: { step: 2 }, reply: 'Watered {{n}}.' }, { calls: [again] }];
  await using troupe = await openTroupe(desk(rules, ['remind']), { clock });
  await troupe.send('c', { author: ANA, content: 'Water the flowers every day.' });
  // Limits of servers are real and count: each reminder may come later than a day after the one before.
  await clock.pass(3 * DAY + HOUR);
  expect((await said(troupe)).map(([words, at]) => [words, Math.floor(at / DAY)])).toEqual([
    ['Watered 1.', 0],
    ['Watered 2.', 1],
    ['Watered 3.', 2],
    ['Watered 4.', 3],
  ]);
});

test('a turn that waits to try again is no work, and goes on at its time', async () => {
  const clock = createTestClock();
  const rules = [{ when: { call: 1 }, fail: { code: 'provider_overloaded' } }, { reply: 'Here.' }];
  await using troupe = await openTroupe(desk(rules), { clock });
  await troupe.send('c', { author: ANA, content: 'Are you there?' });
  await troupe.idle();
  expect(await said(troupe)).toEqual([]);
  await clock.pass(HOUR);
  expect((await said(troupe)).map(([words]) => words)).toEqual(['Here.']);
});

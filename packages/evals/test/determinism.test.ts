import { expect, test } from 'vitest';
import { minutesPass, person, playConversation } from '../src/index.ts';
import { support } from './support-company.ts';

const [mia, dana] = [person('mia'), person('dana')];
const STEPS = [
  mia.says('It costs more than you promised.'),
  minutesPass(31),
  dana.answers('refund it'),
  mia.says('Thank you.'),
];

test('the same script gives the same bytes: events, dates and prompts', async () => {
  const [first, second] = [await playConversation(support, STEPS), await playConversation(support, STEPS)];
  expect(first.events.length).toBeGreaterThan(20);
  expect(JSON.stringify(second)).toBe(JSON.stringify(first));
  expect(first.turns.flatMap(({ prompts }) => prompts.map(({ verified }) => verified))).not.toContain(false);
});

test('time passes only where the script says so', async () => {
  const still = await playConversation(support, 'There is a charge on my invoice.');
  expect(new Set(still.events.map(({ at }) => at))).toEqual(new Set([Date.UTC(2026, 0, 5, 9)]));
  const run = await playConversation(support, STEPS);
  expect(run.durationMs).toBe(31 * 60_000);
});

import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { type Company, company, ROOM, UMA } from '../support/company.ts';

/** About 600 tokens, short enough to be shown whole. */
const report = (day: number) =>
  Array.from({ length: 60 }, (_, line) => `day ${day}, line ${line}: all quiet`).join('\n');
const look = defineTool({
  name: 'look',
  description: 'The report of a day.',
  schema: z.object({ day: z.number() }),
  run({ day }) {
    if (day === 1) throw new Error(report(1));
    return report(day);
  },
});

/** An agent that looks at the day it is asked about. */
function observer(prune: { protectTokens: number; minGain: number }): Promise<Company> {
  return company(['p'], {
    tools: [look],
    agents: { p: { contextWindow: 8_000, maxOutputTokens: 200, tools: ['look'] } },
    answers: {
      p({ body }) {
        const { messages } = body as { messages: { role: string; content: string }[] };
        const last = messages.at(-1);
        const [, day] = /look at day (\d+)/.exec(last?.content ?? '') ?? [];
        if (last?.role !== 'user' || !day) return { text: 'I see.', usage: null };
        return { calls: [{ name: 'look', args: JSON.stringify({ day: Number(day) }) }], usage: null };
      },
    },
    definition: { context: { summaries: 'extract' } },
    constants: { policy: { prune } },
  });
}

async function prunesAfter(room: Company, days: number): Promise<{ events: string[] }[]> {
  for (let day = 1; day <= days; day++) await room.say(UMA, 'p', `look at day ${day}`);
  const { events } = await room.troupe.events(ROOM, { limit: 5_000 });
  return events.flatMap((event) => (event.kind === 'prune' ? [event.body] : []));
}

const days = (room: Company) =>
  room
    .raw('p')
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => /removed to make room/.test(content ?? ''));

test('a prune leaves calls, failures, the results of the two newest turns and the protected newest ones', async () => {
  await using room = await observer({ protectTokens: 2_500, minGain: 500 });
  const prunes = await prunesAfter(room, 9);
  expect(prunes.length).toBeGreaterThan(0);
  const removed = days(room);
  // Every call is still there, with a result or a placeholder.
  expect(removed).toHaveLength(9);
  expect(room.raw('p').filter(({ tool_calls: calls }) => calls)).toHaveLength(9);
  // The first failed. Of the rest the oldest are removed, and what is protected stays: 2,500 tokens are four results.
  expect(removed[0]).toBe(false);
  expect(removed[1]).toBe(true);
  expect(removed.slice(-4)).toEqual([false, false, false, false]);
});

test('without protected tokens the results of the two newest turns stay', async () => {
  await using room = await observer({ protectTokens: 0, minGain: 500 });
  await prunesAfter(room, 9);
  expect(days(room).slice(-2)).toEqual([false, false]);
  expect(days(room)).toContain(true);
});

test('a prune that would gain less than the least gain is not made: something else makes room', async () => {
  await using room = await observer({ protectTokens: 0, minGain: 1_000 });
  await room.say(UMA, 'p', 'look at day 2');
  for (let n = 0; n < 9; n++)
    await room.say(UMA, 'p', `note ${n}: ${'the shop opens late on Mondays. '.repeat(90)}`);
  const { events } = await room.troupe.events(ROOM, { limit: 5_000 });
  const kinds = events.map(({ kind }) => kind);
  expect(kinds).toContain('compaction');
  expect(kinds).not.toContain('prune');
});

import fc from 'fast-check';
import { expect } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { attack } from './attack.ts';
import { ANA, type Asked, type AttackStage, EVE, only, openStage, statusOf, withKey } from './stage.ts';

const report = defineTool({
  name: 'report',
  description: 'The report of a day.',
  schema: z.looseObject({}),
  run: () => 'all quiet at the harbour, as on the day before; '.repeat(60),
});

/** @bo reads its report and gives @cy a task in turn, until its full window must be compacted. */
function answer({ agent, number, messages }: Asked) {
  if (agent !== 'bo' || messages.at(-1)?.role !== 'user') return { text: `fine, ${agent}`, usage: null };
  const calls = [{ name: 'report', args: '{}' }];
  if (number % 3 === 0)
    calls.push({ name: 'delegate', args: JSON.stringify({ to: 'cy', task: `no. ${number}` }) });
  return { calls, usage: null };
}

const AGENTS = [
  { id: 'bo', tools: ['report', 'delegate'], contextWindow: 8_000, maxOutputTokens: 500 },
  'cy',
] as never;
const TURNS = 12;

async function play(stage: AttackStage, before?: (turn: number) => Promise<void>): Promise<void> {
  for (let turn = 1; turn <= TURNS; turn += 1) {
    await before?.(turn);
    await stage.say('c', `turn ${turn}?`, { to: ['bo'] });
  }
}

async function idsIn(stage: AttackStage): Promise<Map<string, string[]>> {
  const ids = new Map<string, string[]>();
  for (const { id } of await stage.troupe.conversations()) {
    const own = (await stage.events(id)).filter(
      ({ author, kind }) => author.kind !== 'user' || kind !== 'message',
    );
    ids.set(
      id,
      own.map((event) => event.id),
    );
  }
  return ids;
}

attack(29, 'a writer that takes every id that an agent will need next stops no agent', async (refused) => {
  const options = {
    agents: AGENTS,
    tools: [report],
    answer,
    company: { context: { summaries: 'extract' as const } },
    troupe: { constants: { policy: { prune: { protectTokens: 500, minGain: 500 } } } },
  };
  // The runtime will create the same ids as in the same conversation elsewhere.
  await using elsewhere = await openStage(options);
  await play(elsewhere);
  const ids = await idsIn(elsewhere);
  const minted = [...ids.values()].flat();
  for (const part of [':relief:', ':completed:', ':compaction.', ':opened', ':end', 'baseline:'])
    expect(
      minted.find((id) => id.includes(part)),
      part,
    ).toBeDefined();

  const traffic = { requestsPerSecond: 10_000, messagesPerSecond: 10_000 };
  await using stage = await openStage({ ...options, guarded: true, app: { traffic } });
  const writer = await withKey(stage, 'default', { scopes: ['write'] });
  const operator = await withKey(stage, 'default');
  stage.say = async (conversation, content, more = {}) => {
    const path = `/api/conversations/${conversation}/events`;
    const answered = await operator(path, { body: { author: ANA, content, ...more } });
    await stage.troupe.idle();
    return answered;
  };
  const take = async (conversation: string, id: string) =>
    statusOf(
      await writer(`/api/conversations/${conversation}/events`, { body: { id, author: EVE, content: 'x' } }),
    );
  await play(stage, async (turn) => {
    // Takes all ids before the first turn, and those of the next turn before each.
    for (const [conversation, all] of ids)
      for (const id of all)
        if (turn === 1 || id.startsWith(`c:bo:${turn}:`))
          expect(await take(conversation, id)).toBe('409 event_conflict');
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._@-]{0,9}$/), { minLength: 2, maxLength: 5 }),
      async (parts) => {
        expect(await take('c', parts.join(':'))).toBe('409 event_conflict');
      },
    ),
    { numRuns: 40 },
  );
  refused('409 event_conflict');

  const events = await stage.events('c');
  expect(events.filter(({ author }) => author.id === EVE.id)).toEqual([]);
  expect(only(events, 'turn.done').length).toBeGreaterThanOrEqual(TURNS);
  expect(only(events, 'turn.started')).toHaveLength(
    events.filter(({ kind }) => /^turn\.(done|failed|aborted)$/.test(kind)).length,
  );
  for (const { id } of await stage.troupe.conversations())
    for (const { status } of await stage.troupe.actors(id)) expect(status).toBe('idle');
  refused('every turn ended');
});

import { expect } from 'vitest';
import type { EventOf, Guard } from '../../src/events/index.ts';
import type { FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { attack } from './attack.ts';
import { type Asked, type AttackStage, only, openStage, type StageOptions } from './stage.ts';

const LIMITS = { maxHops: 5, maxDepth: 3, maxAgentTurns: 6, maxSteps: 5 };
const ENOUGH = 'that is enough';

type Answers = NonNullable<StageOptions['answer']>;

/** Goes on forever, until a person ends it. */
function tireless(answer: (asked: Asked) => FakeReply): Answers {
  return (asked) => (asked.last.includes(ENOUGH) ? { text: 'as you wish' } : answer(asked));
}

function handsOver(next: Record<string, string>): Answers {
  return tireless(({ agent }) => ({
    calls: [{ name: 'handoff', args: JSON.stringify({ to: next[agent], goal: 'go on' }) }],
  }));
}

function delegates(next: Record<string, string>, more: object = {}): Answers {
  return tireless(({ agent, number }) => ({
    calls: [{ name: 'delegate', args: JSON.stringify({ to: next[agent], task: `part ${number}`, ...more }) }],
  }));
}

async function open(ids: readonly string[], answer: Answers): Promise<AttackStage> {
  const agents = ids.map((id) => ({ id, tools: ['handoff', 'delegate'] }));
  return openStage({ agents, answer, troupe: { constants: { limits: LIMITS } } });
}

async function stopsOf(stage: AttackStage): Promise<EventOf<'guard.stopped'>[]> {
  const conversations = await stage.troupe.conversations();
  const logs = await Promise.all(conversations.map(({ id }) => stage.events(id)));
  return only(logs.flat(), 'guard.stopped');
}

/** Maximum number of calls before a loop is stopped, with these limits. */
const MOST_CALLS = 60;

const CIRCLES: [name: string, agents: string[], answer: Answers, guard: Guard][] = [
  ['hand-overs of two', ['a', 'b'], handsOver({ a: 'b', b: 'a' }), 'hops'],
  ['hand-overs of three', ['a', 'b', 'c'], handsOver({ a: 'b', b: 'c', c: 'a' }), 'hops'],
  ['tasks of two', ['a', 'b'], delegates({ a: 'b', b: 'a' }), 'cycle'],
  ['tasks of three', ['a', 'b', 'c'], delegates({ a: 'b', b: 'c', c: 'a' }), 'cycle'],
  ['tasks that are forced', ['a', 'b'], delegates({ a: 'b', b: 'a' }, { force: true }), 'depth'],
  ['tasks for oneself', ['a'], delegates({ a: 'a' }), 'cycle'],
];

attack(
  9,
  'a loop among agents is stopped with a visible event, and people get answers again',
  async (refused) => {
    for (const [name, agents, answer, guard] of CIRCLES) {
      await using stage = await open(agents, answer);
      await stage.say('c', 'begin', { to: ['a'] });
      const calls = stage.vendor.requests.length;
      expect(calls, name).toBeLessThan(MOST_CALLS);
      const stops = await stopsOf(stage);
      expect(
        stops.map(({ body }) => body.guard),
        name,
      ).toContain(guard);
      for (const { author, body } of stops) {
        expect([author.kind, body.message, body.goOn]).toEqual([
          'system',
          expect.any(String),
          expect.stringMatching(/./),
        ]);
      }
      await stage.troupe.idle();
      expect(stage.vendor.requests, name).toHaveLength(calls);
      await stage.say('c', ENOUGH, { to: ['a'] });
      expect(only(await stage.events('c'), 'message').at(-1), name).toMatchObject({
        body: { content: 'as you wish' },
      });
      refused(`guard.stopped ${guard}`);
    }
  },
);

attack(9, 'two conversations that an application copies to each other come to an end', async (refused) => {
  await using stage = await open(
    ['a', 'b'],
    tireless(({ agent }) => ({ text: `and you, says ${agent}?` })),
  );
  const copies: Promise<unknown>[] = [];
  stage.troupe.watch((note) => {
    if (note.type !== 'event' || note.event.kind !== 'message' || note.event.turn === undefined) return;
    const { author, conversation, body } = note.event;
    const [other, to] = conversation === 'c' ? ['d', 'b'] : ['c', 'a'];
    copies.push(
      stage.troupe.send(other, { author, content: `(from ${author.id}) ${body.content}`, to: [to] }),
    );
  });
  await stage.say('c', 'begin', { to: ['a'] });
  for (let known = -1; known !== copies.length;) {
    known = copies.length;
    await Promise.all(copies);
    await stage.troupe.idle();
  }
  expect(stage.vendor.requests.length).toBeLessThanOrEqual(2 * LIMITS.maxAgentTurns);
  expect((await stopsOf(stage)).map(({ body }) => body.guard)).toContain('agent_turns');
  refused('guard.stopped agent_turns');
});

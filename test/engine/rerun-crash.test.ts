import { expect, test } from 'vitest';
import * as z from 'zod';
import type { CommandOf, ConversationId, TurnId } from '../../src/events/index.ts';
import { createFakeSessions, newSessionMemory } from '../../packages/testing/src/fake-sessions.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, modelOf, says } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';
import { forkedAs, given } from '../support/fork-stage.ts';
import { allLogs, type Play, playKilledAt } from '../support/killed-play.ts';

const TURN = 'c:bo:1' as TurnId;

const acknowledged = new WeakSet<Stage>();

async function rerun(stage: Stage, about: Partial<CommandOf<'rerun'>> = {}) {
  return stage.troupe.command({ command: 'rerun', turn: TURN, ...about }, ANA);
}

async function withOtherResult(stage: Stage) {
  const [call = ''] = (await stage.events('c')).flatMap((event) =>
    event.kind === 'tool.result' ? [event.body.call as string] : [],
  );
  const change = { kind: 'toolResult' as const, call, result: '0 left' };
  return rerun(stage, { as: 'd' as ConversationId, change });
}

/** Answers are a function of the request, so that every process answers alike. */
const ORIGINAL: Play = {
  options: {
    tools: [
      defineTool({
        name: 'stock',
        description: 'stock',
        schema: z.looseObject({}),
        run: () => '40 in stock',
      }),
    ],
    agents: [
      {
        id: 'bo',
        tools: ['stock'],
        model: modelOf(async function* ({ messages }) {
          const result = messages.findLast(({ role }) => role === 'tool')?.content;
          yield* result === undefined ? asks(['stock', {}]) : says(`there are ${result}`);
        }),
      },
    ],
  },
  async act(stage) {
    if ((await stage.events('c')).length === 0) await stage.say('c', 'how many?', ['bo'], 'begin');
  },
};

const PLAY: Play = {
  ...ORIGINAL,
  async act(stage) {
    await ORIGINAL.act(stage);
    const isOver = (await stage.events('c')).some(({ kind }) => kind === 'turn.done');
    if (acknowledged.has(stage) || !isOver) return;
    await withOtherResult(stage);
    acknowledged.add(stage);
  },
};

async function told(stage: Stage) {
  return [...(await allLogs(stage))].map(([id, events]) => [
    id,
    events.map(({ seq, id: event, kind, body }) => [seq, event, kind === 'message' ? body.content : kind]),
  ]);
}

test('a process that dies while a turn is run again leaves a fork that a repeated command completes, with the turn run once from the record', async () => {
  const { points: before } = await playKilledAt(0, ORIGINAL);
  const calm = await playKilledAt(0, PLAY);
  const expected = await told(calm.stage);
  expect(expected.map(([id]) => id)).toEqual(['c', 'd']);
  expect(JSON.stringify(expected[1])).toContain('there are 0 left');
  for (let point = before.length + 1; point <= calm.points.length; point++) {
    const { stage, died, driver } = await playKilledAt(point, PLAY);
    const where = `killed at ${point} of ${calm.points.length}: ${JSON.stringify(calm.points[point - 1])}`;
    expect(died, where).toBe(true);
    // Records leased by a dead process stay leased until the lease expires.
    await given(stage, [withOtherResult(stage)]);
    await stage.quiet();
    expect(await told(stage), where).toEqual(expected);
    expect([await stage.check('c'), await stage.check('d')], where).toEqual([[], []]);
    // Not awaited: a dead process may be in the middle of a call for ever.
    void driver.close();
  }
  console.log(`killed at each of ${calm.points.length - before.length} points`);
});

test('a turn of a provider with sessions is run again in a session of its own, with the calls that it makes itself', async () => {
  const memory = newSessionMemory();
  const answer = modelOf(async function* (request) {
    yield* says(request.messages.at(-1)?.content.includes('pears') ? 'pears, then' : 'apples, then');
  });
  const model = createFakeSessions({
    memory,
    answer: (request, signal) => answer.stream(request, { signal }),
  });
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'apples or what?', ['bo']);
  await stage.quiet();
  await expect(rerun(stage)).rejects.toMatchObject({ code: 'command_refused' });
  const change = { kind: 'message' as const, content: 'pears or what?' };
  const fork = forkedAs(await rerun(stage, { change, tools: 'run' }));
  await stage.quiet();
  const [first, second] = memory.seen;
  expect(second?.session).not.toBe(first?.session);
  expect(second?.transcript.join('\n')).not.toContain('apples');
  expect(await stage.troupe.compare(TURN, `${fork}:bo:1`)).toMatchObject({
    a: { words: 'apples, then' },
    b: { status: 'done', words: 'pears, then' },
  });
  // The next turns of both go on in their own sessions.
  await stage.say('c', 'apples still?', ['bo']);
  await stage.quiet();
  await stage.say(fork, 'pears still?', ['bo']);
  await stage.quiet();
  expect(memory.seen.slice(2)).toMatchObject(
    [first, second].map((seen) => ({ session: seen?.session, change: 'resumed' })),
  );
  expect([await stage.check('c'), await stage.check(fork)]).toEqual([[], []]);
});

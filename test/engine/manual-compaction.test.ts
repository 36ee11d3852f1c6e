import { expect, test } from 'vitest';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { ask, fill, kinds, mind, opening, progress, small, SUMMARY } from '../support/compaction-stage.ts';
import { says } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;
const C = 'c' as ConversationId;

function compact(stage: Stage, agent = 'bo') {
  return stage.troupe.command({ command: 'compact', conversation: C, agent: agent as AgentId }, ANA);
}

async function stateOf(stage: Stage) {
  return (await stage.troupe.state('c')).compactions;
}

test('the next turn of the agent compacts first, although there is room', async () => {
  const bo = mind();
  const stage = await openStage({ agents: [small('bo', bo)] });
  await fill(stage, 8);
  await ask(stage, 'and now?');
  expect(await kinds(stage, 'compaction.progress started')).toEqual([]);

  await compact(stage);
  expect(await stateOf(stage)).toEqual({ count: 0, running: [], requested: ['bo'], last: null });
  expect(bo.summaries()).toEqual([]);

  await ask(stage, 'go on');
  expect(bo.summaries()).toHaveLength(1);
  expect(opening(bo.asked().at(-1))).toContain(SUMMARY.split('\n')[1]);
  expect(bo.asked().at(-1)?.messages.at(-1)?.content).toContain('go on');
  const [done] = await progress(stage, 'done');
  expect(done?.body).toMatchObject({ agent: 'bo', reason: 'manual' });
  const { before, after } = done?.body.tokens ?? { before: 0, after: 0 };
  expect(after).toBeLessThan(before);
  expect(await stateOf(stage)).toEqual({
    count: 1,
    running: [],
    requested: [],
    last: {
      agent: 'bo',
      seq: done?.seq,
      at: done?.at,
      reason: 'manual',
      outcome: 'compacted',
      strategy: 'summary',
      tokens: { before, after },
    },
  });
});

test('it is done once: the turn after it only adds to the prompt', async () => {
  const bo = mind();
  const stage = await openStage({ agents: [small('bo', bo)] });
  await fill(stage, 8);
  await ask(stage, 'and now?');
  await compact(stage);
  await compact(stage);
  await ask(stage, 'go on');
  await ask(stage, 'and on');
  expect(await progress(stage, 'started')).toHaveLength(1);
  const [before, after] = bo.asked().slice(-2);
  expect(after?.messages.slice(0, before?.messages.length)).toEqual(before?.messages);
  expect(await stage.check('c')).toEqual([]);
});

test('only the agent that is named compacts', async () => {
  const [bo, cy] = [mind(), mind()];
  const stage = await openStage({ agents: [small('bo', bo), small('cy', cy)] });
  await fill(stage, 8);
  await ask(stage, 'and now?', ['bo', 'cy']);
  await compact(stage);
  await ask(stage, 'go on', ['bo', 'cy']);
  expect((await progress(stage, 'started')).map(({ body }) => body.agent)).toEqual(['bo']);
});

test('a command during a turn waits for the next one', async () => {
  const stage = await openStage({
    agents: [
      small(
        'bo',
        mind({
          turn: async function* () {
            if ((await stateOf(stage)).requested.length === 0) await compact(stage);
            yield* says('ok');
          },
        }),
      ),
    ],
  });
  await fill(stage, 8);
  await ask(stage, 'and now?');
  expect(await progress(stage, 'started')).toEqual([]);
  expect((await stateOf(stage)).requested).toEqual(['bo']);
  await ask(stage, 'go on');
  expect(await progress(stage, 'started')).toMatchObject([{ body: { reason: 'manual' } }]);
});

test('without anything to leave out the turn goes on, and the state says so', async () => {
  const bo = mind();
  const stage = await openStage({ agents: [small('bo', bo)] });
  await ask(stage, 'hello');
  await compact(stage);
  await ask(stage, 'go on');
  expect(bo.asked()).toHaveLength(2);
  expect(await progress(stage, 'failed')).toMatchObject([
    { body: { reason: 'manual', message: 'nothing more can be left out' } },
  ]);
  expect((await stateOf(stage)).last).toMatchObject({ outcome: 'failed', reason: 'manual' });
  await ask(stage, 'and on');
  expect(await progress(stage, 'failed')).toHaveLength(1);
});

test('an unknown agent and one that takes no turns are refused', async () => {
  const stage = await openStage({ agents: [small('bo', mind())] });
  await ask(stage, 'hello');
  await expect(compact(stage, 'zoe')).rejects.toMatchObject({ code: 'agent_unknown' });
  await stage.troupe.command({ command: 'leave', conversation: C, agent: 'bo' as AgentId }, ANA);
  await expect(compact(stage)).rejects.toMatchObject({ code: 'command_refused' });
});

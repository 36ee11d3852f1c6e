import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, inOrder, says } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';

/** Events by conversation that an act adds, for an agent that has spoken before. */
async function eventsOf(stage: Stage, act: () => Promise<unknown>): Promise<Record<string, number>> {
  const heads = new Map((await stage.troupe.conversations()).map(({ id, head }) => [id, head]));
  await act();
  await stage.quiet();
  const after = await stage.troupe.conversations();
  const grown = after.map(
    ({ id, head }) => [id.replace(/d-.*/, 'thread'), head - (heads.get(id) ?? 0)] as const,
  );
  return Object.fromEntries(grown.filter(([, events]) => events > 0));
}

const give = (to: string): [string, object] => ['delegate', { to, task: `do it, ${to}` }];

test('a message and its answer are 4 events; a task for another agent adds 6 here and 7 in its thread', async () => {
  const bo = inOrder(says('yes'), says('yes'), asks(give('cy')), says('done'));
  const cy = { id: 'cy', model: inOrder(says('result')) };
  const stage = await openStage({ agents: [{ id: 'bo', model: bo, tools: ['delegate'] }, cy] });
  const say = (content: string) => () => stage.say('c', content, ['bo']);
  await eventsOf(stage, say('hello'));
  expect(await eventsOf(stage, say('again'))).toEqual({ c: 4 });
  expect(await eventsOf(stage, say('do it'))).toEqual({ c: 10, 'c.thread': 7 });
});

test('each further task of a group adds 3 events here and 7 in its thread', async () => {
  const bo = inOrder(says('yes'), asks(give('cy'), give('di')), says('done'));
  const others = ['cy', 'di'].map((id) => ({ id, model: inOrder(says('result')) }));
  const stage = await openStage({ agents: [{ id: 'bo', model: bo, tools: ['delegate'] }, ...others] });
  await eventsOf(stage, () => stage.say('c', 'hello', ['bo']));
  expect(await eventsOf(stage, () => stage.say('c', 'do it', ['bo']))).toEqual({ c: 13, 'c.thread': 7 });
});

test('a question and its answer are 10 events, an approval and its call 12', async () => {
  const sign = defineTool({
    name: 'sign',
    description: 'Signs.',
    schema: z.object({}),
    needsApproval: true,
    run: () => 'signed',
  });
  const bo = inOrder(
    says('yes'),
    asks(['ask', { question: 'Which?' }]),
    says('that'),
    asks(['sign', {}]),
    says('signed'),
  );
  const stage = await openStage({ tools: [sign], agents: [{ id: 'bo', model: bo, tools: ['ask', 'sign'] }] });
  const { troupe } = stage;
  await eventsOf(stage, () => stage.say('c', 'hello', ['bo']));
  const open = async () => (await troupe.tasks('c', { open: true })).tasks[0]?.id ?? '';
  const conversation = (await troupe.state('c')).id;

  const asked = await eventsOf(stage, () => stage.say('c', 'which?', ['bo']));
  const question = await open();
  const answered = await eventsOf(stage, () =>
    troupe.command({ command: 'answer', conversation, question, content: 'this' }, ANA),
  );
  expect([asked, answered]).toEqual([{ c: 6 }, { c: 4 }]);

  const requested = await eventsOf(stage, () => stage.say('c', 'sign', ['bo']));
  const request = await open();
  const decided = await eventsOf(stage, () =>
    troupe.command({ command: 'decide', conversation, request, approved: true }, ANA),
  );
  expect([requested, decided]).toEqual([{ c: 6 }, { c: 6 }]);
});

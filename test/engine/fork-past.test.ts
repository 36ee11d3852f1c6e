import { expect, test } from 'vitest';
import * as z from 'zod';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { invalidities } from '../support/check-prompt.ts';
import { asks, gated, inOrder, says, shown } from '../support/engine-models.ts';
import { ANA, openStage, until } from '../support/engine-stage.ts';
import { at, fork } from '../support/fork-stage.ts';
import { ask, kinds, mind, of, pass, prose, small } from '../support/compaction-stage.ts';

const C = 'c' as ConversationId;
const D = 'd' as ConversationId;
const BO = 'bo' as AgentId;

const report = defineTool({
  name: 'report',
  description: 'reports',
  schema: z.object({ n: z.number() }),
  run: async ({ n }) => prose(n, 3_000),
});

test('pruned and summarised parts stay so in the fork, and its past prompt is rendered to the byte', async () => {
  const bo = mind({
    turn: ({ trace }) =>
      trace.step === 1 ? asks(['report', { n: Number(trace.turn.split(':')[2]) }]) : says('ok'),
  });
  const stage = await openStage({ tools: [report], agents: [small('bo', bo, { tools: ['report'] })] });
  for (let turn = 1; turn <= 9; turn++) {
    await ask(stage, `report ${turn}`);
    await pass(stage, 61_000);
  }
  expect((await kinds(stage, 'prune', 'compaction')).length).toBeGreaterThan(0);
  const { head } = await stage.troupe.events('c');
  const before = (await stage.troupe.prompt('c', 'bo')).messages;
  await fork(stage, at(head, 'd'));
  const after = (await stage.troupe.prompt('d', 'bo')).messages;
  expect(invalidities(after.slice(0, -1))).toEqual(invalidities(before.slice(0, -1)));
  expect(after.map(({ seqs }) => seqs)).toEqual(before.map(({ seqs }) => seqs));
  // A pruned output is read by the id of its event, which in the copy is that of the fork.
  const words = (content: string) =>
    content
      .replaceAll(/-[0-9a-f]{8,}>/g, '>')
      .replaceAll(/#\d{6}(?=\]?$)/gm, '#')
      .replaceAll('@artifact/d:bo:', '@artifact/c:bo:');
  expect(after.map(({ content }) => words(content))).toEqual(before.map(({ content }) => words(content)));
  await stage.say('d', 'go on', ['bo']);
  await stage.quiet();
  expect(await stage.check('d')).toEqual([]);
  expect(await stage.troupe.promptOf('d:bo:10', 1)).toMatchObject({ verified: true });
});

test('a running workflow has failed in the fork, and can continue in both', async () => {
  const cy = gated(says('the draft'), 1);
  const bo = inOrder(says('the plan'));
  const steps = [
    { id: 'plan', agent: 'bo', brief: 'write the plan' },
    { id: 'draft', agent: 'cy', brief: 'write the draft' },
  ];
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo },
      { id: 'cy', model: cy },
    ],
    workflows: [{ id: 'release', directive: 'ship it', steps }],
  });
  await stage.say('c', 'hello', []);
  const run = { command: 'run', workflow: 'release', run: 'r1' } as const;
  await stage.troupe.command({ ...run, conversation: C }, ANA);
  await cy.reached();
  const begun = async () => (await of(stage, 'turn.started')).some(({ turn }) => turn === 'c:cy:1');
  await until('the turn is in the log', begun);
  const { head } = await stage.troupe.events('c');
  await fork(stage, at(head, 'd'));
  const last = (await stage.events('d')).findLast(({ kind }) => kind === 'run.directive');
  expect(last).toMatchObject({
    body: { status: 'failed', goOn: 'troupe run d release --run r1 --step draft' },
  });
  cy.open();
  await stage.quiet();
  await stage.troupe.command({ ...run, conversation: D, step: 'draft' }, ANA);
  await stage.quiet();
  for (const id of ['c', 'd']) {
    const end = (await stage.events(id)).findLast(({ kind }) => kind === 'run.directive');
    expect(end, id).toMatchObject({ body: { status: 'completed' } });
    expect(await stage.check(id), id).toEqual([]);
  }
});

test('a fork of an archived conversation is open, and retired or absent agents stay so', async () => {
  const agents = ['bo', 'cy', 'di'].map((id) => ({ id, model: inOrder(says(`from ${id}`)) }));
  const stage = await openStage({ agents });
  await stage.say('c', 'hello', ['bo', 'cy', 'di']);
  await stage.quiet();
  await stage.troupe.command({ command: 'retire', conversation: C, agent: BO }, ANA);
  await stage.troupe.command({ command: 'leave', conversation: C, agent: 'cy' as AgentId }, ANA);
  await stage.troupe.command({ command: 'archive', conversation: C }, ANA);
  const { head } = await stage.troupe.events('c');
  await fork(stage, at(head, 'd'));
  expect(await stage.troupe.state('d')).toMatchObject({ state: 'open.agent' });
  expect(await stage.troupe.state('c')).toMatchObject({ state: 'archived' });
  expect((await stage.troupe.actors('d')).map(({ agent, status }) => `${agent} ${status}`)).toEqual([
    'bo retired',
    'cy idle',
    'di idle',
  ]);
  await stage.troupe.send('d', {
    author: { kind: 'agent', id: 'di', name: 'di' },
    content: 'hm',
    to: ['bo', 'cy'],
  });
  await stage.quiet();
  expect(agents.slice(0, 2).map(({ model }) => model.requests.length)).toEqual([1, 1]);
  await stage.say('d', 'back again', ['bo']);
  await stage.quiet();
  expect(shown(agents[0]?.model.requests.at(-1))).toContain('back again');
  expect(await stage.check('d')).toEqual([]);
});

import { expect, test } from 'vitest';
import type { ConversationId } from '../../src/events/index.ts';
import { createOrchestrator } from '../../src/library/routing/orchestrator.ts';
import { ANA, scripted } from '../http/harness.ts';
import { tempDir } from '../store/temp-dir.ts';
import { openTroupe } from '../support/mode.ts';
import { untilHolds } from '../support/until-holds.ts';

const AGENTS = ['lead', 'coder', 'writer'].map((id) => scripted(id, [{ reply: `${id} {{n}}` }]));
const QUIET = { onWarning: () => {} };

test('rules in code choose the recipients, then a round does; another orchestrator continues from the log', async () => {
  await using troupe = await openTroupe({ agents: AGENTS }, QUIET);
  const options = {
    by: ANA,
    rules: [{ when: ({ content }: { content: string }) => content.includes('code'), to: ['coder'] }],
    otherwise: { by: 'round' as const, agents: troupe.agents.map(({ id }) => id) },
  };
  const first = createOrchestrator(troupe, options);
  const to = async (orchestrator: typeof first, content: string, named?: string[]) =>
    (await orchestrator.send('c', { author: ANA, content, to: named })).event.to;
  expect(await to(first, 'some code')).toEqual(['coder']);
  expect(await to(first, 'x')).toEqual(['writer']);
  expect(await to(first, 'x', ['lead', 'coder'])).toEqual(['lead', 'coder']);
  const second = createOrchestrator(troupe, options);
  expect(await to(second, 'x')).toEqual(['lead']);
  const twice = { id: 'm1' as never, author: ANA, content: 'once' };
  const sent = await second.send('c', twice);
  expect((await second.send('c', twice)).event.seq).toBe(sent.event.seq);
  await second.block('c', 'coder');
  expect(await to(second, 'more code')).toEqual(['writer']);
  await second.unblock('c', '@coder');
  expect(await to(second, 'more code')).toEqual(['coder']);
  await second.archive('c', 'done');
  expect((await troupe.state('c')).state).toBe('archived');
  await second.reopen('c');
  expect((await troupe.state('c')).state).toBe('open.agent');
  await troupe.idle();
});

test('an orchestrator of a later process reads the end of a long conversation only, and routes as before', async () => {
  await using troupe = await openTroupe({ agents: AGENTS }, QUIET);
  let read = 0;
  const counted: typeof troupe = {
    ...troupe,
    async events(conversation, range) {
      const page = await troupe.events(conversation, range);
      read += page.events.length;
      return page;
    },
  };
  const options = { by: ANA, otherwise: { by: 'round' as const, agents: troupe.agents.map(({ id }) => id) } };
  for (let n = 0; n < 300; n += 1)
    await troupe.send('c', { author: ANA, content: `${n}`, to: [], replyTo: 'x' as never });
  await createOrchestrator(troupe, options).send('c', { author: ANA, content: 'x' });
  await troupe.idle();
  await untilHolds(async () => expect(await troupe.checkpoint('c', 'orchestrator')).not.toBeNull());
  const { event } = await createOrchestrator(counted, options).send('c', { author: ANA, content: 'x' });
  expect(event.to).toEqual(['coder']);
  expect(read).toBeLessThan(10);
  await troupe.idle();
});

const TEMPLATES = {
  agents: [AGENTS[0] as (typeof AGENTS)[number]],
  templates: [
    { ...scripted('helper', [{ reply: 'helper {{n}}' }]), name: 'Helper', description: 'helps out' },
  ],
};

test('workers spawned from a template have different numbers, and each answers under its own name', async () => {
  await using troupe = await openTroupe(TEMPLATES, QUIET);
  const orchestrator = createOrchestrator(troupe, { by: ANA });
  await troupe.send('c', { author: ANA, content: 'begin' });
  const made = await Promise.all([1, 2, 3].map(() => orchestrator.spawn('c', 'helper')));
  expect(made.toSorted()).toEqual(['helper-1', 'helper-2', 'helper-3']);
  expect(troupe.agents.map(({ id }) => id)).toEqual(['lead']);
  await troupe.send('c', { author: ANA, to: ['helper-2'], content: 'hi' });
  await troupe.idle();
  const { events } = await troupe.events('c');
  expect(events.filter(({ kind }) => kind === 'membership.changed')).toHaveLength(3);
  expect(events.find(({ author }) => author.id === 'helper-2')?.author.name).toBe('Helper 2');
  const prompt = await troupe.promptOf('c:helper-2:1');
  expect(prompt.verified).toBe(true);
  expect(JSON.stringify(prompt)).toContain('helper-2');
  const actors = await troupe.actors('c');
  expect(actors.map(({ agent }) => agent)).toEqual(['helper-2']);
  await expect(orchestrator.spawn('c', 'lead')).rejects.toMatchObject({ code: 'agent_unknown' });
});

test('a worker of a template exists after a restart without being spawned again', async () => {
  const dir = tempDir();
  for (const content of ['one', 'two']) {
    await using troupe = await openTroupe(TEMPLATES, { ...QUIET, data: dir });
    await troupe.send('c', { author: ANA, to: ['helper-7'], content });
    await troupe.idle();
    const replies = (await troupe.events('c')).events.filter(({ author }) => author.id === 'helper-7');
    expect(replies.filter(({ kind }) => kind === 'message')).toHaveLength(content === 'one' ? 1 : 2);
  }
});

test('a manager delegates a task to a worker of a template', async () => {
  const lead = {
    ...scripted('lead', [
      {
        when: { contains: 'HOIST' },
        calls: [{ name: 'delegate', args: { to: 'helper-1', task: 'lift it' } }],
      },
      { reply: 'it is lifted' },
    ]),
    tools: ['delegate'],
  };
  await using troupe = await openTroupe({ ...TEMPLATES, agents: [lead] }, QUIET);
  const conversation = 'c' as ConversationId;
  await troupe.send('c', { author: ANA, to: ['lead'], content: 'HOIST' });
  await troupe.idle();
  const { events } = await troupe.events(conversation);
  expect(events.filter(({ kind }) => kind === 'delegation.ended')).toMatchObject([
    { body: { outcome: 'done', result: 'helper 1' } },
  ]);
});

test.each([
  [{ templates: [AGENTS[0]] }, 'templates[0].id: "lead" is already the id of an agent'],
  [
    { agents: [...AGENTS, scripted('aid-2', [])], templates: [scripted('aid', [])] },
    'templates[0].id: its agents get the ids aid-1',
  ],
  [
    { templates: [{ ...scripted('aid', []), tools: ['fly'] }] },
    'templates[0].tools[0]: there is no tool "fly"',
  ],
])('templates that clash with agents, or name unknown tools, are refused', async (company, problem) => {
  const definition = { agents: AGENTS, ...company } as Parameters<typeof openTroupe>[0];
  await expect(openTroupe(definition, QUIET)).rejects.toThrow(problem);
});

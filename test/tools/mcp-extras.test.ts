import { expect, test } from 'vitest';
import { parseTroupe } from '../../src/library/config/agents-file.ts';
import type { TroupeError } from '../../src/base/errors.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { ROOM } from '../support/company.ts';
import { caller, isAlive, mcpRoom, stdioStage } from './mcp-stage.ts';

const EXTRAS = ['files/@resources', 'files/@prompts'];
const CALLS: Parameters<typeof caller>[2] = {
  first: ['files__list_resources'],
  second: ['files__list_resources', { cursor: 'two' }],
  note: ['files__read_resource', { uri: 'note:a' }],
  missing: ['files__read_resource', { uri: 'note:z' }],
  large: ['files__read_resource', { uri: 'note:big' }],
  prompts: ['files__list_prompts'],
  greet: ['files__get_prompt', { name: 'greet', arguments: { who: 'Uma' } }],
};

test('an agent that is granted them lists and reads resources, page by page', async () => {
  const stage = stdioStage();
  const ana = caller('ana', EXTRAS, CALLS);
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server('library') } });
  expect((await room.call('ana', 'first')).content.split('\n')).toEqual([
    'note:a, a, text/plain, 6 bytes: First note.',
    'pattern note:{name}, notes',
    '[more: call again with cursor "two"]',
  ]);
  expect((await room.call('ana', 'second')).content).toBe('note:b, b');
  expect(await room.call('ana', 'note')).toEqual({
    outcome: 'done',
    content: '[resource note:a text/plain]\nnote a\n[resource note:bin, 3 bytes: not shown]',
  });
  expect(await room.call('ana', 'missing')).toMatchObject({
    outcome: 'failed',
    content: expect.stringContaining('no note:z here') as string,
  });
});

test('an agent that is granted them lists prompts and gets one filled in, as a result', async () => {
  const stage = stdioStage();
  const ana = caller('ana', EXTRAS, CALLS);
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server('library') } });
  expect((await room.call('ana', 'prompts')).content).toBe('greet, arguments: who (required): Greets.');
  expect((await room.call('ana', 'greet')).content).toBe('[prompt greet of files]\nuser: Greet Uma.');
  expect(stage.trace()).toContain('prompt greet {"who":"Uma"}');
});

test('a large resource is shown as a preview', async () => {
  const stage = stdioStage();
  const ana = caller('ana', EXTRAS, CALLS);
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server('library') } });
  const { content, artifact } = await room.call('ana', 'large');
  expect(Buffer.byteLength(content)).toBeLessThanOrEqual(8_192);
  expect(artifact).toBe('room:ana:1.0.0');
});

test('a grant of all tools includes neither resources nor prompts', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], CALLS);
  const bo = caller('bo', ['files/@prompts'], CALLS);
  await using room = await mcpRoom({ agents: [ana, bo], mcpServers: { files: stage.server('library') } });
  for (const [agent, word] of [
    ['ana', 'note'],
    ['ana', 'greet'],
    ['bo', 'note'],
  ] as const)
    expect(await room.call(agent, word)).toMatchObject({ outcome: 'failed' });
  expect(room.troupe.agents[1]?.tools).toEqual(['files__get_prompt', 'files__list_prompts', 'read_artifact']);
  expect(stage.trace()).toEqual(['start']);
});

test.each([['files/*'], ['files/@resources']])('approvals for %s hold a reading back', async (pattern) => {
  const stage = stdioStage();
  const ana = { ...caller('ana', ['files/*', ...EXTRAS], CALLS), needsApproval: [pattern] };
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server('library') } });
  expect(await room.call('ana', 'note')).toMatchObject({ outcome: 'waiting' });
  expect(stage.trace()).toEqual(['start']);
  const { events } = await room.troupe.events(ROOM);
  expect(events.find(({ kind }) => kind === 'approval.requested')?.body).toMatchObject({
    tool: 'files__read_resource',
    args: '{"uri":"note:a"}',
  });
});

test('a server that offers none, or does not allow them, is refused with the field', async () => {
  const stage = stdioStage();
  const opened = createTroupe(
    { agents: [caller('ana', ['files/@prompts'], {})], mcpServers: { files: stage.server() } },
    { env: {} },
  );
  await expect(opened).rejects.toThrow(
    'agents[0].tools[0]: the MCP server "files" has no tool "@prompts": it offers no prompts',
  );
  expect(stage.pids().map(isAlive)).toEqual([false]);
  const problemsOf = (tools: string[], more: object, needsApproval?: string[]): unknown => {
    try {
      const agent = { ...caller('ana', tools, {}), ...(needsApproval && { needsApproval }) };
      parseTroupe({ agents: [agent], mcpServers: { files: { command: 'x', ...more } } });
      return [];
    } catch (error) {
      return (error as TroupeError).data['problems'];
    }
  };
  expect(problemsOf(['files/@resources'], { tools: ['add'] })).toEqual([
    'agents[0].tools[0]: mcpServers.files.tools does not allow "@resources"; known: add',
  ]);
  expect(problemsOf(['files/@resources'], { tools: ['@resources'] })).toEqual([]);
  expect(problemsOf(['files/*'], {}, ['files/@resources'])).toEqual([
    expect.stringContaining('"files/@resources" is not among the tools of this agent') as string,
  ]);
});

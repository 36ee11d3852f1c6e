import { expect, test } from 'vitest';
import * as z from 'zod';
import { parseTroupe } from '../../src/library/config/agents-file.ts';
import type { TroupeError } from '../../src/base/errors.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { ROOM, UMA } from '../support/company.ts';
import { caller, mcpRoom, stdioStage } from './mcp-stage.ts';

function deployTool(calls: unknown[]) {
  return defineTool({
    name: 'deploy',
    description: 'Deploys.',
    schema: z.object({ to: z.string() }),
    needsApproval: { when: () => false, by: [UMA.id] },
    run(args) {
      calls.push(args);
      return 'deployed';
    },
  });
}

test('a tool of an MCP server waits for approval where its agent says so, and only there', async () => {
  const stage = stdioStage();
  const calls = { sum: ['files__add', { a: 1, b: 2 }] } as const;
  const ana = {
    ...caller('ana', ['files/*'], { sum: [...calls.sum] }),
    needsApproval: ['files/*'],
  };
  const bo = caller('bo', ['files/*'], { sum: [...calls.sum] });
  await using room = await mcpRoom({ agents: [ana, bo], mcpServers: { files: stage.server() } });
  await room.post('ana', 'sum');
  await room.troupe.idle();
  expect(stage.trace()).toEqual(['start']);
  const {
    tasks: [request],
  } = await room.troupe.tasks(ROOM, { open: true });
  expect(request).toMatchObject({ kind: 'approval' });
  await room.troupe.command(
    { command: 'decide', conversation: ROOM, request: request?.id ?? '', approved: true },
    UMA,
  );
  await room.troupe.idle();
  expect(stage.trace()).toEqual(['start', 'call add {"a":1,"b":2}']);
  expect(await room.call('bo', 'sum')).toEqual({ outcome: 'done', content: '3' });
});

test('an own tool needs approval for every call then, and keeps who may decide', async () => {
  const calls: unknown[] = [];
  const ana = { ...caller('ana', ['deploy'], { go: ['deploy', { to: 'live' }] }), needsApproval: ['deploy'] };
  await using troupe = await createTroupe({ agents: [ana], tools: [deployTool(calls)] }, { env: {} });
  const { outcome, waits } = await troupe.ask(ROOM, { author: UMA, to: ['ana'], content: 'go' });
  expect(outcome).toBe('waiting');
  expect(waits).toHaveLength(1);
  expect(waits[0]?.task).toMatchObject({ kind: 'approval', by: [UMA.id] });
  expect(calls).toEqual([]);
});

test.each([
  [
    'an own tool',
    ['deploy'],
    ['deplyo'],
    '"deplyo" is not among the tools of this agent; did you mean "deploy"?',
  ],
  ['a server', ['deploy'], ['files/*'], '"files/*" is not among the tools of this agent'],
  [
    'a tool',
    ['files/add'],
    ['files/ad'],
    '"files/ad" is not among the tools of this agent; did you mean "files/add"?',
  ],
])('%s that the agent does not have is refused in its place', (_, tools, needsApproval, problem) => {
  const agent = { ...caller('ana', tools, {}), needsApproval };
  const definition = { agents: [agent], tools: [deployTool([])], mcpServers: { files: { command: 'x' } } };
  let problems: unknown;
  try {
    parseTroupe(definition);
  } catch (error) {
    problems = (error as TroupeError).data['problems'];
  }
  expect(problems).toEqual([expect.stringContaining(`agents[0].needsApproval[0]: ${problem}`)]);
});

test('a tool that its server does not have is refused at the start', async () => {
  const stage = stdioStage();
  const ana = { ...caller('ana', ['files/*'], {}), needsApproval: ['files/ad'] };
  await expect(mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining(
      'agents[0].needsApproval[0]: the MCP server "files" has no tool "ad"; did you mean "add"?',
    ) as string,
  });
});

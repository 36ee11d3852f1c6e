import { expect, test } from 'vitest';
import * as z from 'zod';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { openMcpTools } from '../../src/tools/mcp/open-mcp-tools.ts';
import { McpServers } from '../../src/tools/mcp/settings.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { ROOM, UMA } from '../support/company.ts';
import { event, json, oddStdio, startOddHttp } from '../support/odd-mcp.ts';
import { caller, mcpRoom } from './mcp-stage.ts';

/** Of a post on X: no number of JavaScript holds it. */
const BIG = '1917043659912705297';

test.each(['stdio', 'http', 'http as a stream'])(
  'over %s, a tool server gets an integer beyond 2^53 as the model wrote it, and the model one of its result',
  async (way) => {
    const result = `{"content":[],"structuredContent":{"id":${BIG},"small":7},"isError":false}`;
    const stage = oddStdio({ 'tools/call': result });
    await using web = await startOddHttp((request, response) => {
      if (request.method !== 'tools/call') return false;
      const message = `{"jsonrpc":"2.0","id":${request.id},"result":${result}}`;
      if (way === 'http') json(response, message);
      else event(response, message);
      return true;
    });
    const args = `{"deep":[{"id":${BIG}}],"least":-${BIG}}`;
    const ana = caller('ana', ['files/*'], { look: ['files__look', args] });
    const files = way === 'stdio' ? stage.server : { url: web.url };
    await using room = await mcpRoom({ agents: [ana], mcpServers: { files } });
    expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: `{"id":${BIG},"small":7}` });
    const sent = way === 'stdio' ? stage.sent() : web.requests.map(({ text }) => text);
    expect(sent.find((line) => line.includes('tools/call'))).toContain(`"arguments":${args}`);
  },
);

test('a schema of a tool server with such an integer is shown as data', async () => {
  const schema = '{"type":"object","properties":{"id":{"type":"integer","maximum":18446744073709551615}}}';
  const stage = oddStdio({ 'tools/list': `{"tools":[{"name":"look","inputSchema":${schema}}]}` });
  const mcp = await openMcpTools(McpServers.parse({ files: stage.server }), {
    env: {},
    clock: createFakeClock(),
    onWarning: () => undefined,
  });
  expect(mcp.tools[0]?.parameters).toEqual(JSON.parse(schema));
  await mcp.close();
});

const SCHEMAS = {
  'a number': z.object({ id: z.number() }),
  'an integer': z.object({ id: z.int() }),
  'any value': z.object({ id: z.unknown() }),
  'a JSON schema': { type: 'object', properties: { id: { type: 'integer' } } },
  'a list': z.object({ id: z.array(z.number()) }),
  'a loose object': z.looseObject({}),
};

test.each(Object.keys(SCHEMAS))(
  "a tool of the application that takes %s never runs with another integer than the model's",
  async (name) => {
    const ran: unknown[] = [];
    const get = defineTool({
      name: 'get',
      description: '',
      schema: SCHEMAS[name as keyof typeof SCHEMAS],
      run: (args: unknown) => {
        ran.push(args);
        return 'ran';
      },
    });
    const id = name === 'a list' ? `[1,${BIG}]` : BIG;
    const ana = caller('ana', ['get'], { get: ['get', `{"id":${id}}`] });
    await using room = await mcpRoom({ agents: [ana], tools: [get] });
    const result = await room.call('ana', 'get');
    expect(ran).toEqual([]);
    expect(result.outcome).toBe('failed');
    expect(result.content).toContain(
      `${name === 'a list' ? 'id.1' : 'id'}: ${BIG} is beyond 2^53 and would lose digits: give it as a text, in quotes`,
    );
  },
);

test.each([
  ['a text', `{"id":"${BIG}"}`, BIG],
  ['the largest safe integer', '{"id":9007199254740991}', 9007199254740991],
  ['a large integer that a number holds', '{"id":100000000000000000000}', 1e20],
  ['a fraction with many digits', '{"id":0.12345678901234567890}', 0.12345678901234568],
])('%s reaches a tool of the application', async (_, args, id) => {
  const ran: unknown[] = [];
  const schema = z.object({ id: z.unknown() });
  const get = defineTool({ name: 'get', description: '', schema, run: (given) => void ran.push(given.id) });
  const ana = caller('ana', ['get'], { get: ['get', args] });
  await using room = await mcpRoom({ agents: [ana], tools: [get] });
  await room.call('ana', 'get');
  expect(ran).toEqual([id]);
});

test('a bigint that a tool returns is shown with its digits', async () => {
  const schema = z.object({});
  const get = defineTool({
    name: 'get',
    description: '',
    schema,
    run: () => ({ rows: [{ id: BigInt(BIG) }] }),
  });
  const ana = caller('ana', ['get'], { get: ['get'] });
  await using room = await mcpRoom({ agents: [ana], tools: [get] });
  expect(await room.call('ana', 'get')).toEqual({ outcome: 'done', content: `{"rows":[{"id":${BIG}}]}` });
});

test('an approver who changes another argument does not change the digits of an integer', async () => {
  const stage = oddStdio({ 'tools/call': '{"content":[{"type":"text","text":"sun"}]}' });
  const ana = {
    ...caller('ana', ['files/*'], { look: ['files__look', `{"id":${BIG},"city":"Oslo"}`] }),
    needsApproval: ['files/*'],
  };
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server } });
  await room.post('ana', 'look');
  await room.troupe.idle();
  const { events } = await room.troupe.events(ROOM);
  const asked = events.find(({ kind }) => kind === 'approval.requested');
  if (asked?.kind !== 'approval.requested') throw new Error('no approval was asked for');
  const args = { ...(JSON.parse(asked.body.args) as object), city: 'Bergen' };
  await room.troupe.command(
    { command: 'decide', conversation: ROOM, request: asked.body.request, approved: true, args },
    UMA,
  );
  await room.troupe.idle();
  expect(stage.sent().find((line) => line.includes('tools/call'))).toContain(
    `"arguments":{"id":${BIG},"city":"Bergen"}`,
  );
});

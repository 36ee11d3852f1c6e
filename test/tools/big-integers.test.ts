import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { ROOM, UMA } from '../support/company.ts';
import { oddStdio, startOddHttp } from '../support/odd-mcp.ts';
import { caller, mcpRoom } from './mcp-stage.ts';

/** Of a post on X: no number of JavaScript holds it. */
const BIG = '1917043659912705297';

test.each(['stdio', 'http'])(
  'over %s, a tool server gets an integer beyond 2^53 as the model wrote it',
  async (way) => {
    const stage = oddStdio({ 'tools/call': '{"content":[]}' });
    await using web = await startOddHttp(() => false);
    const ana = caller('ana', ['files/*'], {
      look: ['files__look', `{"deep":[{"id":${BIG}}],"least":-${BIG}}`],
    });
    const files = way === 'stdio' ? stage.server : { url: web.url };
    await using room = await mcpRoom({ agents: [ana], mcpServers: { files } });
    expect(await room.call('ana', 'look')).toMatchObject({ outcome: 'done' });
    const sent = way === 'stdio' ? stage.sent() : web.requests.map(({ text }) => text);
    expect(sent.find((line) => line.includes('tools/call'))).toContain(
      `"arguments":{"deep":[{"id":${BIG}}],"least":-${BIG}}`,
    );
  },
);

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

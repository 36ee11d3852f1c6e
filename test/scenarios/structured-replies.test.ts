import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import * as z from 'zod';
import { loadAgentsFile } from '../../src/library/config/load-agents-file.ts';
import { createApp } from '../../src/http/api/index.ts';
import { MAX_TRIES } from '../../src/machines/agent-lifecycle.ts';
import { startFakeAnthropic, FAKE_USAGE, type FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { company, ROOM, UMA, type Company } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';

const Verdict = z.object({ verdict: z.enum(['yes', 'no']), why: z.string(), score: z.number().default(0) });
const SCHEMA = {
  type: 'object',
  properties: {
    verdict: { type: 'string', enum: ['yes', 'no'] },
    why: { type: 'string' },
    score: { default: 0, type: 'number' },
  },
  required: ['verdict', 'why', 'score'],
  additionalProperties: false,
};
const GOOD = '{"verdict":"yes","why":"it works","score":3}';

/** Agent `j` must reply with this schema; agent `p` need not. */
function judge(answers: readonly (string | FakeReply)[], reply: unknown = Verdict): Promise<Company> {
  return company(['j', 'p'], { answers: { j: answers }, agents: { j: { reply } as never } });
}

async function messages(room: Company): Promise<unknown[]> {
  const { events } = await room.troupe.events(ROOM);
  return events.flatMap((event) =>
    event.kind === 'message' && event.author.kind === 'agent' ? [event.body] : [],
  );
}

async function failures(room: Company): Promise<string[]> {
  const { events } = await room.troupe.events(ROOM);
  return events.flatMap(({ kind, body }) =>
    kind === 'error' || kind === 'turn.failed'
      ? [`${kind} ${body.code}: ${body.message} [${body.partial ?? ''}]`]
      : [],
  );
}

test('the vendor gets the schema, and the reply is text and data', async () => {
  await using room = await judge([GOOD]);
  await room.say(UMA, 'j', 'Is it good?');
  expect(room.requests('j')[0]?.body).toMatchObject({
    response_format: { type: 'json_schema', json_schema: { schema: SCHEMA } },
  });
  expect(await messages(room)).toEqual([
    { content: GOOD, data: { verdict: 'yes', why: 'it works', score: 3 } },
  ]);
});

test('another vendor gets it in its own format', async () => {
  await using vendor = await startFakeAnthropic(() => ({ text: GOOD }));
  const agent = { id: 'j', provider: 'anthropic', model: 'm', baseUrl: vendor.url, reply: Verdict } as const;
  await using troupe = await openTroupe({ agents: [agent] }, { env: { ANTHROPIC_API_KEY: 'k' } });
  await troupe.send(ROOM, { author: UMA, to: ['j'], content: 'Is it good?' });
  await troupe.idle();
  expect(JSON.stringify(vendor.requests[0]?.body)).toContain('"enum":["yes","no"]');
  const { events } = await troupe.events(ROOM);
  expect(events.filter(({ kind }) => kind === 'message').at(-1)?.body).toMatchObject({
    data: { verdict: 'yes' },
  });
});

test('a colleague gets no schema, and reads the reply as text', async () => {
  await using room = await judge([GOOD]);
  await room.say(UMA, 'j', 'Is it good?');
  await room.say(UMA, 'p', 'What did j say?');
  expect(room.requests('p')[0]?.body).not.toHaveProperty('response_format');
  expect(room.sent('p').join('\n')).toContain(`[@j] «${GOOD}»`);
  expect((await messages(room)).at(-1)).toEqual({ content: 'p answers 1' });
});

test('a schema that admits a text takes words that are no JSON, and others refuse them', async () => {
  await using room = await judge(['It works.'], z.union([Verdict, z.string().max(20)]));
  await room.say(UMA, 'j', 'Is it good?');
  expect(await messages(room)).toEqual([{ content: 'It works.', data: 'It works.' }]);
  expect(await failures(room)).toEqual([]);
});

test("a fence around the JSON is removed, and the schema's defaults are in the data", async () => {
  await using room = await judge(['```json\n{"verdict": "no", "why": "a ``` in it"}\n```\n']);
  await room.say(UMA, 'j', 'Is it good?');
  expect(await messages(room)).toEqual([
    {
      content: '{"verdict": "no", "why": "a ``` in it"}',
      data: { verdict: 'no', why: 'a ``` in it', score: 0 },
    },
  ]);
});

test('an invalid reply is answered with what was wrong, and its cost counts', async () => {
  await using room = await judge(['Yes, I think so.', GOOD]);
  await room.say(UMA, 'j', 'Is it good?');
  expect(room.requests('j')).toHaveLength(2);
  expect(room.raw('j', 2).slice(0, -2)).toEqual(room.raw('j', 1));
  expect(room.raw('j', 2).slice(-2)).toMatchObject([
    { role: 'assistant', content: 'Yes, I think so.' },
    { role: 'user', content: expect.stringContaining('does not fit the schema') as string },
  ]);
  expect(await failures(room)).toEqual([
    expect.stringMatching(
      /^error provider_invalid_reply: the reply does not fit the agent's reply schema: it is no JSON: .* \[\]$/,
    ),
  ]);
  const { events } = await room.troupe.events(ROOM);
  expect(events.at(-1)).toMatchObject({
    kind: 'turn.done',
    body: { usage: { input: 2 * FAKE_USAGE.input } },
  });
  expect(await messages(room)).toHaveLength(1);
});

test('a reply that stays invalid fails the turn with its text', async () => {
  const wrong = '{"verdict":"maybe","score":"high"}';
  await using room = await judge(Array.from({ length: MAX_TRIES }, () => wrong));
  await room.say(UMA, 'j', 'Is it good?');
  expect(room.requests('j')).toHaveLength(MAX_TRIES);
  const errors = await failures(room);
  expect(errors).toHaveLength(MAX_TRIES);
  expect(errors.at(-1)).toMatch(
    /^turn\.failed provider_invalid_reply: .*verdict: Invalid option: .*; why: Invalid input: .*; score: Invalid input: .* \[\{"verdict":"maybe","score":"high"\}\]$/,
  );
  expect(await messages(room)).toEqual([]);
});

test('a client cannot send data', async () => {
  await using room = await judge([]);
  const app = createApp(room.troupe);
  const body = JSON.stringify({ author: UMA, to: ['p'], content: '{}', data: {} });
  const headers = { 'content-type': 'application/json' };
  const answer = await app.request(`/api/conversations/${ROOM}/events`, { method: 'POST', headers, body });
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: 'event_invalid' } }]);
});

test('steps with calls need not be valid, and a truncated reply is reported as such', async () => {
  await using room = await company(['j', 'p'], {
    answers: {
      j: [
        { text: 'Over.', calls: [{ name: 'handoff', args: '{"to":"p","goal":"finish"}' }] },
        { text: '{"verdict":"y', stop: 'length' },
        GOOD,
      ],
    },
    agents: { j: { reply: Verdict, tools: ['handoff'] } },
  });
  await room.say(UMA, 'j', 'Give it to p.');
  expect(await failures(room)).toEqual([]);
  await room.say(UMA, 'j', 'Is it good?');
  expect(await failures(room)).toEqual([expect.stringContaining('it was cut off at maxOutputTokens')]);
});

test('a JSON file declares it as a JSON schema; its structure is sent, all of it is checked', async () => {
  const reply = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { names: { type: 'array', items: { $ref: '#/$defs/name' } } },
    required: ['names'],
    additionalProperties: false,
    $defs: { name: { type: 'string', minLength: 2 } },
  };
  const { $schema: _, ...rest } = reply;
  const sent = { ...rest, $defs: { name: { type: 'string', description: '{minLength: 2}' } } };
  await using room = await judge(['{"names":["A"]}', '{"names":["Al"],"more":1}', '{"names":["Al"]}'], reply);
  await room.say(UMA, 'j', 'Who?');
  expect(room.requests('j')[0]?.body).toMatchObject({ response_format: { json_schema: { schema: sent } } });
  expect(await failures(room)).toEqual([
    expect.stringContaining('names.0: Too small'),
    expect.stringContaining('Unrecognized key: "more"'),
  ]);
  expect(await messages(room)).toEqual([{ content: '{"names":["Al"]}', data: { names: ['Al'] } }]);
});

test.each([
  ['a transform', z.object({ when: z.string().transform(Number) }), /Transforms cannot be represented/],
  ['a date', z.object({ when: z.date() }), /Date cannot be represented/],
  ['an unknown type', { type: 'nonsense' }, /Unsupported type: nonsense/],
  ['a remote reference', { $ref: 'https://example.com/s' }, /only local refs/],
  ['a text', 'object', /give a schema of zod, valibot, arktype .* or a JSON schema/],
])('%s is no reply schema: it is refused at the start with its path', async (_, reply, why) => {
  const agent = { id: 'j', provider: 'scripted', script: { rules: [{ reply: 'x' }] }, reply };
  const opening = openTroupe({ agents: [agent as never] });
  await expect(opening).rejects.toMatchObject({ code: 'config_invalid' });
  await expect(opening).rejects.toThrow(/agents\[0\]\.reply: /);
  await expect(opening).rejects.toThrow(why);
});

test.each<[string, unknown]>([
  ['valibot', toStandardJsonSchema(v.strictObject({ verdict: v.picklist(['yes', 'no']) }))],
  ['arktype', type({ verdict: "'yes' | 'no'" })],
])('a schema of %s is sent as a JSON schema and checks replies', async (_, reply) => {
  await using room = await judge(['{"verdict":"maybe"}', '{"verdict":"yes"}'], reply as never);
  await room.say(UMA, 'j', 'Is it good?');
  expect(room.requests('j')[0]?.body).toMatchObject({
    response_format: { json_schema: { schema: { type: 'object', required: ['verdict'] } } },
  });
  expect(await failures(room)).toEqual([expect.stringMatching(/does not fit .*verdict/)]);
  expect(await messages(room)).toEqual([{ content: '{"verdict":"yes"}', data: { verdict: 'yes' } }]);
});

test('an agents file in JSON is loaded with its reply schema, and a wrong schema is reported with the file', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-reply-'));
  const file = path.join(folder, 'agents.json');
  const agents = (reply: object) =>
    JSON.stringify({ agents: [{ id: 'j', provider: 'scripted', script: { rules: [{}] }, reply }] });
  writeFileSync(file, agents({ type: 'object' }));
  expect((await loadAgentsFile(file)).agents[0]?.reply).toEqual({ type: 'object' });
  writeFileSync(file, agents({ if: {} }));
  await expect(loadAgentsFile(file)).rejects.toThrow(
    /agents\.json has 1 problem\(s\):\s+\S*agents\.json:1 agents\[0\]\.reply: /,
  );
  rmSync(folder, { recursive: true });
});

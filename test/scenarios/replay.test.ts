import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { company, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';

let folder = '';
let file = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'troupe-replay-'));
  file = path.join(folder, 'r.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true }));

const add = defineTool({
  name: 'add',
  description: 'Adds.',
  schema: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => String(a + b),
});

/** Two agents of a vendor at this URL; the key is in a separate variable. */
function definition(baseUrl: string): TroupeInput {
  const common = { provider: 'openai-compatible', baseUrl, apiKeyEnv: 'REPLAY_KEY' } as const;
  return {
    agents: [
      { id: 'p', model: 'p', tools: ['add', 'handoff'], ...common },
      { id: 'd', model: 'd', ...common },
    ] satisfies AgentInput[],
    tools: [add],
  };
}

async function talk(troupe: Troupe, conversation: string): Promise<string[]> {
  for (const content of ['What is 2 + 3?', 'Give it to d.', 'Thanks, p.']) {
    await troupe.send(conversation, { author: UMA, to: ['p'], content });
    await troupe.idle();
  }
  const { events } = await troupe.events(conversation);
  return events.flatMap((event) => {
    if (event.kind === 'message' && event.author.kind === 'agent')
      return [`${event.author.id}: ${event.body.content}`];
    return event.kind === 'turn.failed' ? [`failed: ${event.body.code} ${event.body.message}`] : [];
  });
}

/** Records the talk and returns its messages; the vendor is closed afterwards. */
async function recordTalk(): Promise<{ said: string[]; url: string }> {
  const answers = [
    { error: { code: 'provider_truncated' as const } },
    { calls: [{ name: 'add', args: '{"a":2,"b":3}' }] },
    { text: 'It is 5.' },
    { text: 'Over.', calls: [{ name: 'handoff', args: '{"to":"d","goal":"draw a 5"}' }] },
    { text: 'Drawn: V' },
    { text: 'Welcome.' },
  ];
  const vendor = await startFakeOpenAi(({ number }) => answers[number - 1] ?? { text: 'too much' });
  const options = { env: { REPLAY_KEY: 'key-of-vendor-123' }, record: file };
  await using troupe = await openTroupe(definition(vendor.url), options);
  const said = await talk(troupe, 'recorded');
  expect(vendor.requests).toHaveLength(answers.length);
  await vendor.close();
  return { said, url: vendor.url };
}

test('a conversation recorded once is replayed under any name, without vendor and key', async () => {
  const { said, url } = await recordTalk();
  expect(said).toEqual(['p: It is 5.', 'd: Drawn: V', 'p: Welcome.']);
  expect(readFileSync(file, 'utf8')).not.toContain('key-of-vendor');
  await using troupe = await openTroupe(definition(url), { env: {}, replay: file });
  expect(await talk(troupe, 'another')).toEqual(said);
  expect(await talk(troupe, 'and.one:more')).toEqual(said);
  const { events } = await troupe.events('another');
  expect(events.filter(({ kind }) => kind === 'error')).toHaveLength(1);
});

test('an unrecorded request fails the turn with the difference', async () => {
  const { url } = await recordTalk();
  const changed = definition(url);
  const [first] = changed.agents;
  if (first) first.instructions = 'Be brief.';
  await using troupe = await openTroupe(changed, { env: {}, replay: [file] });
  const [failed = ''] = await talk(troupe, 'recorded');
  expect(failed).toMatch(
    /^failed: provider_invalid_request the recording has no answer for this request of @p \(turn 1, step 1, call 1\)\. The nearest is that of turn 1, step 1, call 1; the first difference: in messages\[0\] \(system\): recorded /,
  );
  expect(failed).toContain('Be brief.');
});

test('recordings of several processes can be combined', async () => {
  const second = path.join(folder, 'second.jsonl');
  for (const [record, answer] of [
    [file, 'one'],
    [second, 'two'],
  ] as const) {
    await using room = await company(['p'], { answers: { p: [answer] }, record });
    await room.say(UMA, 'p', `say ${answer}`);
  }
  await using room = await company(['p'], { replay: [file, second] });
  await room.say(UMA, 'p', 'say two');
  expect(room.requests('p')).toHaveLength(0);
  const { events } = await room.troupe.events('room');
  expect(events.filter(({ kind }) => kind === 'message').at(-1)).toMatchObject({ body: { content: 'two' } });
});

test('a recording that is missing, or combined with a new one, is refused at the start', async () => {
  const agents = definition('http://127.0.0.1:1');
  await expect(openTroupe(agents, { env: {}, replay: file })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining(file),
  });
  await expect(openTroupe(agents, { env: {}, replay: file, record: file })).rejects.toMatchObject({
    code: 'config_invalid',
  });
  const nowhere = { env: { REPLAY_KEY: 'k' }, record: path.join(folder, 'none', 'r.jsonl') };
  await expect(openTroupe(agents, nowhere)).rejects.toMatchObject({ code: 'config_invalid' });
});

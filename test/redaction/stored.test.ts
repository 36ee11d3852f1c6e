import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import * as z from 'zod';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author, EventId, EventKind } from '../../src/events/index.ts';
import { createApp } from '../../src/http/api/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { calls, scripted } from './company.ts';

const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const SECRET = /SECRET-[A-Z]+/g;

/** Sends a secret in every possible way. The tool `wordy` returns more than a prompt shows. */
const wordy = defineTool({
  name: 'wordy',
  description: 'Prints.',
  schema: z.object({ with: z.string() }),
  run: () =>
    `${'many words\n'.repeat(3_000)}SECRET-ARTIFACT and ${'more words\n'.repeat(3_000)}SECRET-OUTPUT`,
});
const breaks = defineTool({
  name: 'breaks',
  description: 'Breaks.',
  schema: z.object({}),
  run() {
    throw new Error('no entry with SECRET-THROWN');
  },
});
const guarded = defineTool({
  name: 'guarded',
  description: 'Asks first.',
  schema: z.object({ key: z.string() }),
  needsApproval: true,
  run: ({ key }) => `ran with ${key}`,
});

const TALKER = scripted(
  'talker',
  ['wordy', 'breaks', 'guarded', 'ask', 'delegate', 'handoff', 'todo'],
  [
    {
      when: { contains: 'print', step: 1 },
      ...calls('I print SECRET-STEP', 'wordy', { with: 'SECRET-ARGS' }),
    },
    { when: { contains: 'break', step: 1 }, ...calls('', 'breaks', {}) },
    { when: { contains: 'agree', step: 1 }, ...calls('', 'guarded', { key: 'SECRET-APPROVAL' }) },
    { when: { contains: 'ask me', step: 1 }, ...calls('', 'ask', { question: 'Is it SECRET-QUESTION?' }) },
    { when: { contains: 'give', step: 1 }, ...calls('', 'delegate', { to: 'helper', task: 'SECRET-TASK' }) },
    {
      when: { contains: 'pass on', step: 1 },
      ...calls('', 'handoff', { to: 'helper', goal: 'SECRET-GOAL', why: 'SECRET-WHY' }),
    },
    {
      when: { contains: 'list', step: 1 },
      ...calls('', 'todo', { items: [{ text: 'SECRET-TODO', status: 'done' }] }),
    },
    { when: { contains: 'not json', step: 1 }, calls: [{ name: 'wordy', args: 'SECRET-BROKEN {' }] },
    {
      when: { contains: 'fail' },
      reply: 'so far SECRET-PARTIAL and more',
      fail: { after: 25, code: 'provider_refused', message: 'the vendor says SECRET-VENDOR' },
    },
    { reply: 'said SECRET-REPLY' },
  ],
);
const HELPER = scripted('helper', [], [{ reply: 'made with SECRET-RESULT' }]);

/** Every way of a secret into the store. The test must cover all of them. */
const WAYS_IN = `
  ANSWER APPROVAL ARGS ARTIFACT ATTACHED BROKEN FILE FRAGMENT GOAL MESSAGE NOTE OUTPUT PARTIAL PHASE QUESTION REASON
  REPLY RESULT STEP TASK THROWN TITLE TODO VENDOR WHY
`
  .trim()
  .split(/\s+/)
  .map((name) => `SECRET-${name}`);

interface Place {
  data: string;
  /** Texts with secrets that the function has received. */
  hidden: Set<string>;
  kinds: Set<EventKind>;
  company: TroupeInput;
}

function place(): Place & Disposable {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-redaction-'));
  const hidden = new Set<string>();
  const kinds = new Set<EventKind>();
  const company: TroupeInput = {
    agents: [TALKER, HELPER],
    tools: [wordy, breaks, guarded],
    fragments: [{ name: 'host', lifecycle: 'dynamic', text: () => 'we are on SECRET-FRAGMENT' }],
    redact(text, { kind }) {
      for (const [secret] of text.matchAll(SECRET)) {
        hidden.add(secret);
        kinds.add(kind);
      }
      return text.replace(SECRET, '[gone]');
    },
  };
  return { data, hidden, kinds, company, [Symbol.dispose]: () => rmSync(data, { recursive: true }) };
}

async function say(troupe: Troupe, content: string, more: object = {}): Promise<void> {
  await troupe.send('c', { author: ANA, to: ['talker'], content, ...more });
  await troupe.idle();
}

async function sayEverything(troupe: Troupe): Promise<void> {
  const file = Buffer.from(`${'line of a long file\n'.repeat(5_000)}SECRET-FILE`).toString('base64');
  await say(troupe, 'hello SECRET-MESSAGE', {
    attachments: [
      { name: 'SECRET-TITLE.txt', mediaType: 'text/plain', data: Buffer.from('it says SECRET-ATTACHED') },
      { name: 'long.txt', mediaType: 'text/plain', data: file },
    ],
  });
  for (const what of ['print', 'break', 'ask me', 'agree', 'give', 'pass on', 'list', 'not json', 'fail']) {
    await say(troupe, `please ${what}`);
    const { tasks } = await troupe.tasks('c', { open: true });
    for (const { id, kind } of tasks) {
      const conversation = 'c' as never;
      if (kind === 'question') {
        await troupe.command(
          { command: 'answer', conversation, question: id, content: 'SECRET-ANSWER' },
          ANA,
        );
      }
      if (kind === 'approval') {
        const decided = { request: id, approved: true, note: 'SECRET-NOTE' };
        await troupe.command({ command: 'decide', conversation, ...decided }, ANA);
      }
    }
    await troupe.idle();
  }
  const conversation = 'c' as never;
  await troupe.command({ command: 'phase', conversation, phase: 'p', instructions: 'SECRET-PHASE' }, ANA);
  await troupe.command({ command: 'archive', conversation, reason: 'SECRET-REASON' }, ANA);
}

function bytesIn(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

test('no secret reaches the files in any way', async () => {
  using at = place();
  {
    await using troupe = await createTroupe(at.company, { data: at.data, onWarning: () => {} });
    await sayEverything(troupe);
    // Also while the write-ahead log is open.
    expect(bytesIn(at.data).match(SECRET)).toBeNull();
  }
  expect(WAYS_IN.filter((secret) => !at.hidden.has(secret))).toEqual([]);
  const stored = bytesIn(at.data);
  expect(stored.match(SECRET)).toBeNull();
  expect(stored).toContain('hello [gone]');
  expect([...at.kinds].sort()).toEqual(
    expect.arrayContaining([
      'message',
      'question.answered',
      'step',
      'tool.result',
      'turn.failed',
      'turn.started',
    ]),
  );
});

test('without the function the same company stores the secrets, so that the search above can find them', async () => {
  using at = place();
  const { redact: _, ...open } = at.company;
  {
    await using troupe = await createTroupe(open, { data: at.data, onWarning: () => {} });
    await sayEverything(troupe);
  }
  const found = new Set(bytesIn(at.data).match(SECRET));
  // The long file is stored as base64.
  expect(WAYS_IN.filter((secret) => !found.has(secret))).toEqual(['SECRET-FILE']);
});

test('no secret is in the API or an export, and every prompt can be rendered again from the log', async () => {
  using at = place();
  await using troupe = await createTroupe(at.company, { data: at.data, onWarning: () => {} });
  await sayEverything(troupe);
  const app = createApp(troupe, { web: false });
  const said: string[] = [];
  const read = async (url: string) => {
    const response = await app.request(url);
    const text = await response.text();
    if (response.status === 200) said.push(text);
    return text;
  };
  const { conversations } = JSON.parse(await read('/api/conversations')) as {
    conversations: { id: string }[];
  };
  expect(conversations.length).toBeGreaterThan(1);
  for (const { id } of conversations) {
    const about = `/api/conversations/${encodeURIComponent(id)}`;
    for (const part of ['', '/tasks', '/actors', '/export', '/agents/talker/prompt'])
      await read(about + part);
    const { events } = JSON.parse(await read(`${about}/events?limit=500`)) as {
      events: { kind: string; turn?: string }[];
    };
    for (const turn of new Set(events.flatMap((event) => event.turn ?? []))) {
      const prompt = await read(`/api/turns/${encodeURIComponent(turn)}/prompt`);
      expect(JSON.parse(prompt)).toMatchObject({ turn, verified: true });
      await read(`/api/turns/${encodeURIComponent(turn)}`);
    }
  }
  expect(said.length).toBeGreaterThan(20);
  expect(said.join('\n').match(SECRET)).toBeNull();
  expect(said.join('\n')).toContain('hello [gone]');
});

test('a message sent twice is stored once, and another one with its id is refused', async () => {
  using at = place();
  await using troupe = await createTroupe(at.company, { data: at.data, onWarning: () => {} });
  const id = 'm1' as EventId;
  const send = (content: string) => troupe.send('d', { id, author: ANA, content, to: [] });
  expect(await send('it is SECRET-ONE')).toMatchObject({
    kind: 'appended',
    event: { body: { content: 'it is [gone]' } },
  });
  expect(await send('it is SECRET-ONE')).toMatchObject({ kind: 'exists' });
  await expect(send('it was SECRET-ONE')).rejects.toMatchObject({ code: 'event_conflict' });
});

test('imported events are redacted', async () => {
  using at = place();
  await using troupe = await createTroupe(at.company, { data: at.data, onWarning: () => {} });
  const lines = [
    { role: 'user', content: 'the key is SECRET-IMPORTED' },
    { role: 'assistant', content: 'so it is SECRET-TOO' },
  ];
  const text = lines.map((line) => JSON.stringify(line)).join('\n');
  await troupe.import(
    (async function* () {
      yield text;
    })(),
    { conversation: 'old' },
  );
  expect(bytesIn(at.data).match(SECRET)).toBeNull();
  const { events } = await troupe.events('old');
  expect(JSON.stringify(events)).toContain('the key is [gone]');
});

test('tokens are counted after the redaction', async () => {
  using at = place();
  const secret = 'SECRET-X '.repeat(500);
  await using hidden = await createTroupe({ ...at.company, redact: () => 'short' }, { onWarning: () => {} });
  const { event } = await hidden.send('c', { author: ANA, content: secret, to: [] });
  expect(event.tokens).toBeLessThan(20);
});

test.each([
  [
    'throws',
    () => {
      throw new Error('broken');
    },
  ],
  ['gives no text', (() => undefined) as unknown as () => string],
])('a function that %s hides the whole text, says so, and the turn goes on', async (_, redact) => {
  using at = place();
  const warnings: unknown[] = [];
  await using troupe = await createTroupe(
    { agents: [HELPER], redact },
    { data: at.data, onWarning: (_error, where) => warnings.push(where) },
  );
  await troupe.send('c', { author: ANA, to: ['helper'], content: 'SECRET-MESSAGE' });
  await troupe.idle();
  const { events } = await troupe.events('c');
  const said = events.flatMap((event) => (event.kind === 'message' ? [event.body.content] : []));
  expect(said).toEqual(['[not kept: its redaction failed]', '[not kept: its redaction failed]']);
  expect(warnings).toContain('redact');
  expect(bytesIn(at.data).match(SECRET)).toBeNull();
});

test('agents work with a function that hides everything: ids, names and states stay', async () => {
  using at = place();
  await using troupe = await createTroupe(
    { ...at.company, redact: () => '[hidden]' },
    { data: at.data, onWarning: () => {} },
  );
  await sayEverything(troupe);
  const { events } = await troupe.events('c', { limit: 500 });
  const ends = events.filter(({ kind }) => kind === 'turn.done');
  expect(ends.length).toBeGreaterThan(5);
  expect(events.filter(({ kind }) => kind === 'error')).toEqual([]);
  for (const event of events) expect(event.id).not.toContain('[hidden]');
});

test('a definition in JSON has no function, and anything else is refused', async () => {
  const wrong = { agents: [HELPER], redact: 'yes' as never };
  await expect(createTroupe(wrong)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('redact: redact is a function'),
  });
});

import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author } from '../../src/events/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { openTroupe } from '../support/mode.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const scripted = (id: string, rules: object[], tools: string[] = []) => ({
  id,
  provider: 'scripted' as const,
  tools,
  script: { rules },
});
const calling = (...names: string[]) => [
  { when: { step: 1 }, calls: names.map((name) => ({ name, args: {} })) },
  { reply: 'Heard: {{last}}' },
];
const asks = (name: string, work: (troupe: Troupe) => Promise<string>, company: { troupe?: Troupe }) =>
  defineTool({
    name,
    description: name,
    schema: z.object({}),
    run: () => work(company.troupe as Troupe),
  });

/** bo's tools ask, one turn at a time. */
async function open(
  asking: Record<string, (troupe: Troupe) => Promise<string>>,
  calls: readonly string[],
  more: Partial<TroupeInput> = {},
): Promise<Troupe> {
  const company: { troupe?: Troupe } = {};
  const tools = Object.entries(asking).map(([name, work]) => asks(name, work, company));
  const troupe = await openTroupe(
    {
      agents: [
        scripted('bo', calling(...calls), Object.keys(asking)),
        scripted('cy', [{ reply: 'cy says 42' }]),
        scripted(
          'di',
          [
            {
              when: { contains: 'Ask around.', step: 1 },
              calls: [{ name: 'delegate', args: { to: 'cy', task: 'What is it?' } }],
            },
            { reply: 'di passes on {{last}}' },
          ],
          ['delegate'],
        ),
      ],
      tools,
      ...more,
    } as unknown as TroupeInput,
    { concurrency: 1, onWarning: () => undefined },
  );
  company.troupe = troupe;
  return troupe;
}

const LIMITS: [name: string, more: Partial<TroupeInput>][] = [
  ['the process runs one turn at once', {}],
  ['its provider has one slot', { limits: { providers: { scripted: { turns: 1 } } } }],
  ['its tenant has one slot', { limits: { turnsPerTenant: 1 } }],
];
const text = async (troupe: Troupe) =>
  (await troupe.ask('c', { author: ANA, to: ['bo'], content: 'Go.' }, { timeoutMs: 30_000 })).text;
const question = (to: string) => ({ author: ANA, to: [to], content: 'Ask around.' });
const patience = { timeoutMs: 20_000 };

describe.each(LIMITS)('a tool that waits for other agents does not keep them from working: %s', (_, more) => {
  test('in another conversation', async () => {
    const other = async (troupe: Troupe) => (await troupe.ask('d', question('cy'), patience)).text;
    await using troupe = await open({ other }, ['other'], more);
    expect(await text(troupe)).toContain('cy says 42');
  });

  test('in its own conversation', async () => {
    const own = async (troupe: Troupe) => (await troupe.ask('c', question('cy'), patience)).text;
    await using troupe = await open({ own }, ['own'], more);
    expect(await text(troupe)).toContain('cy says 42');
  });

  test('when these delegate in turn, and when two tools ask at once', async () => {
    const one = async (troupe: Troupe) => (await troupe.ask('d', question('di'), patience)).text;
    const two = async (troupe: Troupe) => (await troupe.ask('e', question('cy'), patience)).text;
    await using troupe = await open({ one, two }, ['one', 'two'], more);
    expect(await text(troupe)).toContain('Heard');
    const results = (await troupe.events('c')).events.filter(({ kind }) => kind === 'tool.result');
    expect(results.map(({ body }) => (body as { content: string }).content)).toEqual([
      expect.stringContaining('di passes on'),
      'cy says 42',
    ]);
  });

  test('as a stream', async () => {
    const streamed = async (troupe: Troupe) => {
      let said = '';
      for await (const part of troupe.stream('d', question('cy'), patience))
        if (part.type === 'text') said += part.text;
      return said;
    };
    await using troupe = await open({ streamed }, ['streamed'], more);
    expect(await text(troupe)).toContain('cy says 42');
  });
});

test('a tool that asks its own agent where it works is told that it would wait for itself', async () => {
  const itself = async (troupe: Troupe) =>
    troupe.ask('c', question('bo'), patience).then(
      ({ text: said }) => said,
      (error: Error) => error.message,
    );
  await using troupe = await open({ itself }, ['itself']);
  expect(await text(troupe)).toContain('it would wait for its own turn');
});

test('a tool that does not wait keeps its place: no other turn runs beside it', async () => {
  let running = 0;
  let most = 0;
  const slow = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return 'done';
  };
  await using troupe = await open({ slow }, ['slow']);
  await Promise.all(
    ['c', 'd', 'e'].map((room) => troupe.ask(room, { author: ANA, to: ['bo'], content: 'Go.' })),
  );
  expect(most).toBe(1);
});

test('of two hand-overs in one step the first counts, and the model is told of the other', async () => {
  const handoff = (to: string) => ({ name: 'handoff', args: { to, goal: 'Go on.' } });
  const troupe = await openTroupe({
    agents: [
      scripted(
        'bo',
        [
          { when: { contains: 'Go.', step: 1 }, calls: [handoff('nobody'), handoff('cy'), handoff('di')] },
          { reply: 'I see.' },
        ],
        ['handoff'],
      ),
      scripted('cy', [{ reply: 'cy goes on' }]),
      scripted('di', [{ reply: 'di goes on' }]),
    ],
  } as unknown as TroupeInput);
  await using _ = troupe;
  await troupe.ask('c', { author: ANA, to: ['bo'], content: 'Go.' }, patience);
  await troupe.idle();
  const { events } = await troupe.events('c');
  expect(events.filter(({ kind }) => kind === 'handoff').map(({ to }) => to)).toEqual([['cy']]);
  expect(events.filter(({ kind, author }) => kind === 'message' && author.kind === 'agent')).toMatchObject([
    { author: { id: 'cy' } },
  ]);
  const results = events.filter(({ kind }) => kind === 'tool.result');
  expect(results.map(({ body }) => body)).toMatchObject([
    { outcome: 'failed' },
    { outcome: 'done' },
    {
      outcome: 'failed',
      content: expect.stringContaining('this step had handed over to @cy before, and only the first counts'),
    },
  ]);
});

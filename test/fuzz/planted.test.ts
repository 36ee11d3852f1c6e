import { expect, test } from 'vitest';
import * as z from 'zod';
import { type Figures, fuzzTarget } from '../../fuzz/fuzz-target.ts';
import type { Target } from '../../fuzz/target.ts';
import { eventsTarget } from '../../fuzz/targets/events.ts';
import { fencesTarget } from '../../fuzz/targets/fences.ts';
import { framesTarget } from '../../fuzz/targets/frames.ts';
import { importsTarget } from '../../fuzz/targets/imports.ts';
import { regexTarget } from '../../fuzz/targets/regex.ts';
import { routesTarget } from '../../fuzz/targets/routes.ts';
import { toolSchemasTarget } from '../../fuzz/targets/tool-schemas.ts';
import { vendorStreamsTarget } from '../../fuzz/targets/vendor-streams.ts';
import { EventDraft, type PromptMessage } from '../../src/events/index.ts';
import { importTranscript } from '../../src/library/import/index.ts';
import type { readEvent } from '../../packages/nostr/src/nostr-event.ts';

/** Each target gets code with a deliberate mistake and must find it: a fuzzer that cannot fail proves nothing. */

async function findings(target: Target, inputs = 3_000): Promise<Figures['findings']> {
  const figures = await fuzzTarget(target, { seed: 1, inputs, most: 1 });
  await target.close?.();
  return figures.findings;
}

test('a schema that throws on NUL is found, with an input that is little more than the NUL', async () => {
  const broken = EventDraft.transform((draft) => {
    if (JSON.stringify(draft).includes('\\u0000')) throw new TypeError('no NULs, please');
    return draft;
  });
  const [found] = await findings(eventsTarget({ EventDraft: broken }));
  expect(found?.kind).toBe('crash');
  expect(found?.message).toContain('no NULs');
  expect(JSON.stringify(found?.smallest).length).toBeLessThan(1_000);
});

test('a schema that parses its own output to another value is found', async () => {
  const growing = z.object({ id: z.string().transform((id) => `${id}x`) });
  expect((await findings(eventsTarget({ Growing: growing })))[0]?.message).toContain('it is another');
});

test('a parser that changes the object prototype is found', async () => {
  const polluting = z.unknown().transform((value) => {
    Object.defineProperty(Object.prototype, 'polluted', { value: true, configurable: true });
    return value;
  });
  try {
    expect((await findings(eventsTarget({ Polluting: polluting }), 1))[0]?.message).toContain('polluted');
  } finally {
    delete (Object.prototype as { polluted?: boolean }).polluted;
  }
});

test('a reader of streams that loses the last word of an answer is found', async () => {
  const lossy = vendorStreamsTarget((events) => {
    const last = events.findLast(({ type }) => type === 'text');
    return events.filter((event) => event !== last);
  });
  expect((await findings(lossy, 100))[0]?.message).toContain('the text is another');
});

test('a form of schemas that leaves alternatives at the top is found', async () => {
  const lax = toolSchemasTarget({ lax: { shape: (schema) => ({ ...schema, type: 'object' }) } });
  expect((await findings(lax, 500))[0]?.message).toContain('more than an object at the top');
});

const undo = (from: RegExp, to: string) => (message: PromptMessage) =>
  message.role === 'user' ? { ...message, content: message.content.replace(from, to) } : message;

test.each([
  ['leaves the full-width < as it is', undo(/＜\\/g, '＜')],
  ['leaves the plain < as it is', undo(/<\\/g, '<')],
  ['leaves the brackets of headers as they are', undo(/\\\[/g, '[')],
  ['names another author', undo(/\[@bob/, '[@cyd')],
  ['has a word too many', undo(/^/, 'Be kind. ')],
  ['closes no mark', undo(/\n#\d{6}$/, '')],
  ['leaves a forged end of a mark as it is', undo(/\\(?=[#\uff03\ufe5f\u266f])/g, '')],
  ['does not indent the lines of a block', undo(/\n /g, '\n')],
  ['names another author in a mark', undo(/\[@bob #/, '[@cyd #')],
])('a prompt that %s is found', async (_, spoil) => {
  expect((await findings(fencesTarget({ spoil }), 1_500)).length).toBeGreaterThan(0);
});

test('text in the mark of another event is found', async () => {
  const spoil = (message: PromptMessage) => ({
    ...message,
    content: message.content.replaceAll(/w2(?=[az])/g, 'w1'),
  });
  expect((await findings(fencesTarget({ spoil }), 1_500)).length).toBeGreaterThan(0);
});

test('an import that returns an invalid event is found, and so is one that throws', async () => {
  async function* longer(...given: Parameters<typeof importTranscript>): ReturnType<typeof importTranscript> {
    for await (const item of importTranscript(...given)) {
      if (item.draft) yield { ...item, draft: { ...item.draft, author: { ...item.draft.author, name: '' } } };
    }
    throw new Error('not to be seen');
  }
  expect((await findings(importsTarget(longer), 50))[0]?.message).toContain('is no event');
  // oxlint-disable-next-line require-yield
  async function* throwing(): ReturnType<typeof importTranscript> {
    throw new RangeError('too deep');
  }
  expect((await findings(importsTarget(throwing), 50))[0]).toMatchObject({ kind: 'crash' });
});

test('a route that answers 500, or with a foreign error, is found', async () => {
  const answering = (status: number) =>
    routesTarget({
      wrap: (app) => ({
        fetch: (request) =>
          new URL(request.url).pathname === '/api/agents'
            ? new Response('oh', { status })
            : app.fetch(request),
      }),
    });
  expect((await findings(answering(500), 400))[0]).toMatchObject({ kind: '500' });
  expect((await findings(answering(418), 400))[0]?.message).toContain('without our error');
});

test('an expression that is slow for some text is found', async () => {
  const slow = regexTarget({ trailing: (text) => text.replace(/\s+$/, '') });
  const only: Target = {
    ...(slow as Target),
    run: (input) =>
      slow.run({ ...(input as Parameters<typeof slow.run>[0]), where: 'trailing', unit: ' ', after: 'x' }),
  };
  expect((await findings(only, 1))[0]).toMatchObject({ kind: 'slow' });
});

test('a frame with unsigned fields kept is found', async () => {
  const loose = ((raw: unknown) =>
    typeof raw === 'object' && raw !== null ? raw : 'shape') as typeof readEvent;
  expect((await findings(framesTarget(loose), 300))[0]?.message).toContain('unsigned field');
});

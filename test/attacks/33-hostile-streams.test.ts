import fc from 'fast-check';
import { expect } from 'vitest';
import { FRAMES, type Frames, startHostileVendor, type Vendor } from '../support/hostile-vendor.ts';
import { attack } from './attack.ts';
import { ANA, only, openStage } from './stage.ts';

const MEBIBYTE = 1_048_576;
/** The size at which the server stops by itself: far beyond the limit plus the sockets' buffers. */
const MOST_BYTES = 64 * MEBIBYTE;
const TAKEN_BYTES = 32 * MEBIBYTE;
const WORDS = 'all work and no play '.repeat(800);

/** Endless answers, in the frames of one API; their first words are kept. */
const ENDLESS: Readonly<Record<string, (frames: Frames) => Generator<string>>> = {
  *line() {
    yield 'data: {"choices":[{"delta":{"content":"';
    for (;;) yield WORDS;
  },
  *'line in small pieces'() {
    for (;;) yield 'x'.repeat(7);
  },
  *event() {
    for (;;) yield 'data: []\n'.repeat(1_000);
  },
  *text({ text }) {
    for (;;) yield text(WORDS);
  },
  *reasoning({ text, reasoning }) {
    yield text('I think');
    for (;;) yield reasoning(WORDS);
  },
  *arguments({ text, call, more }) {
    yield text('I call');
    yield call(0, '{"a":"');
    for (;;) yield more(0, WORDS);
  },
  *calls({ text, call }) {
    yield text('I call');
    for (let index = 0; ; index += 1) yield call(index, '{}');
  },
};

attack(33, 'an endless answer is stopped with an error that names it', async (refused) => {
  let way: (frames: Frames) => Generator<string> = () => ENDLESS['line']?.(FRAMES.openai) as never;
  let isKind = false;
  const vendors: Vendor[] = ['openai-compatible', 'openai', 'anthropic'];
  await using hostile = await startHostileVendor(function* ({ body }) {
    const vendor = vendors.find((name) => body.includes(`"model":"${name}"`)) ?? 'openai';
    if (isKind) return yield kindAnswer(vendor);
    yield FRAMES[vendor].head;
    yield* way(FRAMES[vendor]);
  }, MOST_BYTES);
  const mallory = (vendor: Vendor) => ({
    id: `on-${vendor}`,
    provider: vendor,
    model: vendor,
    baseUrl: hostile.url,
    contextWindow: 128_000,
  });
  await using stage = await openStage({ agents: [...vendors.map((vendor) => mallory(vendor)), 'cy'] });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Object.keys(ENDLESS)),
      fc.constantFrom(...vendors),
      async (name, vendor) => {
        way = ENDLESS[name] ?? way;
        isKind = false;
        const before = hostile.answers.length;
        const conversation = `c${(run += 1)}`;
        const to = [`on-${vendor}`, 'cy'];
        await stage.troupe.send(conversation, { author: ANA, content: 'hello', to });
        await stage.troupe.idle();
        const events = await stage.events(conversation);
        expect(only(events, 'turn.failed').map(({ body }) => body.code)).toEqual(['provider_reply_too_long']);
        refused('turn.failed provider_reply_too_long');
        // The text is kept and not requested again.
        const [failed] = only(events, 'turn.failed');
        if (!/line|event/.test(name)) expect(failed?.body.partial).toMatch(/^(all work|I think|I call)/);
        const answers = hostile.answers.slice(before);
        expect(answers).toHaveLength(1);
        expect(answers[0]?.sent).toBeLessThan(TAKEN_BYTES);
        expect(answers[0]?.isCut).toBe(true);
        // Other agents continue, and so does this one once its vendor has recovered.
        expect(only(events, 'message').some(({ author }) => author.id === 'cy')).toBe(true);
        isKind = true;
        await stage.troupe.send(conversation, { author: ANA, content: 'and now?', to: [`on-${vendor}`] });
        await stage.troupe.idle();
        expect(only(await stage.events(conversation), 'message').at(-1)?.body.content).toBe('better');
      },
    ),
    // Each way on each API.
    { numRuns: 21, endOnFailure: true, examples: everyWay(vendors) },
  );
  expect(stage.errors).toEqual([]);
});

function everyWay(vendors: readonly Vendor[]): [string, Vendor][] {
  return Object.keys(ENDLESS).flatMap((way) => vendors.map((vendor): [string, Vendor] => [way, vendor]));
}

function kindAnswer(vendor: Vendor): string {
  const { head, text } = FRAMES[vendor];
  const end = {
    'openai-compatible':
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    openai: 'data: {"type":"response.completed","response":{"status":"completed"}}\n\n',
    anthropic:
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n' +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  };
  return head + text('better') + end[vendor];
}

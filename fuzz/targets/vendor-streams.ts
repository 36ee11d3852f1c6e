import { below, pick, type Random } from '../../sim/random.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import type { ModelEvent, Provider } from '../../src/providers/provider.ts';
import { sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { Broken, type Target } from '../target.ts';
import { framed, type Said, VENDORS } from './vendor-frames.ts';

/**
 * Whole answers as each vendor streams them, in any framing.
 * V1  The text is what the model said, to the last sign, and its calls are those that it made, with their arguments.
 * V2  The answer ends as finished.
 */
export interface VendorInput {
  api: keyof typeof VENDORS;
  vendor: string;
  said: Said;
  body: string;
  /** Bytes per piece. */
  piece: number;
}

const WORDS = [
  'well said ',
  'über 🌞 ',
  'data: x\n\n',
  '"quoted" \\ ',
  '[DONE]',
  '{"a":1}',
  '\n',
  'event: error',
  '日本',
  ': ',
] as const;
const VALUES = [
  '{"a":1}',
  '{"a":"x y","b":[1,2]}',
  '{"a":"\\"}{","b":{"c":null}}',
  '{"a":"data: 1\\n\\n"}',
] as const;

export function vendorStreamsTarget(
  heard: (events: ModelEvent[]) => ModelEvent[] = (events) => events,
): Target<VendorInput> {
  const options = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'key-of-fuzz' };
  const providers: Record<keyof typeof VENDORS, Provider> = {
    chat: createOpenAiCompatible(options),
    responses: createOpenAi(options),
    messages: createAnthropic(options),
  };
  return {
    name: 'vendor-streams',
    keepKeys: true,
    whole: true,
    make: makeInput,
    async run(input) {
      const real = globalThis.fetch;
      globalThis.fetch = (asked, init) => {
        const { href } = new URL(asked instanceof Request ? asked.url : asked);
        return href.startsWith('data:') ? real(asked, init) : Promise.resolve(responseOf(input));
      };
      try {
        const events: ModelEvent[] = [];
        const { signal } = new AbortController();
        for await (const event of providers[input.api].stream(sampleRequest(), { signal }))
          events.push(event);
        return check(heard(events), input.said);
      } finally {
        globalThis.fetch = real;
      }
    },
    async close() {
      await Promise.all(Object.values(providers).map(async (provider) => provider.close?.()));
    },
  };
}

function check(events: readonly ModelEvent[], said: Said): string {
  const text = events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
  const last = events.at(-1);
  if (last?.type !== 'done') throw new Broken(`a whole answer ends as ${JSON.stringify(last)}`);
  if (text !== said.texts.join('')) throw new Broken(`the text is another: ${JSON.stringify(text)}`);
  const calls = events.flatMap((event) => (event.type === 'call' ? [event.call] : []));
  const shown = (each: readonly Said['calls'][number][]) =>
    JSON.stringify(each.map(({ id, name, args }) => [id, name, JSON.parse(args) as unknown]));
  if (shown(calls) !== shown(said.calls)) throw new Broken(`the calls are others: ${shown(calls)}`);
  return 'accepted';
}

function makeInput(random: Random): VendorInput {
  const api = pick(random, Object.keys(VENDORS) as (keyof typeof VENDORS)[]);
  const some = (most: number) =>
    Array.from({ length: below(random, most) }, () => pick(random, WORDS) as string);
  const calls = Array.from({ length: random() < 0.4 ? 0 : 1 + below(random, 3) }, (_, index) => ({
    id: pick(random, ['call_', 'functions.add:', `call__thought__${'c2ln'.repeat(30)}`]) + String(index),
    name: pick(random, ['add', 'look']),
    args: pick(random, VALUES) as string,
  }));
  // An answer says something.
  const texts = calls.length > 0 ? some(4) : ['So: ', ...some(4)];
  const said: Said = { texts, thoughts: some(3), calls };
  const [vendor, write] = pick(random, Object.entries(VENDORS[api]));
  const body = framed(write(said, random), random);
  return { api, vendor, said, body, piece: pick(random, [1_000_000, 4_096, 61, 7, 1]) };
}

function responseOf({ body, piece }: VendorInput): Response {
  const bytes = Buffer.from(body);
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + piece)));
      at += piece;
    },
  });
  return new Response(stream, { status: 200, headers: { 'content-type': 'text/event-stream' } });
}

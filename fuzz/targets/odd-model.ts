import { below, pick, type Random } from '../../sim/random.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { parseArgs } from '../../src/providers/call-text.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import type { ModelEvent, Provider } from '../../src/providers/provider.ts';
import { kindOfEnd } from '../../src/providers/stop-reasons.ts';
import { sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { nastyText } from '../nasty.ts';
import { Broken, type Target } from '../target.ts';
import { oddFrames } from './odd-frames.ts';

/**
 * Answers with known words and calls, in the many forms in which vendors and servers send them, to the real adapters.
 * O1  A call has the name and the arguments that its model wrote, whatever their form. There is no other.
 * O2  A call that is missing is told: by `broken`, a failure or a refusal. So is an end that is none, with nothing said.
 * O3  The words are the model's words, without its thoughts, which are its reasoning.
 */
export interface OddInput {
  wire: 'chat' | 'responses' | 'messages';
  words: string;
  thoughts: string;
  calls: { name: string; args: string }[];
  /** The vendor's word for the end. */
  end: string;
  /** Characters of the arguments of the last call that still come. Null: all. */
  cut: number | null;
  /** Characters per piece. */
  piece: number;
  /** Choices of the form, one number each. */
  form: readonly number[];
}

const ORDINARY = ['stop', 'stop', 'tool_calls', 'end_turn', 'tool_use', 'STOP', 'eos', 'function_call'];
const LIMITS = ['length', 'max_tokens', 'MAX_TOKENS', 'model_length', 'max_output_tokens'];
const REFUSALS = ['content_filter', 'SAFETY', 'refusal', 'sensitive', 'guardrail_intervened'];
const MALFORMED = ['MALFORMED_FUNCTION_CALL', 'malformed_tool_use', 'UNEXPECTED_TOOL_CALL'];
const OTHERS = ['error', 'abort', 'insufficient_system_resource', 'OTHER', 'made_up'];
const ENDS = [...ORDINARY, ...LIMITS, ...REFUSALS, ...MALFORMED, ...OTHERS];

export function oddModelTarget(): Target<OddInput> {
  const options = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'key-of-fuzz' };
  const providers: Record<OddInput['wire'], Provider> = {
    chat: createOpenAiCompatible(options),
    responses: createOpenAi(options),
    messages: createAnthropic(options),
  };
  return {
    name: 'odd-model',
    keepKeys: true,
    make: makeInput,
    async run(input) {
      const real = globalThis.fetch;
      const body = oddFrames(input);
      globalThis.fetch = () =>
        Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
      try {
        const events: ModelEvent[] = [];
        const { signal } = new AbortController();
        for await (const event of providers[input.wire].stream(sampleRequest(), { signal }))
          events.push(event);
        return checkEvents(input, events);
      } finally {
        globalThis.fetch = real;
      }
    },
    async close() {
      await Promise.all(Object.values(providers).map(async (provider) => provider.close?.()));
    },
  };
}

function makeInput(random: Random): OddInput {
  const isCut = random() < 0.3;
  const calls = Array.from({ length: random() < 0.3 ? 0 : 1 + below(random, 3) }, (_, n) => ({
    name: pick(random, ['clean', 'list']),
    args: JSON.stringify({ n, text: random() < 0.7 ? 'a"{}\\b' : nastyText(random).toWellFormed() }),
  }));
  return {
    wire: pick(random, ['chat', 'responses', 'messages']),
    words: pick(random, ['', '', 'It is cleaned.', 'a < b', '[1]', '<thin']),
    thoughts: random() < 0.2 ? pick(random, ['Hm.', 'a</thin', '{"a":']) : '',
    calls,
    end: isCut ? pick(random, LIMITS) : pick(random, ENDS),
    cut: isCut && calls.length > 0 ? below(random, calls.at(-1)?.args.length ?? 1) : null,
    piece: pick(random, [1, 2, 7, 1_000]),
    form: Array.from({ length: 8 }, () => below(random, 1_000)),
  };
}

function checkEvents(
  { wire, words, thoughts, calls, end, cut }: OddInput,
  events: readonly ModelEvent[],
): string {
  const last = events.at(-1);
  if (last?.type === 'failed') return last.error.code;
  if (last?.type !== 'done') throw new Broken('no end');
  const made = events.flatMap((event) => (event.type === 'call' ? [event.call] : []));
  const written = calls.slice(0, cut === null ? calls.length : -1);
  const keys = written.map(({ name, args }) => `${name} ${canonical(args)}`);
  const given = made.map(({ name, args }) => `${name} ${canonical(args)}`);
  const wrong = given.find((call) => !keys.includes(call));
  if (wrong !== undefined) throw new Broken(`a call that nobody wrote: ${wrong.slice(0, 200)}`);
  if (new Set(given).size !== given.length) throw new Broken('a call is made twice');
  const isTold = last.broken !== undefined || last.stop === 'refusal';
  if (given.length < calls.length && !isTold) throw new Broken('a call is lost without a word');
  const said = events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
  if (said.trim() !== words.trim()) throw new Broken(`the words are ${JSON.stringify(said)}`);
  const reasoned = events.map((event) => (event.type === 'reasoning' ? event.reasoning.text : '')).join('');
  if (reasoned.trim() !== thoughts) throw new Broken(`the thoughts are ${JSON.stringify(reasoned)}`);
  // A response does not say that it ends with calls.
  const isEnd = kindOfEnd(end) === 'end' || (wire === 'responses' && kindOfEnd(end) === 'calls');
  const isEmpty = made.length === 0 && said.trim() === '';
  if (isEmpty && last.stop === 'end' && !isTold && !isEnd)
    throw new Broken(`"${end}" with nothing said is an answer`);
  return 'accepted';
}

function canonical(args: string): string {
  return JSON.stringify(parseArgs(args));
}

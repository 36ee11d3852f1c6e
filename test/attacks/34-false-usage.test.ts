import fc from 'fast-check';
import { expect } from 'vitest';
import { FRAMES, startHostileVendor, type Vendor } from '../support/hostile-vendor.ts';
import { attack } from './attack.ts';
import { ANA, only, openStage } from './stage.ts';

const MOST_BYTES = 1_048_576;
const WINDOW = 32_768;
/** About ten times the possible cost of a turn: a dollar per million tokens, and prompts of a few hundred. */
const MOST_SPENT = { tokens: 2_000_000, usd: 2 };

const figure: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(9e15, 1e18, 2 ** 53, -1, -9e15, 0.5, 1e308, 30_000, 60_000, 1e6),
  fc.constantFrom('12', 'NaN', '', null, true, {}, [], [7], { valueOf: 1 }),
  fc.integer(),
  fc.double(),
);
const usages = fc.record({ input: figure, output: figure, read: figure, written: figure, thought: figure });
type Figures = Record<'input' | 'output' | 'read' | 'written' | 'thought', unknown>;

/** A complete answer, with these figures in the API's fields. */
function answerOf(vendor: Vendor, { input, output, read, written, thought }: Figures): string {
  const { head, text } = FRAMES[vendor];
  const data = (value: unknown, name?: string) =>
    `${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(value)}\n\n`;
  if (vendor === 'anthropic') {
    const usage = {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: written,
      output_tokens_details: { thinking_tokens: thought },
    };
    const delta = { stop_reason: 'end_turn' };
    return head + text('better') + data({ type: 'message_delta', delta, usage }, 'message_delta');
  }
  const cached = { cached_tokens: read, cache_write_tokens: written };
  const thinking = { reasoning_tokens: thought };
  if (vendor === 'openai') {
    const usage = {
      input_tokens: input,
      output_tokens: output,
      input_tokens_details: cached,
      output_tokens_details: thinking,
    };
    return (
      head + text('better') + data({ type: 'response.completed', response: { status: 'completed', usage } })
    );
  }
  const usage = {
    prompt_tokens: input,
    completion_tokens: output,
    prompt_tokens_details: cached,
    completion_tokens_details: thinking,
  };
  const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
  return (
    head + text('better') + data(end) + data({ choices: [], usage }) + data('[DONE]').replaceAll('"', '')
  );
}

attack(34, 'impossible usage figures are dropped', async (refused) => {
  let reported: Figures = { input: 9e15, output: 9e15, read: 0, written: 0, thought: 0 };
  const vendors: Vendor[] = ['openai-compatible', 'openai', 'anthropic'];
  await using hostile = await startHostileVendor(function* ({ body }) {
    const vendor = vendors.find((name) => body.includes(`"model":"${name}"`)) ?? 'openai';
    yield answerOf(vendor, reported);
  }, MOST_BYTES);
  const price = { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 };
  await using stage = await openStage({
    agents: vendors.map((vendor) => ({
      id: vendor,
      provider: vendor,
      model: vendor,
      baseUrl: hostile.url,
      contextWindow: WINDOW,
      price,
    })),
    company: { budgets: { tenant: { usd: 1_000_000 } } },
  });
  const read = (agent: string) => stage.warnings.filter((line) => line.startsWith(`usage of @${agent}:`));
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...vendors),
      fc.array(usages, { minLength: 4, maxLength: 6 }),
      async (agent, figures) => {
        const conversation = `c${(run += 1)}`;
        for (const usage of figures) {
          reported = usage;
          await stage.troupe.send(conversation, { author: ANA, content: 'go on', to: [agent] });
          await stage.troupe.idle();
        }
        // Each turn is answered and readable: no prompt was too long or shortened.
        const events = await stage.events(conversation);
        expect(only(events, 'message').filter(({ author }) => author.kind === 'agent')).toHaveLength(
          figures.length,
        );
        const done = only(events, 'turn.done');
        expect(done).toHaveLength(figures.length);
        expect(events.some(({ kind }) => kind === 'compaction' || kind === 'prune')).toBe(false);
        for (const { body } of done) {
          for (const count of Object.values(body.usage)) expect(count).toBeLessThan(200_000);
          expect(body.last?.reported ?? 0).toBeLessThan(WINDOW / 2);
        }
        // The estimate for the next prompt is its content.
        const { tokens } = await stage.troupe.prompt(conversation, agent);
        expect(tokens.estimate).toBeLessThan(WINDOW / 2);
        refused('usage dropped');
      },
    ),
    {
      numRuns: 24,
      examples: vendors.map((agent): [Vendor, Figures[]] => [
        agent,
        [9e15, 1e18, -1, 31_000, 'x'].map((input) => ({ input, output: 1, read: 0, written: 0, thought: 0 })),
      ]),
    },
  );
  const [budget] = await stage.troupe.budgets();
  expect(budget?.spent.tokens).toBeGreaterThan(0);
  expect(budget?.spent.tokens).toBeLessThan(run * MOST_SPENT.tokens);
  expect(budget?.spent.usd).toBeGreaterThan(0);
  expect(budget?.spent.usd).toBeLessThan(run * MOST_SPENT.usd);
  // One warning per vendor, however often it happened.
  for (const vendor of vendors) expect(read(vendor)).toHaveLength(1);
  refused('warning: usage is not believed');
  expect(stage.errors).toEqual([]);
});

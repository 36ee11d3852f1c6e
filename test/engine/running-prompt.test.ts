import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { SentPrompt } from '../../src/library/troupe.ts';
import { ROOM, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';

const TURNS = 6;
/** Model calls of a turn: room is made before the second one, too. */
const CALLS = 2;
const OUTPUT = 'all quiet on this day, and nothing to tell of it. '.repeat(80);

test('a prompt read while its turn makes room never claims a longer unchanged start than it has', async () => {
  const seen: SentPrompt[] = [];
  let turn = 0;
  const look = defineTool({
    name: 'look',
    description: 'The report of a day.',
    schema: z.object({ day: z.number() }),
    run: async () => {
      // At this point the log lacks what this turn has pruned.
      seen.push(await troupe.promptOf(`${ROOM}:p:${turn}`));
      return OUTPUT;
    },
  });
  // How the history looks must not decide how often the tool is called: the turn's first steps may be summarized.
  const vendor = await startFakeOpenAi(() =>
    seen.length < turn * CALLS
      ? { calls: [{ name: 'look', args: JSON.stringify({ day: seen.length }) }], usage: null }
      : { text: 'I see.', usage: null },
  );
  const troupe = await openTroupe(
    {
      agents: [
        {
          id: 'p',
          provider: 'openai-compatible',
          model: 'p',
          baseUrl: vendor.url,
          contextWindow: 4_600,
          maxOutputTokens: 200,
          tools: ['look'],
        },
      ],
      tools: [look],
      context: { summaries: 'extract' },
    },
    { constants: { policy: { prune: { protectTokens: 500, minGain: 500 } } } },
  );
  onTestFinished(async () => {
    await troupe.close();
    await vendor.close();
  });
  for (turn = 1; turn <= TURNS; turn++) {
    await troupe.send(ROOM, { author: UMA, to: ['p'], content: 'Look at the next day.' });
    await troupe.idle();
  }
  expect(seen).toHaveLength(TURNS * CALLS);
  // Room was made on the way: some prompt was smaller than its predecessor.
  const totals = seen.map(({ tokens }) => tokens.total);
  expect(totals.some((total, index) => total < (totals[index - 1] ?? 0))).toBe(true);
  expect(seen.some(({ verified }) => !verified)).toBe(true);
  for (const { cached, tokens, verified, turn: id, step } of seen) {
    expect(cached.tokens, id ?? '').toBeLessThanOrEqual(tokens.total);
    if (!verified) expect(cached, id ?? '').toEqual({ messages: 0, tokens: 0 });
    // After the end of the turn, all of it is known.
    const after = await troupe.promptOf(id ?? '', step);
    expect(after.verified).toBe(true);
    expect(after.cached.tokens).toBeLessThanOrEqual(after.tokens.total);
  }
});

import { expect, test } from 'vitest';
import { createTroupe, defineProvider } from '../../src/index.ts';

const UMA = { kind: 'user', id: 'u1', name: 'Uma' } as const;

/** What a turn is charged for, by a model that reports this input. */
async function chargedInput(content: string, input: number): Promise<{ input: number; warnings: string[] }> {
  const warnings: string[] = [];
  const told = defineProvider({
    name: 'told',
    async *read() {
      yield { type: 'text', delta: 'Yes.' };
      const usage = { input, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
      yield { type: 'done', stop: 'end', usage };
    },
  });
  const agents = [
    { id: 'bo', provider: 'custom', adapter: 'told', model: 'm', contextWindow: 100_000 },
  ] as const;
  await using troupe = await createTroupe(
    { agents: [...agents], providers: { told } },
    { data: ':memory:', onWarning: (error, where) => warnings.push(`${where}: ${String(error)}`) },
  );
  await troupe.send('c', { author: UMA, to: ['bo'], content });
  await troupe.idle();
  const { events } = await troupe.events('c', { after: 0 });
  const done = events.find(({ kind }) => kind === 'turn.done');
  return { input: done?.kind === 'turn.done' ? done.body.usage.input : -1, warnings };
}

test('an input within what was sent is believed: by its words, and by its bytes as JSON', async () => {
  expect(await chargedInput('word '.repeat(20_000), 60_000)).toMatchObject({ input: 60_000 });
  // Each of these takes two bytes as JSON.
  const quotes = await chargedInput('"'.repeat(20_000), 35_000);
  expect(quotes.input).toBe(35_000);
  expect(quotes.warnings.filter((text) => text.includes('has at most'))).toEqual([]);
});

test('an input beyond what was sent is not believed, and the warning says why', async () => {
  const { input, warnings } = await chargedInput('Hello.', 90_000_000);
  expect(input).toBeLessThan(10_000);
  expect(warnings.join('\n')).toMatch(/input is 90000000, but the request has at most \d+ tokens/);
});

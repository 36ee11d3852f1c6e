import fc from 'fast-check';
import { expect } from 'vitest';
import * as z from 'zod';
import { MAX_TRIES } from '../../src/machines/agent-lifecycle.ts';
import type { FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { attack } from './attack.ts';
import { ANA, only, openStage } from './stage.ts';

const SSE = { 'content-type': 'text/event-stream' };
/** Limit of the CPU time of all turns, whatever their models answer. */
const TURNS_MS = 20_000;
/** Calls for one poison: every try, a second step after a call, and the answer of the other agent. */
const MOST_CALLS = MAX_TRIES + 2;

function frame(data: unknown): string {
  return `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

const garbage = fc.constantFrom(
  '',
  'data: {',
  frame('null'),
  frame('[]'),
  frame('{"choices":'),
  frame({ choices: null }),
  frame({ choices: [{ index: 0, delta: null }] }),
  frame({ choices: [{ index: 0, delta: { tool_calls: [{}] } }] }),
  frame({ choices: [{ index: -1, delta: { content: 7 } }] }),
  frame({
    choices: [{ index: 0, delta: { tool_calls: [{ index: 1e9, function: { name: null, arguments: 7 } }] } }],
  }),
  frame('[DONE]'),
  '\u0000\u0001\uffff',
  `data: ${'['.repeat(50_000)}\n\n`,
  `data: "${'x'.repeat(500_000)}"\n\n`,
  '<html>502 Bad Gateway</html>',
);
const wire = fc.array(garbage, { minLength: 1, maxLength: 3 }).map((parts): FakeReply => ({
  raw: { status: 200, headers: SSE, body: parts.join('') },
}));

const args = fc.constantFrom(
  '{"n":NaN}',
  '{"n":Infinity}',
  '{"n":1e999}',
  '{"n":-1e999}',
  '{"n":12345678901234567890123456789}',
  '{"n":"1"}',
  '{"n":{"valueOf":1}}',
  '{"n":1',
  'null',
  '[]',
  '',
  '\u0000',
  `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
  `{"n":${'9'.repeat(100_000)}}`,
  `{"n":[${'[],'.repeat(50_000)}[]]}`,
);
const calls = args.map((text): FakeReply => ({ calls: [{ name: 'count', args: text }], chunk: 10_000 }));

/** Texts on which a careless pattern runs for hours. */
const SLOW: readonly string[] = [
  `<${' '.repeat(50_000)}`,
  '[ '.repeat(50_000),
  `[${'\n'.repeat(50_000)}`,
  `<m${'\u200b'.repeat(50_000)}`,
  `${'a'.repeat(50_000)}!`,
  '\u0300'.repeat(50_000),
  '</'.repeat(50_000),
];
const slow = fc.constantFrom(...SLOW).map((text): FakeReply => ({ text, chunk: 10_000 }));

attack(21, 'any output of a model affects its turn and nothing else', async (refused) => {
  let poisons: readonly FakeReply[] = [];
  const counted: unknown[] = [];
  const count = defineTool({
    name: 'count',
    description: 'Counts.',
    schema: z.object({ n: z.int() }),
    run({ n }) {
      counted.push(n);
      return `${n}`;
    },
  });
  await using stage = await openStage({
    agents: [{ id: 'bo', tools: ['count'] }, 'cy'],
    tools: [count],
    answer: ({ agent, last, messages }) => {
      if (agent === 'cy' || messages.at(-1)?.role === 'tool') return { text: 'fine' };
      const [, number] = /poison (\d+)/.exec(last) ?? [];
      return number === undefined ? { text: 'better' } : (poisons[Number(number)] ?? {});
    },
  });
  const codes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(wire, calls, slow), { minLength: 45, maxLength: 60 }),
      async (replies) => {
        poisons = replies;
        const cpuMs = await cpuMsOf(async () => {
          for (const n of replies.keys())
            await stage.troupe.send(`c${n}`, { author: ANA, content: `poison ${n}`, to: ['bo', 'cy'] });
          await stage.troupe.idle();
        });
        expect(cpuMs).toBeLessThan(TURNS_MS);
        expect(stage.vendor.requests.length).toBeLessThanOrEqual(replies.length * MOST_CALLS);
        for (const n of replies.keys()) {
          const events = await stage.events(`c${n}`);
          const ends = events.filter(({ kind }) => kind === 'turn.done' || kind === 'turn.failed');
          expect(ends.map(({ author }) => author.id).toSorted()).toEqual(['bo', 'cy']);
          // The other agent has answered.
          expect(only(events, 'message').some(({ author }) => author.id === 'cy')).toBe(true);
          for (const { body } of only(events, 'turn.failed')) codes.add(`turn.failed ${body.code}`);
          for (const { body } of only(events, 'tool.result')) codes.add(`tool.result ${body.outcome}`);
        }
        // This agent answers, too, when it is addressed again.
        for (const n of replies.keys())
          await stage.troupe.send(`c${n}`, { author: ANA, content: 'and now?', to: ['bo'] });
        await stage.troupe.idle();
        for (const n of replies.keys())
          expect(only(await stage.events(`c${n}`), 'message').at(-1)).toMatchObject({
            body: { content: 'better' },
          });
      },
    ),
    { numRuns: 1, endOnFailure: true },
  );
  expect(codes.has('tool.result failed')).toBe(true);
  expect(codes.size).toBeGreaterThan(2);
  for (const n of counted) expect(Number.isSafeInteger(n)).toBe(true);
  expect(stage.errors).toEqual([]);
  for (const code of codes) refused(code);
});

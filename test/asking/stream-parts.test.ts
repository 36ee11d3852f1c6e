import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import * as z from 'zod';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Answer, Note, Troupe } from '../../src/library/troupe.ts';
import { company } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';

const scripted = (id: string, rules: object[], more: object = {}) =>
  ({ id, provider: 'scripted', script: { rules }, ...more }) as AgentInput;

async function streamed(troupe: Troupe, conversation: string): Promise<{ parts: Note[]; answer: Answer }> {
  const parts: Note[] = [];
  const going = troupe.stream(conversation, { content: 'go', to: ['bo'] });
  for (;;) {
    const next = await going.next();
    if (next.done) return { parts, answer: next.value };
    parts.push(next.value);
  }
}

/** The words of the last step of a turn, as a reader of the parts puts them together. */
function said(parts: readonly Note[], turn: string): string {
  let text = '';
  let step = 0;
  for (const part of parts) {
    if (part.type !== 'text' || part.turn !== turn) continue;
    text = part.step === step && part.index > 0 ? text + part.text : part.text;
    step = part.step;
  }
  return text;
}

test('the text parts of a turn, joined, are its reply, whatever the pieces and failures before', async () => {
  const plan = fc.record({
    reply: fc.string({ minLength: 1, maxLength: 60, unit: 'grapheme' }).filter((text) => text.trim() !== ''),
    chunk: fc.integer({ min: 1, max: 9 }),
    first: fc.string({ maxLength: 20 }),
    steps: fc.integer({ min: 0, max: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ reply, chunk, first, steps }) => {
      const calls = Array.from({ length: steps }, (_, at) => ({
        when: { step: at + 1 },
        reply: first,
        chunk,
        calls: [{ name: 'look', args: { at } }],
      }));
      const look = defineTool({
        name: 'look',
        description: '',
        schema: z.object({ at: z.number() }),
        run: ({ at }) => `seen ${at}`,
      });
      await using troupe = await openTroupe({
        agents: [
          scripted('bo', [...calls, { reply: reply.replaceAll('{{', '{'), chunk }], { tools: ['look'] }),
        ],
        tools: [look],
      });
      const { parts, answer } = await streamed(troupe, 'c');
      expect(said(parts, 'c:bo:1')).toBe(answer.text);
      const running = parts.filter((part) => part.type === 'called');
      const results = parts.filter((part) => part.type === 'result');
      expect([running.length, results.length]).toEqual([steps, steps]);
    }),
    { numRuns: 15 },
  );
});

test('a call is told as its arguments grow, as it runs, and with what it gives', async () => {
  const work = defineTool({
    name: 'work',
    description: '',
    schema: z.object({ on: z.string() }),
    run: ({ on }, { progress }) => {
      progress({ text: 'half', done: 1, total: 2 });
      return `${on} is done`;
    },
  });
  await using room = await company(['bo'], {
    agents: { bo: { tools: ['work'] } },
    tools: [work],
    answers: { bo: [{ calls: [{ name: 'work', args: '{"on":"it"}' }] }, { text: 'Done.' }] },
  });
  const { parts } = await streamed(room.troupe, 'c');
  let written = '';
  for (const part of parts) {
    if (part.type !== 'arguments') continue;
    expect(part.index).toBe(written.length);
    written += part.text;
  }
  expect(written).toBe('{"on":"it"}');
  const called = parts.filter(({ type }) => type === 'called');
  expect(called).toMatchObject([{ name: 'work', args: '{"on":"it"}', agent: 'bo' }]);
  const rest = parts.filter(({ type }) => type === 'progress' || type === 'result');
  expect(rest).toMatchObject([
    { type: 'progress', name: 'work', text: 'half', done: 1, total: 2, turn: 'c:bo:1' },
    { type: 'result', name: 'work', outcome: 'done', text: 'it is done', turn: 'c:bo:1' },
  ]);
});

test('hand-overs and approvals are told with their events', async () => {
  const pay = defineTool({
    name: 'pay',
    description: '',
    schema: z.object({}),
    run: () => 'paid',
    needsApproval: true,
  });
  await using troupe = await openTroupe({
    agents: [
      scripted('bo', [{ calls: [{ name: 'handoff', args: { to: 'cy', goal: 'pay' } }] }], {
        tools: ['handoff'],
      }),
      scripted('cy', [{ calls: [{ name: 'pay', args: {} }] }], { tools: ['pay'] }),
    ],
    tools: [pay],
  });
  const { parts, answer } = await streamed(troupe, 'c');
  expect(answer.outcome).toBe('waiting');
  const events = parts.flatMap((part) => (part.type === 'event' ? [part.event] : []));
  const told = events.filter(({ kind }) => kind === 'handoff' || kind === 'approval.requested');
  expect(told).toMatchObject([
    { kind: 'handoff', author: { id: 'bo' }, conversation: 'c', to: ['cy'] },
    { kind: 'approval.requested', author: { id: 'cy' } },
  ]);
});

test('threads are part of the stream, each whole before the end of its task', async () => {
  await using room = await company(['bo', 'hand'], {
    agents: { bo: { tools: ['delegate'] } },
    answers: {
      bo: [
        { calls: [{ name: 'delegate', args: JSON.stringify({ to: 'hand', task: 'count' }) }] },
        { text: 'They are three.' },
        { text: 'They are three.' },
      ],
      hand: [{ text: 'Three.' }],
    },
  });
  const { parts, answer } = await streamed(room.troupe, 'c');
  const events = parts.flatMap((part) => (part.type === 'event' ? [part.event] : []));
  const told = events.filter(({ author }) => author.id === 'hand');
  const [thread] = new Set(told.map(({ conversation }) => conversation));
  expect(thread).not.toBe('c');
  expect(told.map(({ kind }) => kind)).toContain('message');
  const words = parts.filter((part) => part.type === 'text' && part.agent === 'hand');
  expect(new Set(words.map((part) => part.type === 'text' && part.conversation))).toEqual(new Set([thread]));
  const end = events.findIndex(
    ({ kind, conversation }) => kind === 'delegation.ended' && conversation === 'c',
  );
  const lastOfThread = events.findLastIndex(
    ({ kind, author }) => kind === 'turn.done' && author.id === 'hand',
  );
  expect(lastOfThread).toBeGreaterThan(-1);
  expect(lastOfThread).toBeLessThan(end);
  // The answer has the events of the conversation alone.
  expect(new Set(answer.events.map(({ conversation }) => conversation))).toEqual(new Set(['c']));
});

test('whoever leaves a stream early watches nothing any more', async () => {
  await using troupe = await openTroupe({ agents: [scripted('bo', [{ reply: 'one two three', chunk: 2 }])] });
  const watch = troupe.watch.bind(troupe);
  let began = 0;
  let open = 0;
  vi.spyOn(troupe, 'watch').mockImplementation((...args) => {
    began += 1;
    open += 1;
    const end = watch(...args);
    return () => {
      open -= 1;
      end();
    };
  });
  for await (const part of troupe.stream('c', 'go')) if (part.type === 'text') break;
  expect([began, open]).toEqual([1, 0]);
  await troupe.idle();
});

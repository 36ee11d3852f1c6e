import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { applyPatch } from 'diff';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { diffMessages } from '../../src/library/inspect/compare-turns.ts';
import type { PromptMessage } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import * as z from 'zod';
import { ANA, ECHO, scripted, startApi } from './harness.ts';

test('the next prompt shows its cached part, its cuts and the next compaction', async () => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'one' });
  await api.troupe.idle();
  const sent = (await api.get('/api/turns/c1:echo:1/prompt')).body as never as {
    count: number;
    tokens: { total: number };
  };
  expect((await api.get('/api/conversations/c1/agents/echo/prompt')).body).toMatchObject({
    cached: { messages: sent.count, tokens: sent.tokens.total },
    compaction: { at: 99_124, left: expect.any(Number) },
    relief: { at: 99_124, left: expect.any(Number) },
    cuts: [],
  });
});

test('a prompt names the role, the settings of the model and the events that the turn answers', async () => {
  const planner = {
    ...scripted('planner', [{ reply: 'ok' }]),
    role: 'manager' as const,
    maxOutputTokens: 2_000,
  };
  const server = {
    provider: 'openai-compatible',
    baseUrl: 'http://127.0.0.1:9/v1',
    model: 'local-1',
  } as const;
  const tuned = { id: 'tuned', ...server, contextWindow: 32_000, temperature: 0.2, effort: 'high' as const };
  await using api = await startApi({ agents: [planner, tuned] });
  const sent = await api.troupe.send('c1', { author: ANA, to: ['planner'], content: 'one' });
  await api.troupe.idle();
  const { id, seq } = sent.event;
  expect((await api.get('/api/turns/c1:planner:1/prompt')).body).toMatchObject({
    provider: 'scripted',
    triggers: [{ id, seq, kind: 'message', author: ANA }],
    role: 'manager',
    settings: { maxOutputTokens: 2_000 },
  });
  expect((await api.get('/api/conversations/c1/agents/planner/prompt')).body).toMatchObject({ triggers: [] });
  expect((await api.get('/api/conversations/c1/agents/tuned/prompt')).body).toMatchObject({
    provider: 'openai-compatible',
    model: 'local-1',
    role: 'peer',
    settings: { temperature: 0.2, effort: 'high' },
  });
});

test('a past prompt is that of the requested step, by default of the last one', async () => {
  const items = [{ text: 'one thing', status: 'done' }];
  const planner = scripted('planner', [
    { when: { step: 1 }, calls: [{ name: 'todo', args: { items } }] },
    { reply: 'done' },
  ]);
  await using api = await startApi({ agents: [{ ...planner, tools: ['todo'] }] });
  await api.troupe.send('c1', { author: ANA, to: ['planner'], content: 'one' });
  await api.troupe.idle();
  const saysIt = async (query: string) => {
    const { body } = await api.get(`/api/turns/c1:planner:1/prompt${query}`);
    return JSON.stringify(body['messages']).includes('one thing');
  };
  expect([await saysIt('?step=1'), await saysIt('?step=2'), await saysIt('')]).toEqual([false, true, true]);
  expect((await api.get('/api/turns/c1:planner:1/prompt?step=3')).status).toBe(404);
});

test('a turn is compared with another turn of the same agent or with the next prompt only', async () => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, to: ['echo', 'other'], content: 'one' });
  await api.troupe.idle();
  expect((await api.get('/api/turns/c1:echo:1/diff/next')).body).toMatchObject({
    a: { turn: 'c1:echo:1' },
    b: { turn: null },
    broke: null,
    messages: { changes: [{ a: null, role: 'assistant', hunks: [{ lines: ['+answer 1'] }] }, {}] },
  });
  for (const path of ['/api/turns/c1:echo:1/diff/c1:other:1', '/api/turns/c1:echo:1/diff/next?stepB=1']) {
    expect(await api.get(path)).toMatchObject({ status: 400, body: { error: { code: 'event_invalid' } } });
  }
  expect(await api.get('/api/turns/c1:echo:1/diff/c1:echo:2')).toMatchObject({
    status: 404,
    body: { error: { code: 'turn_unknown' } },
  });
});

test('a changed definition is named as the cause of the break, with its event', async () => {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-context-'));
  for (const instructions of ['Be short.', 'Be long.']) {
    await using api = await startApi({ agents: [{ ...ECHO, instructions }], troupe: { data } });
    await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'x '.repeat(2_000) });
    await api.troupe.idle();
    if (instructions === 'Be short.') continue;
    const broke = { layer: 'persona', message: 0, event: 'baseline:echo:2' };
    const { body } = await api.get('/api/turns/c1:echo:1/diff/c1:echo:2');
    expect(body).toMatchObject({ broke });
    const changes = (body['messages'] as never as { changes: { hunks: { lines: string[] }[] }[] }).changes;
    expect(changes[0]?.hunks[0]?.lines).toEqual(expect.arrayContaining(['-Be short.', '+Be long.']));
    expect((await api.get('/api/conversations/c1/cost')).body).toMatchObject({
      total: { calls: 2, usd: null, unknown: 2 },
      tools: [{ tool: null }],
      unknown: [{ agent: 'echo', calls: 2 }],
    });
    const cost = await api.get('/api/conversations/c1/agents/echo/cache-cost');
    expect(cost.body).toMatchObject({
      rows: [
        { broke: null, verified: true },
        { broke, read: 0, verified: true },
      ],
    });
    expect((await api.get('/api/turns/c1:echo:2/prompt')).body).toMatchObject({
      cached: { messages: 0, tokens: 0 },
    });
  }
  rmSync(data, { recursive: true });
});

const look = defineTool({
  name: 'look',
  description: 'looks',
  schema: z.object({}),
  run: async () => 'seen '.repeat(300),
});
const AGENTS = ['ann', 'ben'].map((id) => ({
  ...scripted(id, [
    { when: { contains: 'tool', step: 1 }, reply: 'looking', calls: [{ name: 'look', args: {} }] },
    { when: { contains: 'fail' }, reply: 'abcdef', fail: { after: 3, code: 'provider_auth' } },
    { reply: `fine {{n}} ${'lorem ipsum '.repeat(30)}` },
  ]),
  tools: ['look'],
}));
const COMPANY = { agents: AGENTS, tools: [look], context: { summaries: 'extract' as const } };

test.each([3_000, 6_000, 128_000])(
  'with a window of %i every sent prompt is rendered again byte for byte, in order, and priced',
  async (contextWindow) => {
    const agents = AGENTS.map((agent) => ({ ...agent, contextWindow, maxOutputTokens: 300 }));
    await using api = await startApi({ company: { ...COMPANY, agents } });
    const { troupe } = api;
    for (let n = 0; n < 36; n++) {
      const to = [['ann'], ['ann', 'ben'], ['ben']][n % 3] ?? [];
      const what = n % 4 === 0 ? 'tool' : n % 11 === 5 ? 'fail' : 'hello';
      await troupe.send('c1', { author: ANA, to, content: `message ${n}: ${what}` });
      if (n % 2 === 1) await troupe.idle();
    }
    await troupe.idle();
    for (const agent of ['ann', 'ben']) {
      const { body } = await api.get(`/api/conversations/c1/agents/${agent}/cache-cost?vendor=openai`);
      const report = body as never as Awaited<ReturnType<typeof troupe.cacheCost>>;
      const sent = [];
      for (let turn = 1; turn <= Number(/\d+$/.exec(report.rows.at(-1)?.turn ?? '0')?.[0]); turn++) {
        sent.push(...(await troupe.trace(`c1:${agent}:${turn}`)).prompts);
      }
      expect(report.rows.map(({ turn, step }) => [turn, step])).toEqual(
        sent.map(({ turn, step }) => [turn, step]),
      );
      expect(report.rows.filter(({ verified }) => !verified)).toEqual([]);
      for (const { input, read, written, fresh } of report.rows) expect(read + written + fresh).toBe(input);
      const known = new Set<string>();
      for (const [index, { cuts }] of sent.entries()) {
        const news = cuts.filter(({ event }) => !known.has(event));
        // The very first prompt has no predecessor that could break.
        expect(report.rows[index]?.broke !== null).toBe(index > 0 && news.length > 0);
        for (const { event } of news) known.add(event);
      }
      if (contextWindow === 3_000) expect(known.size).toBeGreaterThan(3);
      expect(report.total.cost).toBeLessThanOrEqual(report.total.uncached);
      const seen = report.rows.map(({ at }) => at);
      expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    }
  },
);

test.each([
  ['/api/conversations/c1/agents/echo/cache-cost?vendor=acme', 400, 'event_invalid'],
  ['/api/conversations/c1/agents/nope/cache-cost', 404, 'agent_unknown'],
  ['/api/conversations/nope/agents/echo/cache-cost', 404, 'conversation_unknown'],
  ['/api/conversations/nope/cost', 404, 'conversation_unknown'],
])('GET %s is %i %s', async (path, status, code) => {
  await using api = await startApi();
  await api.troupe.send('c1', { author: ANA, content: 'x' });
  expect(await api.get(path)).toMatchObject({ status, body: { error: { code } } });
});

const Words = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 6 }).map((lines) => lines.join('\n'));
const Message = fc
  .record({ role: fc.constantFrom('user' as const, 'assistant' as const), content: Words })
  .map((message): PromptMessage => ({ ...message, seqs: [] }));

test('a difference is complete: applied to the first prompt it gives the second', () => {
  fc.assert(
    fc.property(
      fc.array(Message, { maxLength: 8 }),
      fc.array(Message, { maxLength: 8 }),
      fc.array(Message, { maxLength: 4 }),
      (a, b, prefix) => {
        const [was, is] = [
          [...prefix, ...a],
          [...prefix, ...b],
        ];
        const { changes } = diffMessages(was, is, prefix.length);
        const gone = new Set(changes.map((change) => change.a));
        const kept = was.filter((_, index) => !gone.has(index));
        const rebuilt: (string | undefined)[] = [];
        for (const [index] of is.entries()) {
          const change = changes.find((one) => one.b === index);
          if (!change) rebuilt.push(kept.shift()?.content);
          else rebuilt.push(patched(change.a === null ? null : was[change.a]?.content, change.hunks));
        }
        expect(rebuilt).toEqual(is.map(({ content }) => content));
        expect(kept).toEqual([]);
      },
    ),
  );
});

function patched(
  text: string | null | undefined,
  hunks: ReturnType<typeof diffMessages>['changes'][0]['hunks'],
): string {
  const patch = {
    oldFileName: 'a',
    newFileName: 'b',
    oldHeader: undefined,
    newHeader: undefined,
    index: undefined,
    hunks: hunks.map(({ aStart, aLines, bStart, bLines, lines }) => ({
      oldStart: aStart,
      oldLines: aLines,
      newStart: bStart,
      newLines: bLines,
      lines,
    })),
  };
  const after = applyPatch(text === null || text === undefined ? '' : `${text}\n`, patch as never);
  return after === false ? 'does not apply' : after.replace(/\n$/, '');
}

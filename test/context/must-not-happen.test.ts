import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { countTokens } from '../../src/context/budget/tokens.ts';
import {
  extractCompaction,
  pairSafe,
  scaledPolicy,
  summaryCompaction,
  DEFAULT_POLICY,
  type CompactionBase,
} from '../../src/context/index.ts';
import { NOBODY } from '../../src/context/text/people.ts';
import { renderCompaction } from '../../src/context/compaction/apply.ts';
import type { AgentId, CompactionBody, Event } from '../../src/events/index.ts';
import type { ModelRequest } from '../../src/providers/provider.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { invalidities } from '../support/check-prompt.ts';
import { mortal } from '../support/engine-driver.ts';
import { asks, bytes, says, shown, times } from '../support/engine-models.ts';
import { openStage, type Stage, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { at, call, agentSays, personSays, result } from '../support/extract-events.ts';
import {
  ask,
  fill,
  kinds,
  mind,
  of,
  opening,
  progress,
  prose,
  small,
  type Mind,
} from '../support/compaction-stage.ts';

/**
 * One test per forbidden outcome of prompts, all seen in real systems. Continued in
 * `must-not-happen-in-prompts.test.ts`.
 */

function reports(characters: number) {
  return defineTool({
    name: 'report',
    description: 'reports',
    schema: z.object({ n: z.number() }),
    run: async ({ n }) => prose(n, characters),
  });
}
const report = reports(3_000);

/** Calls `report` so many times in its first turn. */
function reporter(steps: number): Mind {
  return mind({
    turn: ({ trace }) =>
      trace.turn.endsWith(':1') && trace.step <= steps ? asks(['report', { n: trace.step }]) : says('ok'),
  });
}

async function relieved(): Promise<{ stage: Stage; bo: Mind; sent: ModelRequest }> {
  const bo = mind();
  const stage = await openStage({ agents: [small('bo', bo)] });
  await ask(stage, 'Never publish the ledger before Friday.');
  await fill(stage, 12);
  await ask(stage, 'and now?');
  const sent = bo.asked().at(-1);
  if (!sent) throw new Error('nothing was asked');
  return { stage, bo, sent };
}

const BASE: Omit<CompactionBase, 'events'> = {
  number: 1,
  upTo: 20,
  reason: 'over_budget',
  by: 'bo' as AgentId,
  before: 5_000,
  budget: 1_500,
  previous: null,
  policy: scaledPolicy(DEFAULT_POLICY, 20_000),
  secret: 's',
  people: NOBODY,
  count: countTokens,
};

test('instructions or the last request are lost by a compaction', async () => {
  const bo = mind();
  const stage = await openStage({ agents: [small('bo', bo)] });
  await ask(stage, 'question 0');
  for (let round = 1; round <= 3; round++) {
    await fill(stage, 12, round * 100);
    await ask(stage, `question ${round}`);
  }
  expect(await of(stage, 'compaction')).toHaveLength(3);
  const [first, ...rest] = bo.asked();
  expect(first?.messages[0]?.content).toContain('bo');
  for (const [index, { messages }] of rest.entries()) {
    expect(messages[0]).toEqual(first?.messages[0]);
    expect(messages.at(-1)?.content).toContain(`question ${index + 1}`);
  }
});

test('compactions repeat in a loop', async () => {
  const bo = reporter(12);
  const agents = [small('bo', bo, { tools: ['report'] })];
  const stage = await openStage({ tools: [report], agents });
  // The unanswered messages and the newest outputs alone nearly fill the window, step after step.
  await ask(stage, prose(1, 14_000));
  const perStep = new Map<number, number>();
  for (const { body } of await progress(stage, 'started'))
    perStep.set(body.step, (perStep.get(body.step) ?? 0) + 1);
  expect(perStep.size).toBeGreaterThan(1);
  expect([...perStep.values()].every((count) => count === 1)).toBe(true);
  expect(bo.summaries().length).toBeLessThanOrEqual(3);
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
});

test('a call without its result, or a result without its call', async () => {
  const step = call('read_file', { path: 'src/a.ts' });
  const events = at([
    personSays('go'),
    step,
    personSays('meanwhile'),
    result('what it says'),
    agentSays('done'),
  ]);
  expect([1, 2, 3, 4, 5].map((upTo) => pairSafe(events, upTo))).toEqual([1, 1, 1, 4, 5]);
  const bo = reporter(9);
  const stage = await openStage({ tools: [report], agents: [small('bo', bo, { tools: ['report'] })] });
  await fill(stage, 8);
  await ask(stage, 'report');
  expect((await kinds(stage, 'prune', 'compaction')).length).toBeGreaterThan(0);
  for (const { messages } of bo.asked()) expect(invalidities(messages)).toEqual([]);
});

test('the request for a summary exceeds the limit itself, and the agent stops silently', async () => {
  const [bo, clerk] = [mind(), mind()];
  const tiny = { contextWindow: 1_024, maxOutputTokens: 200 };
  const agents = [small('bo', bo), { id: 'clerk', model: clerk, ...tiny }];
  const stage = await openStage({ agents, context: { summariser: 'clerk' } });
  await fill(stage, 14);
  await ask(stage, 'and now?');
  expect(clerk.requests).toEqual([]);
  expect((await progress(stage, 'failed')).map(({ body }) => body.message)).toEqual([
    'even the shortest request for a summary does not fit the window',
  ]);
  expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'extraction' } }]);
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
});

describe('a task is not continued after a compaction', () => {
  test('the turn continues with its next step, and its prompt shows what it has done', async () => {
    const bo = reporter(7);
    const stage = await openStage({
      tools: [reports(8_000)],
      agents: [small('bo', bo, { tools: ['report'] })],
    });
    await ask(stage, 'Write seven reports.');
    const steps = bo.asked().map(({ trace }) => trace.step);
    expect(steps).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect((await progress(stage, 'done')).length + (await of(stage, 'prune')).length).toBeGreaterThan(0);
    const last = bo.asked().at(-1);
    expect(shown(last)).toContain('Write seven reports.');
    // The next step reads the results of a step, whatever had to be removed for them.
    for (const [index, request] of bo.asked().slice(1).entries())
      expect(shown(request)).toContain(`w${index + 1}z`);
    expect(last?.messages.at(-1)?.role).toBe('tool');
    expect((await of(stage, 'tool.result')).map(({ body }) => body.outcome)).toEqual(Array(7).fill('done'));
  });

  test('an open delegation stays open in every further compaction', () => {
    const author = { kind: 'agent' as const, id: 'bo', name: 'bo' };
    const body = { delegation: 'del-77', assignee: 'cy' as AgentId, task: 'count the ships' };
    const opened = { ...personSays('x'), author, kind: 'delegation.opened', body } as Event;
    const chatter = (from: number) => Array.from({ length: 12 }, (_, n) => personSays(prose(from + n, 600)));
    const events = at([opened, ...chatter(1)]);
    const first = extractCompaction({ ...BASE, events, upTo: 13 });
    const second = extractCompaction({
      ...BASE,
      events: at(chatter(50), 14),
      number: 2,
      upTo: 25,
      previous: first,
    });
    for (const compaction of [first, second]) {
      expect(compaction?.facts.pending.some((item) => item.text.includes('del-77'))).toBe(true);
      expect(renderCompaction(compaction as CompactionBody, 's')).toContain(
        'Open:\n- [@bo] delegation del-77',
      );
    }
  });
});

test('history appears twice after a resume', async () => {
  const driver = await openDriver();
  const first = mortal(driver);
  const dying = mind({
    async *turn() {
      await new Promise(() => undefined);
      yield { type: 'start' };
    },
  });
  const stage = await openStage({ driver: first.driver, agents: [small('bo', dying)] });
  await fill(stage, 14);
  await stage.say('c', 'and now?', ['bo']);
  await until('the answer is asked for', () => dying.asked().length === 1);
  first.kill();
  const next = mind();
  const again = await openStage({ driver, agents: [small('bo', next)] });
  await again.quiet();
  const [sent] = next.asked();
  expect(bytes(sent)).toBe(bytes(dying.asked()[0]));
  for (let n = 1; n <= 14; n++) expect(times(shown(sent), `w${n}z`)).toBeLessThanOrEqual(1);
  expect(await of(again, 'compaction')).toHaveLength(1);
});

test('the first prompt after a compaction contains nothing new', async () => {
  const { stage, bo } = await relieved();
  await stage.say('c', 'said meanwhile', []);
  await ask(stage, 'and then?');
  const sent = bo.asked().at(-1);
  expect(times(shown(sent), 'said meanwhile')).toBe(1);
  expect(sent?.messages.at(-1)?.content).toContain('and then?');
  expect(opening(sent)).toContain('Summary 1 of this conversation');
});

test('a summary is larger than what it replaces', () => {
  const events = at(Array.from({ length: 20 }, (_, n) => personSays(prose(n, 800))));
  const input = { ...BASE, events };
  const text = 'The books stay in the second drawer. '.repeat(40);
  const room = summaryCompaction({ ...input, text });
  expect(room?.tokens.after).toBeLessThan(BASE.before);
  for (const before of [200, 300, 380]) {
    const made = summaryCompaction({ ...input, before, budget: 5_000, text });
    expect(made === null || made.tokens.after < before).toBe(true);
    const chosen = extractCompaction({ ...input, before, budget: 5_000 });
    expect(chosen === null || chosen.tokens.after < before).toBe(true);
  }
  expect(summaryCompaction({ ...input, before: 200, budget: 5_000, text })).toBeNull();
});

test('a view is compacted twice for one request', async () => {
  const bo = reporter(6);
  const stage = await openStage({ tools: [report], agents: [small('bo', bo, { tools: ['report'] })] });
  await fill(stage, 6);
  await ask(stage, 'report');
  await fill(stage, 11, 40);
  await ask(stage, 'and now?');
  const rewrites = [
    ...(await of(stage, 'prune')),
    ...(await of(stage, 'baseline')).filter(({ body }) => body.adopts),
  ];
  expect(rewrites.length).toBeGreaterThan(1);
  const cuts = await Promise.all(
    bo
      .asked()
      .map(({ trace }) => stage.troupe.promptOf(trace.turn, trace.step).then((prompt) => prompt.cuts.length)),
  );
  for (const [index, count] of cuts.entries()) expect(count - (cuts[index - 1] ?? 0)).toBeLessThanOrEqual(1);
  expect(cuts.at(-1)).toBe(rewrites.length);
});

test('a message is neither summarised nor kept', async () => {
  const { stage, bo, sent } = await relieved();
  const [compaction] = await of(stage, 'compaction');
  const [rewrite] = (await of(stage, 'baseline')).filter(({ body }) => body.adopts);
  // The newest events that it tells may stay, where there is room for them; then it does not quote them.
  const upTo = rewrite?.body.adopts?.upTo ?? 0;
  expect(upTo).toBeLessThanOrEqual(compaction?.body.upTo ?? 0);
  const summarised = bo.summaries()[0]?.messages[1]?.content ?? '';
  const kept = new Set(sent.messages.flatMap(({ seqs }) => seqs));
  const messages = (await of(stage, 'message')).filter(({ seq }) => seq < (compaction?.seq ?? 0));
  expect(messages.length).toBeGreaterThan(12);
  for (const { seq, body } of messages) {
    const isCovered = seq <= upTo && summarised.includes(`] ${body.content.slice(0, 12)}`);
    expect([seq, isCovered, kept.has(seq)]).toEqual([seq, !kept.has(seq), kept.has(seq)]);
  }
});

import { describe, expect, test } from 'vitest';
import { adoptStrategy, DEFAULT_POLICY, showWaiting, startRun } from '../../src/context/index.ts';
import type { AgentId, CompactionBody, EventId } from '../../src/events/index.ts';
import { at, personSays } from '../support/extract-events.ts';
import { viewOf } from '../support/log-player.ts';
import { says, shown } from '../support/engine-models.ts';
import { logOf, openStage, type Stage, until } from '../support/engine-stage.ts';
import {
  ask,
  fill,
  mind,
  of,
  opening,
  pass,
  progress,
  prose,
  small,
  SUMMARY,
} from '../support/compaction-stage.ts';

describe('the author of a summary', () => {
  test('is nobody if no model is configured: the selection needs no call', async () => {
    const bo = mind();
    const stage = await openStage({ agents: [small('bo', bo)], context: { summaries: 'extract' } });
    await fill(stage, 14);
    await ask(stage, 'and now?');
    expect(bo.summaries()).toEqual([]);
    expect(bo.asked()).toHaveLength(1);
    expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'extraction' } }]);
    expect(await progress(stage, 'failed')).toEqual([]);
  });

  test('is the configured agent, with its own model', async () => {
    const [bo, clerk] = [mind(), mind()];
    const stage = await openStage({
      agents: [small('bo', bo), { id: 'clerk', model: clerk }],
      context: { summariser: 'clerk' },
    });
    await fill(stage, 14);
    await ask(stage, 'and now?');
    expect(bo.summaries()).toEqual([]);
    expect(clerk.summaries()).toHaveLength(1);
    expect(clerk.asked()).toEqual([]);
    expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'summary', by: 'bo' } }]);
  });
});

describe('one compaction for the company', () => {
  test('a second agent over its own limit adopts the existing one, without a call', async () => {
    const [bo, cy] = [mind(), mind()];
    const stage = await openStage({ agents: [small('bo', bo), small('cy', cy)] });
    await fill(stage, 15);
    await ask(stage, 'and now?', ['bo']);
    await ask(stage, 'and you?', ['cy']);
    expect(bo.summaries()).toHaveLength(1);
    expect(cy.summaries()).toEqual([]);
    expect(await of(stage, 'compaction')).toHaveLength(1);
    expect(opening(cy.asked().at(-1))).toBe(opening(bo.asked().at(-1)));
    expect((await progress(stage, 'done')).map(({ body }) => [body.agent, body.strategy])).toEqual([
      ['bo', 'summary'],
      ['cy', 'adopt'],
    ]);
    expect(await stage.check('c')).toEqual([]);
  });

  test('an agent with room does not adopt it', async () => {
    const [bo, cy] = [mind(), mind()];
    const stage = await openStage({ agents: [small('bo', bo), { id: 'cy', model: cy }] });
    await fill(stage, 14);
    await ask(stage, 'and now?', ['bo']);
    await ask(stage, 'and you?', ['cy']);
    expect(shown(cy.asked()[0])).toContain('w1z');
    expect((await of(stage, 'baseline')).filter(({ body }) => body.adopts)).toHaveLength(1);
  });

  test('of two agents that need room at once one asks its model, and the other waits and adopts the result', async () => {
    const written = Promise.withResolvers<void>();
    async function* slow() {
      await written.promise;
      yield* says(SUMMARY);
    }
    const minds = [mind({ summary: slow }), mind({ summary: slow })];
    const [bo, cy] = minds;
    if (!bo || !cy) throw new Error('two');
    const stage = await openStage({ agents: [small('bo', bo), small('cy', cy)] });
    await fill(stage, 14);
    await stage.say('c', 'and now?', ['bo', 'cy']);
    await until('one asks', () => bo.summaries().length + cy.summaries().length > 0);
    await pass(stage, 5_000);
    expect(bo.asked().length + cy.asked().length).toBe(0);
    written.resolve();
    await stage.quiet();
    expect(bo.summaries().length + cy.summaries().length).toBe(1);
    expect(await of(stage, 'compaction')).toHaveLength(1);
    expect(opening(bo.asked()[0])).toContain('Summary 1 of this conversation');
    expect(opening(cy.asked()[0])).toBe(opening(bo.asked()[0]));
    expect(await stage.check('c')).toEqual([]);
  });

  /** Simulates that @cy had begun to write the first compaction and crashed. */
  async function begunByCy(stage: Stage, forMs: number) {
    const now = stage.clock.now();
    const lock = JSON.stringify({ agent: 'cy', until: now + forMs });
    expect(await stage.store.journal(logOf('c').tenant, 'compaction/c/1', lock, now)).toBe(lock);
  }

  test('if the author has died, the next agent starts one after its deadline', async () => {
    const bo = mind();
    const stage = await openStage({ agents: [small('bo', bo)] });
    await begunByCy(stage, 20_000);
    await fill(stage, 14);
    await stage.say('c', 'and now?', ['bo']);
    await pass(stage, 15_000);
    expect(bo.requests).toHaveLength(0);
    await pass(stage, 10_000);
    await stage.quiet();
    expect(bo.summaries()).toHaveLength(1);
    expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'summary', by: 'bo' } }]);
    expect(await stage.check('c')).toEqual([]);
  });

  test('if the author takes too long, the next agent does without a model', async () => {
    const bo = mind();
    const stage = await openStage({ agents: [small('bo', bo)] });
    await begunByCy(stage, 3_600_000);
    await fill(stage, 14);
    await stage.say('c', 'and now?', ['bo']);
    await pass(stage, 120_000);
    await stage.quiet();
    expect(bo.summaries()).toEqual([]);
    expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'extraction', by: 'bo' } }]);
    expect(bo.asked()).toHaveLength(1);
    expect(await stage.check('c')).toEqual([]);
  });

  test('an agent whose cache has gone cold adopts it before it must', async () => {
    const [bo, cy] = [mind(), mind()];
    const agents = [small('bo', bo), small('cy', cy, { contextWindow: 13_000 })];
    const stage = await openStage({ agents });
    await fill(stage, 14);
    await ask(stage, 'hello', ['cy']);
    await ask(stage, 'and now?', ['bo']);
    expect(await of(stage, 'compaction')).toHaveLength(1);
    await ask(stage, 'soon after', ['cy']);
    expect(shown(cy.asked().at(-1))).toContain(prose(1));
    await pass(stage, 301_000);
    await ask(stage, 'much later', ['cy']);
    // Behind the system message and the summary, which pins it as the first request.
    const since = cy.asked().at(-1)?.messages.slice(2) ?? [];
    expect(since.some(({ content }) => content.includes('w1z'))).toBe(false);
    expect(opening(cy.asked().at(-1))).toContain('Summary 1 of this conversation');
    expect((await progress(stage, 'done')).at(-1)?.body).toMatchObject({
      agent: 'cy',
      reason: 'cold_cache',
    });
    expect(cy.summaries()).toEqual([]);
    expect(await stage.check('c')).toEqual([]);
  });

  test('a newcomer that joins with a summary has one written, or adopts the existing one', async () => {
    const [bo, cy] = [mind(), mind()];
    const large = { contextWindow: 100_000 };
    const policy = { keepTokens: 1_000, quoteTokens: 500, summaryTokens: 700 };
    const agents = [
      small('bo', bo, { ...large, join: 'summary' }),
      small('cy', cy, { ...large, join: 'summary' }),
    ];
    const stage = await openStage({ agents, policy });
    await fill(stage, 14);
    await ask(stage, 'and now?', ['bo']);
    expect(bo.summaries()).toHaveLength(1);
    expect(opening(bo.asked()[0])).toContain('Summary 1 of this conversation');
    expect(shown(bo.asked()[0])).toContain('w14z');
    await ask(stage, 'and you?', ['cy']);
    expect(cy.summaries()).toEqual([]);
    expect(opening(cy.asked()[0])).toBe(opening(bo.asked()[0]));
    expect((await progress(stage, 'started')).map(({ body }) => body.reason)).toEqual(['join', 'join']);
    await ask(stage, 'once more', ['cy']);
    expect(await progress(stage, 'started')).toHaveLength(2);
    expect(await stage.check('c')).toEqual([]);
  });

  test('one that reaches beyond what a turn has read is not adopted: new messages are shown when they arrive', () => {
    const log = at(Array.from({ length: 30 }, (_, n) => personSays(prose(n, 800), ['bo'])));
    const body = (upTo: number): CompactionBody => ({
      number: 1,
      upTo,
      strategy: 'summary',
      reason: 'over_budget',
      by: 'cy' as AgentId,
      summary: SUMMARY,
      quotes: [],
      chosen: [],
      demands: '',
      listing: '',
      facts: {
        artifacts: [],
        filesRead: [],
        filesModified: [],
        identifiers: [],
        errors: [],
        constraints: [],
        pending: [],
      },
      tokens: { before: 3_000, after: 100 },
    });
    const outcomes = [10, 20, 21].map((upTo) => {
      const view = viewOf('bo', log.slice(0, 20));
      showWaiting(view);
      view.compactions.set('compaction:1' as EventId, body(upTo));
      const room = { available: 4_000, trigger: 3_000, target: 2_000, fixed: 0 };
      return adoptStrategy(startRun(view, { reason: 'over_budget', policy: DEFAULT_POLICY, room }));
    });
    expect(outcomes).toEqual(['fits', 'fits', 'nothing']);
  });
});

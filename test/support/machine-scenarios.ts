import { expect } from 'vitest';
import * as z from 'zod';
import type { AgentId, ConversationId, TurnId } from '../../src/events/index.ts';
import { TroupeError } from '../../src/base/errors.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import type { PolicyConstants } from '../../src/library/config/context-settings.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, breaks, gated, inOrder, says } from './engine-models.ts';
import { ANA, logOf, openStage, type Stage, type StageAgent } from './engine-stage.ts';
import { openDriver } from './mode.ts';
import { ask, fill, mind, of, pass, progress, prose, small } from './compaction-stage.ts';

const c = 'c' as ConversationId;
const BO = { tenant: 'default', conversation: 'c', agent: 'bo' };

async function order(stage: Stage, command: 'pause' | 'resume' | 'retire' | 'reinstate'): Promise<void> {
  await stage.troupe.command({ command, conversation: c, agent: 'bo' as AgentId }, ANA);
}

async function statusOf(stage: Stage): Promise<string | undefined> {
  return (await stage.troupe.actors('c')).find(({ agent }) => agent === 'bo')?.status;
}

const report = defineTool({
  name: 'report',
  description: 'reports',
  schema: z.object({ n: z.number() }),
  run: async ({ n }) => prose(n, 3_000),
});

/** A model that calls `report` once a turn, at most `most` times. */
function reporter(most: number) {
  let step = 0;
  return mind({
    turn: ({ trace }) =>
      trace.step === 1 && step < most ? asks(['report', { n: (step += 1) }]) : says('ok'),
  });
}

/** Bo makes an early compaction in a small window, and many messages follow it. */
async function earlyCompaction(cy: StageAgent, more: number, policy?: PolicyConstants): Promise<Stage> {
  const stage = await openStage({ agents: [small('bo', mind()), cy], ...(policy && { policy }) });
  await fill(stage, 14);
  if (cy.join !== 'summary') await ask(stage, 'hello', ['cy']);
  await ask(stage, 'and now?', ['bo']);
  expect(await of(stage, 'compaction')).toHaveLength(1);
  for (let n = 0; n < more; n++) await stage.say('c', prose(100 + n, 4_000), []);
  return stage;
}

const RELEASE = {
  id: 'release',
  directive: 'ship version 2',
  steps: [
    { id: 'plan', agent: 'bo', brief: 'write the plan' },
    { id: 'draft', agent: 'cy', brief: 'write the draft' },
  ],
};

function runStage(bo = inOrder(says('the plan')), driver?: StoreDriver): Promise<Stage> {
  const agents = [
    { id: 'bo', model: bo },
    { id: 'cy', model: inOrder(says('the draft')) },
  ];
  return openStage({ agents, workflows: [RELEASE] as never, ...(driver && { driver }) });
}

async function beginRun(stage: Stage): Promise<void> {
  await stage.troupe.command(
    { command: 'run', conversation: c, workflow: 'release', run: 'r1' as never },
    ANA,
  );
}

async function endRun(stage: Stage): Promise<void> {
  const over = { command: 'directive', run: 'r1' as never, directive: 'done', status: 'completed' } as const;
  await stage.troupe.command({ ...over, conversation: c }, ANA);
}

/** Scenarios for behaviour that other tests do not cover, by description. */
export const SCENARIOS: Record<string, () => Promise<void>> = {
  async 'a paused agent can be retired'() {
    const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('here')) }] });
    await ask(stage, 'hello');
    await order(stage, 'pause');
    await order(stage, 'retire');
    expect(await statusOf(stage)).toBe('retired');
    await order(stage, 'reinstate');
    expect(await statusOf(stage)).toBe('idle');
  },
  async 'an agent that has failed can be retired'() {
    const driver = await openDriver();
    const stage = await openStage({ driver, agents: [{ id: 'bo', model: inOrder(says('one')) }] });
    await ask(stage, 'first');
    await driver.compareAndSet(BO, { fence: (await stage.actor('c', 'bo')).fence }, { processed: 9_999 });
    await ask(stage, 'second');
    expect(await statusOf(stage)).toBe('failed');
    await order(stage, 'retire');
    expect(await statusOf(stage)).toBe('retired');
  },
  async 'an agent that has failed comes back with a resume or a retry'() {
    const stage = await openStage({
      agents: [{ id: 'bo', model: inOrder(breaks('provider_auth'), says('again')) }],
    });
    await ask(stage, 'hello');
    await stage.store.park({ ...logOf('c'), agent: 'bo' as AgentId }, 'failed');
    await order(stage, 'resume');
    expect(await statusOf(stage)).toBe('idle');
    await stage.store.park({ ...logOf('c'), agent: 'bo' as AgentId }, 'failed');
    await stage.troupe.command({ command: 'retry', turn: 'c:bo:1' as TurnId }, ANA);
    await stage.quiet();
    expect(await of(stage, 'turn.done')).toHaveLength(1);
  },
  async 'an agent that is paused at work can fail in that turn'() {
    const driver = await openDriver();
    let isBroken = false;
    const broken: StoreDriver = {
      ...driver,
      step: (key, step) =>
        isBroken && step.events?.some(({ row }) => row.kind === 'message')
          ? Promise.reject(new TroupeError('store_corrupt', 'the reply cannot be stored'))
          : driver.step(key, step),
    };
    const bo = gated(says('a', 'b'), 1);
    const stage = await openStage({ driver: broken, agents: [{ id: 'bo', model: bo }] });
    await stage.say('c', 'hello', ['bo']);
    await bo.reached();
    await order(stage, 'pause');
    isBroken = true;
    bo.open();
    await stage.quiet();
    expect(await statusOf(stage)).toBe('failed');
  },
  async 'a cold cache: a compaction of another agent that brings a fifth is taken over'() {
    const cy = mind();
    const agents = [
      small('bo', mind(), { contextWindow: 16_000 }),
      small('cy', cy, { contextWindow: 28_500 }),
    ];
    const stage = await openStage({ agents });
    await fill(stage, 30);
    await ask(stage, 'hello', ['cy']);
    await ask(stage, 'and now?', ['bo']);
    await fill(stage, 17, 200);
    await pass(stage, 301_000);
    await ask(stage, 'much later', ['cy']);
    expect((await progress(stage, 'started')).at(-1)?.body).toMatchObject({ reason: 'cold_cache' });
    expect(cy.summaries()).toEqual([]);
  },
  async 'a cold cache: old outputs go if that brings a fifth'() {
    const bo = reporter(5);
    const agents = [small('bo', bo, { contextWindow: 15_500, tools: ['report'] })];
    const policy = { prune: { protectTokens: 100, minGain: 200 } };
    const stage = await openStage({ tools: [report], agents, policy });
    for (let n = 1; n <= 5; n++) await ask(stage, `report ${n}`);
    await fill(stage, 15);
    await pass(stage, 301_000);
    await ask(stage, 'much later');
    expect(await progress(stage, 'started')).toMatchObject([{ body: { reason: 'cold_cache' } }]);
  },
  async 'old outputs go at the start of each turn'() {
    const agents = [small('bo', reporter(3), { contextWindow: 40_000, tools: ['report'] })];
    const context = { pruneEachTurn: true };
    const stage = await openStage({ tools: [report], agents, context });
    for (let n = 1; n <= 3; n++) await ask(stage, `report ${n}`);
    expect((await progress(stage, 'started'))[0]?.body).toMatchObject({ reason: 'each_turn' });
  },
  async 'a full window: what another agent made and old outputs are not enough'() {
    const cy = reporter(5);
    const agent = small('cy', cy, { contextWindow: 40_000, tools: ['report'] });
    const policy = { prune: { protectTokens: 100, minGain: 200 } };
    const stage = await openStage({ tools: [report], agents: [small('bo', mind()), agent], policy });
    await fill(stage, 14);
    await ask(stage, 'hello', ['bo']);
    for (let n = 1; n <= 5; n++) await ask(stage, `report ${n}`, ['cy']);
    await fill(stage, 62, 200);
    await ask(stage, 'and now?', ['cy']);
    expect(cy.summaries()).toHaveLength(1);
  },
  async 'a newcomer: a summary that is too old is not enough'() {
    const cy = mind();
    const large = small('cy', cy, { contextWindow: 100_000, join: 'summary' });
    const stage = await earlyCompaction(large, 30, {
      keepTokens: 1_000,
      quoteTokens: 500,
      summaryTokens: 700,
    });
    await ask(stage, 'and you?', ['cy']);
    expect(cy.summaries()).toHaveLength(1);
  },
  async 'a history that is shorter than any summary of it is left as it is'() {
    const stage = await openStage({ agents: [small('bo', mind())] });
    await ask(stage, 'hello');
    await ask(stage, prose(101, 20_500));
    expect(await of(stage, 'compaction')).toEqual([]);
  },
  async 'a lock that is never given up, and a selection that cannot be stored: nothing is left to try'() {
    const driver = await openDriver();
    const refusing: StoreDriver = {
      ...driver,
      append: (rows) =>
        rows.some(({ kind }) => kind === 'compaction')
          ? Promise.reject(new TroupeError('event_conflict', 'the id is taken'))
          : driver.append(rows),
    };
    const context = { retrieval: false };
    const stage = await openStage({ driver: refusing, agents: [small('bo', mind())], context });
    const now = stage.clock.now();
    const lock = JSON.stringify({ agent: 'cy', until: now + 3_600_000 });
    await stage.store.journal(logOf('c').tenant, 'compaction/c/1', lock, now);
    await fill(stage, 8);
    await stage.say('c', prose(101, 21_600), ['bo']);
    await pass(stage, 120_000);
    await stage.quiet();
    expect(await of(stage, 'compaction')).toEqual([]);
    expect(await of(stage, 'turn.done')).toHaveLength(1);
  },
  async 'a selection that frees too little is followed by shortening'() {
    const driver = await openDriver();
    const stage = await openStage({
      driver,
      agents: [small('bo', mind())],
      context: { summaries: 'extract', retrieval: false },
    });
    await fill(stage, 8);
    await ask(stage, prose(101, 20_000));
    expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'extraction' } }]);
  },
  async 'a person ends a run that has failed'() {
    const stage = await runStage(inOrder(breaks('provider_auth')));
    await beginRun(stage);
    await stage.quiet();
    await endRun(stage);
    expect(await stage.troupe.state('c')).toMatchObject({ run: { status: 'completed' } });
  },
  async 'a run whose step was never asked for is ended by a person, and failed in a fork of that moment'() {
    const driver = await openDriver();
    const torn: StoreDriver = {
      ...driver,
      async append(rows) {
        const at = rows.findIndex(({ id }) => id.startsWith('run:r1:step:1'));
        if (at < 0) return driver.append(rows);
        await driver.append(rows.slice(0, at));
        throw new TroupeError('store_unavailable', 'the connection is lost');
      },
    };
    const stage = await runStage(undefined, torn);
    await beginRun(stage).catch(() => undefined);
    const seq = (await stage.events('c')).at(-1)?.seq ?? 0;
    await stage.troupe.command({ command: 'fork', conversation: c, seq, as: 'd' as ConversationId }, ANA);
    expect(await stage.troupe.state('d')).toMatchObject({ run: { status: 'failed' } });
    await endRun(stage);
    expect((await stage.troupe.state('c')).run).toMatchObject({ status: 'completed' });
  },
};

import { expect, test } from 'vitest';
import * as z from 'zod';
import { createStore } from '../../src/store/create-store.ts';
import type { AgentId, EventDraft, EventId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { tapDriver } from '../support/engine-driver.ts';
import { asks, modelOf, says, shown, times } from '../support/engine-models.ts';
import { ANA, logOf, openStage, turns, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { answered, post, sound } from '../support/steer-stage.ts';

const LEASE_MS = 2_000;
const STEERS: EventDraft = {
  id: 'm9' as EventId,
  author: ANA,
  to: ['bo' as AgentId],
  kind: 'message',
  body: { content: 'the other way' },
  whileBusy: 'steer',
};

test('a stalled holder answers without what its successor has taken in: none of its calls runs', async () => {
  const driver = await openDriver();
  const outside = createStore(driver);
  const made: string[] = [];
  const tools = ['look', 'burn'].map((name) =>
    defineTool({
      name,
      description: name,
      schema: z.object({}),
      async run() {
        made.push(name);
        return name;
      },
    }),
  );
  const agent = { id: 'bo', tools: ['look', 'burn'] };
  const limits = { leaseMs: LEASE_MS, soleOwner: false };

  const late = Promise.withResolvers<void>();
  const old = modelOf(async function* ({ trace }) {
    if (trace.step > 1) await late.promise;
    yield* trace.step === 1 ? asks(['look', {}]) : asks(['burn', {}]);
  });
  // The process neither renews its lease nor learns that it is lost.
  let isStill = false;
  const still = tapDriver(driver, (op) =>
    isStill && op === 'compareAndSet' ? new Promise<never>(() => undefined) : undefined,
  );
  const first = await openStage({ driver: still, tools, agents: [{ ...agent, model: old }], limits });
  await post(first, 'begin', ['bo']);
  await until('its second step is asked', () => old.requests.length === 2);
  isStill = true;

  await outside.append(logOf('c'), [{ draft: STEERS, at: 5, tokens: 2 }]);
  const answer = Promise.withResolvers<void>();
  const model = modelOf(async function* () {
    await answer.promise;
    yield* says('done');
  });
  const clock = { ...first.clock, now: () => first.clock.now() + 2 * LEASE_MS };
  const second = await openStage({ driver, clock, tools, agents: [{ ...agent, model }], limits });
  await post(second, 'begin again', []);
  await second.deps.router.wake({ ...logOf('c'), agent: 'bo' as AgentId });
  await until('its successor has taken it in', () => model.requests.length === 1);
  expect(times(shown(model.requests[0]), 'the other way')).toBe(1);

  late.resolve();
  await turns(50);
  answer.resolve();
  await second.quiet();
  expect(made).toEqual(['look']);
  expect(answered(await second.events('c'))).toEqual([['done', ['begin', 'the other way']]]);
  await sound(second);
});

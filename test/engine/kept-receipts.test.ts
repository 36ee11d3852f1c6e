import { expect, test } from 'vitest';
import { breaks, inOrder, modelOf, says } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import type { ModelEvent } from '../../src/providers/provider.ts';

const USAGE = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

function used(events: ModelEvent[]): ModelEvent[] {
  return events.map((event) => (event.type === 'done' ? { ...event, usage: USAGE } : event));
}

test.each([
  ['at once', [used(says('there'))]],
  ['at the second try', [breaks('provider_overloaded', 'so far'), used(says('there'))]],
])('the usage of an answer that comes %s is known after the turn', async (_, answers) => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(...answers) }] });
  await stage.say('c', 'hello', ['bo']);
  await stage.quiet();
  const { prompts, status } = await stage.troupe.trace('c:bo:1');
  expect(status).toBe('done');
  expect(prompts).toMatchObject([{ usage: USAGE }]);
});

test('the prompt of a long answer can be looked at while the answer is written, and its usage is known afterwards', async () => {
  const more = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const model = modelOf(async function* () {
    yield { type: 'start' };
    yield { type: 'text', delta: 'a ' };
    await more.promise;
    yield { type: 'text', delta: 'long ' };
    await end.promise;
    yield { type: 'text', delta: 'answer' };
    yield { type: 'done', stop: 'end', usage: USAGE };
  });
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'hello', ['bo']);
  await until('it is asked', () => model.requests.length === 1);
  const seen = async () => (await stage.troupe.trace('c:bo:1')).prompts.length;
  expect(await seen()).toBe(0);
  await stage.clock.advance(4_000);
  more.resolve();
  await until('its prompt is there', async () => (await seen()) === 1);
  end.resolve();
  await stage.quiet();
  expect((await stage.troupe.trace('c:bo:1')).prompts).toMatchObject([{ usage: USAGE }]);
});

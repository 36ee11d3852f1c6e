import { expect, test } from 'vitest';
import type { EventDraft } from '../../src/events/index.ts';
import { gated, inOrder, says, shown, times } from '../support/engine-models.ts';
import { ANA, logOf, openStage, turns } from '../support/engine-stage.ts';

test('a message that arrives mid-stream is in the next prompt, once, and gets its own answer', async () => {
  const model = gated(says('one ', 'moment'), 2);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'first', ['bo']);
  await model.reached();
  await stage.say('c', 'second', ['bo']);
  await turns(20);
  expect(model.requests).toHaveLength(1);
  model.open();
  await stage.quiet();
  expect(model.requests).toHaveLength(2);
  expect(times(shown(model.requests[0]), 'second')).toBe(0);
  expect(times(shown(model.requests[1]), 'second')).toBe(1);
  expect(times(shown(model.requests[1]), 'first')).toBe(1);
  expect(await stage.check('c')).toEqual([]);
});

test('repeated messages with one id are one event and one turn', async () => {
  const model = inOrder(says('hello'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await Promise.all([1, 2, 3].map(() => stage.say('c', 'hi', ['bo'], 'm1')));
  await stage.quiet();
  await stage.say('c', 'hi', ['bo'], 'm1');
  await stage.quiet();
  const events = await stage.events('c');
  expect(events.filter(({ id }) => id === 'm1')).toHaveLength(1);
  expect(model.requests).toHaveLength(1);
  expect(await stage.check('c')).toEqual([]);
});

test('watchers get the events of a conversation in order, however long a wake takes', async () => {
  const stage = await openStage({
    agents: [{ id: 'bo', model: inOrder(says('hello')) }],
    router: (router) => ({ ...router, wake: (address) => turns(3).then(() => router.wake(address)) }),
  });
  const heard: number[] = [];
  stage.troupe.watch((note) => note.type === 'event' && heard.push(note.event.seq));
  const draft = (id: string) =>
    ({ id, author: ANA, to: ['bo'], kind: 'message', body: { content: id } }) as unknown as EventDraft;
  const log = logOf('c');
  await Promise.all([
    stage.deps.log.append(log, [draft('one'), draft('two')]),
    stage.deps.log.append(log, [draft('three')]),
  ]);
  expect(heard.slice(0, 3)).toEqual([1, 2, 3]);
  await stage.quiet();
});

import { describe, expect, test } from 'vitest';
import type { Author, Command, Event, EventId, EventOf } from '../../src/events/index.ts';
import { asks, gated, inOrder, says, shown } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';
import { allLogs } from '../support/killed-play.ts';

const DI: Author = { kind: 'agent', id: 'di', name: 'di' };

async function all<K extends Event['kind']>(stage: Stage, kind: K): Promise<EventOf<K>[]> {
  const events = [...(await allLogs(stage)).values()].flat();
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

function order(stage: Stage, command: object): Promise<Event> {
  return stage.troupe.command({ conversation: 'c', ...command } as Command, ANA);
}

/** @bo makes this call, with @cy as the possible delegate, and then comments on the result. */
async function tries(args: object, before?: (stage: Stage) => Promise<unknown>) {
  const bo = inOrder(says('hello'), asks(['delegate', args]), says('then I do it myself'));
  const cy = inOrder(says('never asked'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy },
    ],
  });
  await stage.say('c', 'are you there?', ['bo']);
  await stage.quiet();
  await before?.(stage);
  await stage.say('c', 'give it to somebody', ['bo']);
  await stage.quiet();
  const [told] = await all(stage, 'tool.result');
  return { stage, cy, told, read: shown(bo.requests[2]) };
}

/** Checks that it leaves no trace: no task, no thread, no timer, no wake. */
async function leavesNothing(stage: Stage): Promise<void> {
  expect(await all(stage, 'delegation.opened')).toEqual([]);
  expect([...(await allLogs(stage)).keys()]).toEqual(['c']);
  expect(await stage.actor('c', 'bo')).toMatchObject({ timers: [], unpublished: false });
  expect((await stage.troupe.tasks('c')).tasks).toEqual([]);
  const said = (await all(stage, 'message')).at(-1);
  expect(said).toMatchObject({ author: { id: 'bo' }, body: { content: 'then I do it myself' } });
  expect(await stage.check('c')).toEqual([]);
  expect(stage.warnings).toEqual([]);
}

describe('an impossible delegation is reported to the agent, and leaves nothing behind', () => {
  test.each<[string, object, RegExp]>([
    ['somebody who is not there', { to: 'nobody', task: 'count' }, /no agent .*nobody/],
    ['somebody by a name that is nearly right', { to: 'cyy', task: 'count' }, /Did you mean .*cy/i],
    ['nobody', { to: '', task: 'count' }, /to/],
    ['a blank', { to: '  ', task: 'count' }, /no agent/],
    ['an agent, without a task', { to: 'cy', task: '' }, /task/],
    [
      'an agent, with a deadline that has passed',
      { to: 'cy', task: 'count', deadlineMinutes: -1 },
      /deadlineMinutes/,
    ],
    ['an agent, with no time at all', { to: 'cy', task: 'count', deadlineMinutes: 0 }, /deadlineMinutes/],
  ])('to %s', async (_, args, text) => {
    const { stage, cy, told, read } = await tries(args);
    expect(told?.body).toMatchObject({ outcome: 'failed', content: expect.stringMatching(text) });
    expect(read).toMatch(text);
    expect(cy.requests).toEqual([]);
    await leavesNothing(stage);
  });

  test.each(['block', 'leave'])('to an agent after %s', async (command) => {
    const { stage, cy, told, read } = await tries({ to: 'cy', task: 'count' }, async (opened) => {
      await opened.say('c', 'hello', ['cy']);
      await opened.quiet();
      await order(opened, { command, agent: 'cy' });
    });
    const text = command === 'block' ? '@cy is blocked here: choose another' : '@cy has left: choose another';
    expect(told?.body).toMatchObject({ outcome: 'failed', content: text });
    expect(read).toContain(text);
    expect(cy.requests).toHaveLength(1);
    await leavesNothing(stage);
  });

  test('in a conversation that was closed while its agent waited', async () => {
    const cy = gated(says('seven'), 1);
    const bo = inOrder(asks(give('first')), asks(give('second')), says('then I do it myself'));
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate'] },
        { id: 'cy', model: cy },
      ],
    });
    await stage.say('c', 'please', ['bo']);
    await cy.reached();
    await order(stage, { command: 'archive' });
    cy.open();
    await stage.quiet();
    expect(await all(stage, 'delegation.ended')).toHaveLength(2);
    expect((await all(stage, 'tool.result')).at(-1)?.body.content).toContain('this conversation is closed');
    expect(await all(stage, 'delegation.opened')).toHaveLength(2);
    expect(await stage.actor('c', 'bo')).toMatchObject({ timers: [], unpublished: false });
    expect((await stage.troupe.tasks('c', { open: true })).tasks).toEqual([]);
  });

  test('twice: the same task for the same agent is created once, however often it is requested', async () => {
    const cy = gated(says('seven'), 1);
    const waits = { wait: false };
    const bo = inOrder(
      asks(give('count', waits), give('  Count ', waits)),
      asks(give('count', waits)),
      says('on it'),
      asks(give('COUNT')),
      says('patience'),
      says('seven it is'),
    );
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate'] },
        { id: 'cy', model: cy },
      ],
    });
    await stage.say('c', 'please', ['bo']);
    await cy.reached();
    await stage.say('c', 'again', ['bo']);
    while (bo.requests.length < 5) await stage.clock.advance(20);
    cy.open();
    await stage.quiet();
    expect(new Set((await all(stage, 'delegation.opened')).map(({ body }) => body.delegation)).size).toBe(1);
    const stops = await all(stage, 'guard.stopped');
    expect(new Set(stops.map(({ body }) => body.guard))).toEqual(new Set(['duplicate']));
    expect(new Set(stops.map(({ turn }) => turn))).toEqual(new Set(['c:bo:1', 'c:bo:2']));
    expect((await stage.actor('c', 'bo')).timers).toEqual([]);
    expect(cy.requests).toHaveLength(1);
    expect(await stage.check('c')).toEqual([]);
  });

  test('H8: to itself a second time, from within its task: a guard says so, and no task is opened', async () => {
    const self = (task: string) => asks(['delegate', { to: 'bo', task }]);
    const bo = inOrder(self('think'), self('think harder'), says('I have thought'), says('done'));
    const stage = await openStage({ agents: [{ id: 'bo', model: bo, tools: ['delegate'] }] });
    await stage.say('c', 'please', ['bo']);
    await stage.quiet();
    const opened = await all(stage, 'delegation.opened');
    expect(opened.map(({ body }) => body.task)).toEqual(['think', 'think']);
    const thread = opened[0]?.body.thread ?? '';
    expect(await all(stage, 'guard.stopped')).toMatchObject([
      { conversation: thread, body: { guard: 'cycle' } },
    ]);
    expect(await stage.actor(thread, 'bo')).toMatchObject({ timers: [], unpublished: false });
    expect([...(await allLogs(stage)).keys()]).toEqual(['c', thread]);
    expect((await all(stage, 'message')).at(1)?.body.content).toBe('done');
  });
});

function give(task: string, more: object = {}): [string, object] {
  return ['delegate', { to: 'cy', task, ...more }];
}

describe('a task is completed by its assignee alone', () => {
  test('words of others in its thread are stored and are not its result', async () => {
    const cy = gated(says('seven'), 1);
    const bo = inOrder(asks(give('count')), says('seven it is'));
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate'] },
        { id: 'cy', model: cy },
        { id: 'di', model: inOrder(says('nine')) },
      ],
    });
    await stage.say('c', 'how many?', ['bo']);
    await cy.reached();
    const { tasks } = await stage.troupe.tasks('c');
    const { id = '', thread = '' } = tasks[0] ?? {};
    await stage.say(thread, 'it is eight', []);
    await stage.troupe.send(thread, { author: DI, content: 'it is nine' });
    const forged = { id: `${id}:end` as EventId, author: DI, content: 'it is ten', to: ['bo'] };
    await expect(stage.troupe.send('c', forged)).rejects.toMatchObject({ code: 'event_conflict' });
    await stage.say(thread, 'and you?', ['di']);
    while ((await all(stage, 'turn.done')).length < 2) await stage.clock.advance(20);
    expect((await stage.troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
    expect(bo.requests).toHaveLength(1);
    cy.open();
    await stage.quiet();
    expect(await all(stage, 'delegation.ended')).toMatchObject([
      { conversation: 'c', author: { id: 'cy' }, body: { result: 'seven' } },
      { conversation: thread, author: { id: 'cy' } },
    ]);
    const said = (await all(stage, 'message')).map(({ body }) => body.content);
    expect(said).toEqual(expect.arrayContaining(['it is eight', 'it is nine', 'nine', 'seven it is']));
    expect(shown(bo.requests[1])).not.toMatch(/eight|nine|ten/);
  });
});

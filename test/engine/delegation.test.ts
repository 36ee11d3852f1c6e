import { describe, expect, test } from 'vitest';
import type { Event, EventOf } from '../../src/events/index.ts';
import type { ModelEvent } from '../../src/providers/provider.ts';
import { asks, breaks, gated, inOrder, modelOf, says, shown, times } from '../support/engine-models.ts';
import {
  logOf,
  openStage,
  type Stage,
  type StageAgent,
  type StageOptions,
  until,
} from '../support/engine-stage.ts';

function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

/** An additional agent that only talks. */
function talker(id: string, ...answers: ModelEvent[][]): StageAgent {
  return { id, model: inOrder(...answers), tools: [] };
}

function give(to: string, task: string, more: object = {}): [string, object] {
  return ['delegate', { to, task, ...more }];
}

async function play(agents: StageAgent[], more: Partial<StageOptions> = {}): Promise<Stage> {
  const stage = await openStage({ agents, ...more });
  await stage.say('c', 'please', [agents[0]?.id ?? '']);
  await stage.quiet();
  return stage;
}

async function words(stage: Stage, conversation = 'c'): Promise<string[]> {
  return only(await stage.events(conversation), 'message').map(({ body }) => body.content);
}

async function threads(stage: Stage, conversation = 'c'): Promise<string[]> {
  return only(await stage.events(conversation), 'delegation.opened').flatMap(({ body }) =>
    body.thread === conversation ? [] : [body.thread],
  );
}

async function sound(stage: Stage, conversation = 'c'): Promise<void> {
  expect(await stage.check(conversation)).toEqual([]);
  for (const thread of await threads(stage, conversation)) await sound(stage, thread);
  expect(stage.warnings).toEqual([]);
}

/** Rejects when the signal aborts; the model may wait for something that never comes. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
}

describe('a task', () => {
  test('runs in its own thread, and its result wakes its owner', async () => {
    const bo = inOrder(asks(give('cy', 'count the ships')), says('there are seven'));
    const cy = inOrder(says('seven ships'));
    const stage = await play([
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy },
    ]);
    const events = await stage.events('c');
    const [opened] = only(events, 'delegation.opened');
    expect(opened).toMatchObject({
      to: [],
      body: { assignee: 'cy', delegator: 'bo', task: 'count the ships' },
    });
    expect(only(events, 'delegation.ended')).toMatchObject([
      { to: ['bo'], body: { outcome: 'done', result: 'seven ships' } },
    ]);
    expect(await words(stage)).toEqual(['please', 'there are seven']);
    expect(shown(cy.requests[0])).toContain('count the ships');
    expect(shown(cy.requests[0])).not.toContain('please');
    expect(times(shown(bo.requests[1]), 'seven ships')).toBe(1);
    expect([bo.requests.length, cy.requests.length]).toEqual([2, 1]);
    await sound(stage);
  });

  test('N2: an owner of three tasks is woken once, with all three results', async () => {
    const bo = inOrder(asks(give('cy', 'one'), give('di', 'two'), give('ed', 'three')), says('all done'));
    const stage = await play([
      { id: 'bo', model: bo, tools: ['delegate'] },
      talker('cy', says('result-one')),
      talker('di', says('result-two')),
      talker('ed', says('result-three')),
    ]);
    expect(bo.requests).toHaveLength(2);
    for (const result of ['result-one', 'result-two', 'result-three'])
      expect(times(shown(bo.requests[1]), result)).toBe(1);
    await sound(stage);
  });

  test('N4: a follow-up continues in the same thread, and the assignee sees its earlier work', async () => {
    const bo = inOrder(
      asks(give('cy', 'draft a title')),
      asks(['follow_up', { task: 'd-', text: 'shorter' }]),
      says('ok'),
    );
    const cy = inOrder(says('A very long title'), says('Title'));
    const stage = await play([
      { id: 'bo', model: bo, tools: ['delegate', 'follow_up'] },
      { id: 'cy', model: cy },
    ]);
    expect(new Set(await threads(stage)).size).toBe(1);
    expect(shown(cy.requests[1])).toMatch(/draft a title[^]*A very long title[^]*shorter/);
    expect(shown(bo.requests[2])).toContain('Title');
    expect(await words(stage)).toEqual(['please', 'ok']);
    expect(await stage.check('c')).toEqual([]);
  });

  test('two follow-ups to one agent are two tasks of its thread, and its final words end both', async () => {
    const bo = inOrder(
      asks(give('cy', 'draft a title')),
      asks(
        ['follow_up', { task: 'd-', text: 'shorter' }],
        ['follow_up', { task: 'd-', text: 'and louder', until: 'first' }],
      ),
      says('ok'),
    );
    const cy = inOrder(says('A very long title'), says('TITLE'));
    const stage = await play([
      { id: 'bo', model: bo, tools: ['delegate', 'follow_up'] },
      { id: 'cy', model: cy },
    ]);
    const [, ...ends] = only(await stage.events('c'), 'delegation.ended');
    expect(ends.map(({ body }) => [body.outcome, body.result])).toEqual([
      ['done', 'TITLE'],
      ['done', 'TITLE'],
    ]);
    const { tasks } = await stage.troupe.tasks('c');
    expect(tasks.filter(({ end }) => end === null)).toEqual([]);
    const [thread = ''] = await threads(stage);
    expect((await stage.troupe.tasks(thread)).thread?.isOpen).toBe(false);
    expect(await stage.check('c')).toEqual([]);
  });

  test('a thread that gets another task before the last one ended continues until both have ended', async () => {
    const bo = inOrder(
      asks(give('cy', 'draft a title')),
      asks(['follow_up', { task: 'd-', text: 'shorter', wait: false }]),
      says('meanwhile'),
      says('both are there'),
    );
    const cy = modelOf(async function* ({ messages }, signal) {
      const said = messages.map((message) => ('content' in message ? message.content : '')).join();
      if (said.includes('shorter')) await Promise.race([released.promise, aborted(signal)]);
      yield* says(said.includes('louder') ? 'TITLE' : 'A title');
    });
    const released = Promise.withResolvers<void>();
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate', 'follow_up'] },
        { id: 'cy', model: cy },
      ],
    });
    await stage.say('c', 'please', ['bo']);
    await until('the follow-up is at work', () => cy.requests.length === 2);
    const [first, second] = only(await stage.events('c'), 'delegation.opened').map(({ body }) => body);
    const next = { ...first!, delegation: 'd-000000000000', how: 'followUp' as const, task: 'louder' };
    await stage.deps.log.append(logOf(first!.thread), [
      {
        id: 'd-000000000000:opened' as Event['id'],
        author: { kind: 'agent', id: 'bo', name: 'bo' },
        to: [next.assignee],
        hop: 1,
        kind: 'delegation.opened',
        body: next,
      },
    ]);
    released.resolve();
    await stage.quiet();
    const ended = only(await stage.events(first!.thread), 'delegation.ended').map(({ body }) => body);
    expect(ended.map(({ delegation, result }) => [delegation, result])).toEqual([
      [first!.delegation, 'A title'],
      [second!.delegation, 'TITLE'],
      [next.delegation, 'TITLE'],
    ]);
  });

  test('three levels: each agent delegates a part and is told who gave it its own, and the results come back up', async () => {
    const [di, ed] = [inOrder(asks(give('ed', 'level three')), says('low')), inOrder(says('deepest'))];
    const stage = await play([
      { id: 'bo', model: inOrder(asks(give('cy', 'level one')), says('top: deepest')), tools: ['delegate'] },
      { id: 'cy', model: inOrder(asks(give('di', 'level two')), says('middle')), tools: ['delegate'] },
      { id: 'di', model: di, tools: ['delegate'] },
      { id: 'ed', model: ed },
    ]);
    expect(shown(di.requests[0])).toContain('the task that @cy gave you');
    expect(shown(ed.requests[0])).toContain('the task that @di gave you');
    expect(await words(stage)).toEqual(['please', 'top: deepest']);
    await sound(stage);
  });

  test('H9: other participants of the conversation see neither the task nor its result', async () => {
    const di = inOrder(says('hello'));
    const stage = await play([
      { id: 'bo', model: inOrder(asks(give('cy', 'secret task')), says('done')), tools: ['delegate'] },
      talker('cy', says('secret result')),
      { id: 'di', model: di },
    ]);
    await stage.say('c', 'and you?', ['di']);
    await stage.quiet();
    expect(shown(di.requests[0])).not.toMatch(/secret/);
  });

  test('a failed turn ends its task as failed, and the owner is notified', async () => {
    const bo = inOrder(asks(give('cy', 'one')), says('then not'));
    const stage = await play([
      { id: 'bo', model: bo, tools: ['delegate'] },
      talker('cy', breaks('provider_auth')),
    ]);
    expect(only(await stage.events('c'), 'delegation.ended')).toMatchObject([
      { body: { outcome: 'failed', result: expect.stringContaining('provider_auth') } },
    ]);
    expect(shown(bo.requests[1])).toContain('provider_auth');
    await sound(stage);
  });

  test('its owner may continue meanwhile, and is woken all the same', async () => {
    const bo = inOrder(asks(give('cy', 'one', { wait: false })), says('on my way'), says('got it'));
    const stage = await play([
      { id: 'bo', model: bo, tools: ['delegate'] },
      talker('cy', says('result-one')),
    ]);
    expect(await words(stage)).toEqual(['please', 'on my way', 'got it']);
    await sound(stage);
  });

  test('H10: open tasks are one live item', async () => {
    const cy = gated(says('late'), 1);
    const bo = inOrder(asks(give('cy', 'count slowly')), says('still waiting'), says('done'));
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate'] },
        { id: 'cy', model: cy },
      ],
    });
    await stage.say('c', 'please', ['bo']);
    await cy.reached();
    await stage.say('c', 'how is it going?', ['bo']);
    await until('bo is asked again', () => bo.requests.length === 2);
    cy.open();
    await stage.quiet();
    expect(shown(bo.requests[1])).toMatch(/delegations: you wait for 1:\n- d-[0-9a-f]{12} @cy: count slowly/);
    expect(shown(bo.requests[2])).toContain('delegations: nothing any more');
    await sound(stage);
  });
});

describe('until', () => {
  const three = (until: string) =>
    asks(give('cy', 'one', { until }), give('di', 'two', { until }), give('ed', 'three', { until }));

  test.each(['first', 'any'])(
    '%s: the first result wakes the owner, and the other tasks are cancelled',
    async (join) => {
      const [slow, slower] = [gated(says('slow'), 1), gated(says('slower'), 1)];
      const bo = inOrder(three(join), says('enough'));
      const stage = await openStage({
        agents: [
          { id: 'bo', model: bo, tools: ['delegate'] },
          talker('cy', says('fast')),
          { id: 'di', model: slow },
          { id: 'ed', model: slower },
        ],
      });
      await stage.say('c', 'please', ['bo']);
      await Promise.all([slow.reached(), slower.reached()]);
      await until('bo has answered', async () => (await words(stage)).length === 2);
      slow.open();
      slower.open();
      await stage.quiet();
      expect(bo.requests).toHaveLength(2);
      expect(
        only(await stage.events('c'), 'delegation.ended').filter(({ body }) => body.outcome === 'cancelled'),
      ).toHaveLength(2);
      await sound(stage);
    },
  );

  test('any: a failure is no result', async () => {
    const bo = inOrder(three('any'), says('enough'));
    const stage = await play([
      { id: 'bo', model: bo, tools: ['delegate'] },
      talker('cy', breaks('provider_auth')),
      talker('di', breaks('provider_auth')),
      talker('ed', says('good')),
    ]);
    expect(shown(bo.requests[1])).toContain('good');
    expect(bo.requests).toHaveLength(2);
    await sound(stage);
  });
});

describe('a task ends', () => {
  test('at its deadline, even while somebody works on it', async () => {
    const cy = gated(says('too late'), 1);
    const bo = inOrder(asks(give('cy', 'one', { deadlineMinutes: 0.1 })), says('without it'));
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate'] },
        { id: 'cy', model: cy },
      ],
    });
    await stage.say('c', 'please', ['bo']);
    await cy.reached();
    // Time advances in small steps, so that leases are renewed on the way.
    for (let round = 0; round < 200 && bo.requests.length < 2; round++) await stage.clock.advance(500);
    cy.open();
    await stage.quiet();
    expect(only(await stage.events('c'), 'delegation.ended')).toMatchObject([
      { body: { outcome: 'cancelled', result: 'its deadline has passed' } },
    ]);
    await sound(stage);
  });

  test('H4: by its owner, together with the tasks below it; a late result changes nothing', async () => {
    const di = gated(says('deep'), 1);
    const bo = inOrder(
      asks(give('cy', 'one')),
      asks(['cancel_task', { task: 'd-' }]),
      says('cancelled'),
      says('sorry'),
    );
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate', 'cancel_task'] },
        { id: 'cy', model: inOrder(asks(give('di', 'deep one')), says('never')), tools: ['delegate'] },
        { id: 'di', model: di },
      ],
    });
    await stage.say('c', 'please', ['bo']);
    await di.reached();
    await stage.say('c', 'stop it', ['bo']);
    await until('bo has answered', async () => (await words(stage)).length === 4);
    di.open();
    await stage.quiet();
    const [thread = ''] = await threads(stage);
    expect(
      only(await stage.events(thread), 'delegation.ended').filter(({ body }) => body.outcome === 'cancelled')
        .length,
    ).toBeGreaterThan(0);
    expect(await words(stage)).toEqual(['please', 'stop it', 'cancelled', 'sorry']);
    await sound(stage);
  });
});

import { expect, test } from 'vitest';
import type { Author, Command, Event, EventOf } from '../../src/events/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { invalidities } from '../support/check-prompt.ts';
import { tapDriver } from '../support/engine-driver.ts';
import { asks, gated, inOrder, says, shown, times } from '../support/engine-models.ts';
import { randomOf } from '../support/engine-random.ts';
import { ANA, openStage, type Stage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const BEN: Author = { kind: 'user', id: 'u2', name: 'Ben' };
const BO: Author = { kind: 'agent', id: 'bo', name: 'bo' };

function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

function answer(
  troupe: Pick<Troupe, 'command'>,
  question: string,
  content: string,
  by: Author = ANA,
  conversation = 'c',
): Promise<Event> {
  return troupe.command({ command: 'answer', conversation, question, content } as Command, by);
}

/** A conversation in which @bo has asked the people a question. */
async function asked(args: object = {}) {
  const bo = inOrder(asks(['ask', { question: 'Which colour?', ...args }]), says('so it is'), says('later'));
  const stage = await openStage({ agents: [{ id: 'bo', model: bo, tools: ['ask'] }] });
  await stage.say('c', 'paint it', ['bo']);
  await stage.quiet();
  const { tasks } = await stage.troupe.tasks('c', { open: true });
  return { stage, bo, question: tasks[0]?.id ?? '', opened: tasks[0]?.openedAt.event ?? '' };
}

async function wellFormed(
  stage: Stage,
  requests: readonly { messages: Parameters<typeof invalidities>[0] }[],
) {
  for (const { messages } of requests) expect(invalidities(messages)).toEqual([]);
  expect(await stage.check('c')).toEqual([]);
  expect(stage.warnings).toEqual([]);
}

test('the first answer wakes the agent once, and is shown to it once', async () => {
  const { stage, bo, question, opened } = await asked({ choices: ['red', 'Dark Blue'] });
  expect(bo.requests).toHaveLength(1);
  expect((await stage.troupe.tasks('c')).tasks).toMatchObject([
    { kind: 'question', owner: 'bo', text: 'Which colour?', choices: ['red', 'Dark Blue'], end: null },
  ]);
  await expect(answer(stage.troupe, question, 'green')).rejects.toThrow(/choose one of: red, Dark Blue/);
  await expect(answer(stage.troupe, question, '  ')).rejects.toMatchObject({ code: 'event_invalid' });
  const first = await answer(stage.troupe, opened, ' dark blue');
  expect(first).toMatchObject({
    kind: 'question.answered',
    author: ANA,
    to: ['bo'],
    body: { outcome: 'answered', content: 'Dark Blue' },
  });
  expect((await answer(stage.troupe, question.slice(0, 4), 'Dark Blue')).seq).toBe(first.seq);
  await stage.quiet();
  for (let n = 0; n < 3; n++) {
    await expect(answer(stage.troupe, question, 'red', BEN)).rejects.toThrow(
      /Ben \(u2\) could not answer q-.*: Ana \(u1\) answered "Dark Blue" at 20/,
    );
  }
  await expect(answer(stage.troupe, question, 'red')).rejects.toMatchObject({ code: 'command_refused' });
  await stage.quiet();
  expect(bo.requests).toHaveLength(2);
  expect(times(shown(bo.requests[1]), 'Dark Blue')).toBe(1);
  expect(times(shown(bo.requests[1]), `(answer to ${question})\nDark Blue`)).toBe(1);
  expect(only(await stage.events('c'), 'error')).toHaveLength(2);
  await stage.say('c', 'thanks', ['bo']);
  await stage.quiet();
  expect(times(shown(bo.requests[2]), `(answer to ${question})`)).toBe(1);
  await wellFormed(stage, bo.requests);
});

test('only people who were asked may answer, and refused answers are logged', async () => {
  const { stage, bo, question } = await asked({ by: ['u2'] });
  for (const by of [ANA, { ...BO, id: 'u2' }, { kind: 'system', id: 'u2', name: 'x' } as const]) {
    await expect(answer(stage.troupe, question, 'red', by)).rejects.toMatchObject({
      code: 'command_refused',
      data: { task: question },
    });
  }
  await expect(answer(stage.troupe, 'q-nothing', 'red')).rejects.toMatchObject({ code: 'task_unknown' });
  await stage.quiet();
  expect(bo.requests).toHaveLength(1);
  expect(only(await stage.events('c'), 'error').map(({ body }) => body.code)).toEqual([
    'command_refused',
    'command_refused',
    'command_refused',
    'task_unknown',
  ]);
  await answer(stage.troupe, question, 'red', BEN);
  await stage.quiet();
  expect(bo.requests).toHaveLength(2);
  await wellFormed(stage, bo.requests);
});

test('a prefix that fits two questions names both and answers neither', async () => {
  const bo = inOrder(asks(['ask', { question: 'One?' }], ['ask', { question: 'Two?' }]), says('ok'));
  const stage = await openStage({ agents: [{ id: 'bo', model: bo, tools: ['ask'] }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  const { tasks } = await stage.troupe.tasks('c', { open: true });
  const ids = tasks.map(({ id }) => id);
  await expect(answer(stage.troupe, 'q-', 'yes')).rejects.toMatchObject({
    code: 'command_refused',
    data: { candidates: ids },
  });
  await answer(stage.troupe, ids[0] ?? '', 'yes to one');
  await stage.quiet();
  expect(bo.requests).toHaveLength(1);
  await answer(stage.troupe, ids[1] ?? '', 'no to two');
  await stage.quiet();
  expect(bo.requests).toHaveLength(2);
  expect(times(shown(bo.requests[1]), 'yes to one')).toBe(1);
  expect(times(shown(bo.requests[1]), 'no to two')).toBe(1);
  await wellFormed(stage, bo.requests);
});

test("a person's reply to the question answers it and stays a message", async () => {
  const { stage, bo, question, opened } = await asked();
  await stage.troupe.send('c', { author: BO, content: 'blue', replyTo: opened as Event['id'] });
  await stage.quiet();
  expect((await stage.troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
  const id = 'm-blue' as Event['id'];
  const reply = { id, author: ANA, content: 'blue', replyTo: opened as Event['id'] };
  for (const kind of ['appended', 'exists']) expect((await stage.troupe.send('c', reply)).kind).toBe(kind);
  await stage.quiet();
  const events = await stage.events('c');
  expect(only(events, 'question.answered')).toMatchObject([{ author: ANA, body: { content: 'blue' } }]);
  expect(events.find((event) => event.id === id)).toMatchObject({ kind: 'message', to: [] });
  expect(bo.requests).toHaveLength(2);
  const late = await stage.troupe.send('c', { author: BEN, content: 'red', replyTo: opened as Event['id'] });
  expect(late.kind).toBe('appended');
  expect(only(await stage.events('c'), 'error')).toMatchObject([
    { body: { message: expect.stringContaining(question) as string } },
  ]);
  await wellFormed(stage, bo.requests);
});

test('a counter-question to a question with choices is a message and no choice', async () => {
  const { stage, opened } = await asked({ choices: ['red', 'blue'] });
  await stage.troupe.send('c', { author: ANA, content: 'why do you ask?', replyTo: opened as Event['id'] });
  await stage.quiet();
  expect((await stage.troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
  expect(only(await stage.events('c'), 'error')).toEqual([]);
});

test('an unanswered question expires once, and its agent continues without an answer', async () => {
  const { stage, bo, question } = await asked({ deadlineMinutes: 1 });
  const { deadline } = (await stage.troupe.tasks('c')).tasks[0] ?? {};
  for (let n = 0; n < 10 && stage.clock.now() <= (deadline ?? 0) + 40_000; n++) {
    await stage.clock.advance(30_000);
    await stage.quiet();
  }
  expect((await stage.troupe.tasks('c')).tasks).toMatchObject([
    { id: question, end: { outcome: 'expired' } },
  ]);
  expect(bo.requests).toHaveLength(2);
  expect(times(shown(bo.requests[1]), `(${question} is expired)`)).toBe(1);
  await expect(answer(stage.troupe, question, 'red')).rejects.toThrow(/it expired at/);
  await wellFormed(stage, bo.requests);
});

test('of two simultaneous answers one counts and the other is refused, in any interleaving', async () => {
  const won = new Set<string>();
  for (let seed = 1; seed <= 60; seed++) {
    const random = randomOf(seed);
    const bo = inOrder(asks(['ask', { question: 'Which?' }]), says('ok'));
    let isSlow = false;
    const driver = tapDriver(await openDriver(), async () => {
      if (isSlow) await turns(Math.floor(random() * 4));
    });
    const stage = await openStage({ driver, random, agents: [{ id: 'bo', model: bo, tools: ['ask'] }] });
    await stage.say('c', 'go', ['bo']);
    await stage.quiet();
    const question = (await stage.troupe.tasks('c')).tasks[0]?.id ?? '';
    isSlow = true;
    const ends = await Promise.allSettled([
      answer(stage.troupe, question, 'crimson'),
      answer(stage.troupe, question, 'azure', BEN),
    ]);
    await stage.quiet();
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const [answered, more] = only(await stage.events('c'), 'question.answered');
    expect(more).toBeUndefined();
    won.add(answered?.body.content ?? '');
    expect(bo.requests).toHaveLength(2);
    expect(times(shown(bo.requests[1]), answered?.body.content ?? 'nothing')).toBe(1);
    expect(await stage.check('c')).toEqual([]);
  }
  expect([...won].toSorted()).toEqual(['azure', 'crimson']);
});

test('a child with an open question is not done until it is answered', async () => {
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'paint' }]), says('it is painted'));
  const cy = inOrder(asks(['ask', { question: 'Which colour?' }]), says('painted red'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy, tools: ['ask'] },
    ],
  });
  await stage.say('c', 'paint it', ['bo']);
  await stage.quiet();
  const [task] = (await stage.troupe.tasks('c', { open: true })).tasks;
  const thread = task?.thread ?? '';
  const inside = await stage.troupe.tasks(thread, { open: true });
  expect(inside).toMatchObject({
    thread: { task: task?.id, home: 'c', delegator: 'bo', assignee: 'cy', isOpen: true },
    tasks: [{ kind: 'question', owner: 'cy' }],
  });
  expect([bo.requests.length, cy.requests.length]).toEqual([1, 1]);
  await answer(stage.troupe, inside.tasks[0]?.id ?? '', 'red', ANA, thread);
  await stage.quiet();
  expect([bo.requests.length, cy.requests.length]).toEqual([2, 2]);
  expect(times(shown(bo.requests[1]), 'painted red')).toBe(1);
  expect(shown(bo.requests[1])).not.toContain('Which colour?');
  expect((await stage.troupe.tasks('c')).tasks).toMatchObject([{ end: { outcome: 'done' } }]);
  await wellFormed(stage, bo.requests);
  expect(await stage.check(thread)).toEqual([]);
});

test('a person cancels a task: its turn is stopped, its own tasks are cancelled too, and its owner is notified once', async () => {
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'build' }]), says('then not'));
  const cy = inOrder(asks(['delegate', { to: 'di', task: 'saw' }]), says('no more'));
  const di = gated(says('sawn'), 1);
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy, tools: ['delegate'] },
      { id: 'di', model: di },
    ],
  });
  await stage.say('c', 'build it', ['bo']);
  await di.reached();
  const [task] = (await stage.troupe.tasks('c')).tasks;
  const id = task?.id ?? '';
  const cancel = (by: Author, reason = 'too dear') =>
    stage.troupe.command({ command: 'cancelTask', conversation: 'c', task: id, reason } as Command, by);
  await expect(cancel(BO)).rejects.toMatchObject({ code: 'command_refused' });
  const ended = await cancel(ANA);
  expect(ended).toMatchObject({
    kind: 'delegation.ended',
    author: ANA,
    to: ['bo'],
    body: { result: 'too dear' },
  });
  expect((await cancel(ANA)).seq).toBe(ended.seq);
  await expect(cancel(BEN, 'me too')).rejects.toThrow(/it ended as cancelled at .* by Ana/);
  await stage.quiet();
  di.open();
  await stage.quiet();
  expect([bo.requests.length, cy.requests.length]).toEqual([2, 1]);
  expect(times(shown(bo.requests[1]), 'too dear')).toBe(1);
  const below = await stage.troupe.tasks(task?.thread ?? '');
  expect(below).toMatchObject({ thread: { isOpen: false }, tasks: [{ end: { outcome: 'cancelled' } }] });
  const last = await stage.troupe.tasks(below.tasks[0]?.thread ?? '');
  expect(last.thread?.isOpen).toBe(false);
  const dis = await stage.events(below.tasks[0]?.thread ?? '');
  expect(only(dis, 'message')).toEqual([]);
  await wellFormed(stage, bo.requests);
});

test('words of anyone but the assignee complete no task', async () => {
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'count' }]), says('seven, he says'));
  const cy = gated(says('seven'), 1);
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy },
      { id: 'di', model: inOrder(says('it is nine')) },
    ],
  });
  await stage.say('c', 'how many?', ['bo']);
  await cy.reached();
  const { thread = '' } = (await stage.troupe.tasks('c')).tasks[0] ?? {};
  await stage.say(thread, 'and what do you think?', ['di']);
  await stage.troupe.send(thread, { author: { kind: 'agent', id: 'di', name: 'di' }, content: 'nine' });
  await stage.clock.advance(1_000);
  await turns(50);
  expect(only(await stage.events(thread), 'message').map(({ body }) => body.content)).toContain('it is nine');
  expect((await stage.troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
  cy.open();
  await stage.quiet();
  expect(only(await stage.events('c'), 'delegation.ended')).toMatchObject([{ body: { result: 'seven' } }]);
  expect(bo.requests).toHaveLength(2);
});

test('an archived conversation accepts no answers', async () => {
  const { stage, question } = await asked();
  const log = { tenant: 'default' as Event['tenant'], conversation: 'c' as Event['conversation'] };
  const id = 'archived-1' as Event['id'];
  await stage.deps.log.append(log, [
    { id, author: ANA, to: [], kind: 'command', body: { command: 'archive' } },
  ]);
  await expect(answer(stage.troupe, question, 'red')).rejects.toThrow(/archived: reopen it first/);
  expect(only(await stage.events('c'), 'error')).toEqual([]);
});

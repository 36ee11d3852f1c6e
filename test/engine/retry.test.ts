import { describe, expect, test } from 'vitest';
import type { AgentId, Author, ConversationId, Event, TurnId } from '../../src/events/index.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { invalidities, misplaced, visibleSeqs } from '../support/check-prompt.ts';
import { breaks, gated, inOrder, modelOf, says, shown, times } from '../support/engine-models.ts';
import { ANA, openStage, type Stage, until } from '../support/engine-stage.ts';
import { allLogs, type Play, playKilledAt } from '../support/killed-play.ts';
import { openDriver } from '../support/mode.ts';

const BEN: Author = { kind: 'user', id: 'u2', name: 'Ben' };
const AGAIN = 'is asked for again';

function retry(stage: Stage, turn: string, by = ANA): Promise<Event> {
  return stage.troupe.command({ command: 'retry', turn: turn as TurnId }, by);
}

async function kinds(stage: Stage, ...wanted: Event['kind'][]): Promise<string[]> {
  return (await stage.events('c')).filter(({ kind }) => wanted.includes(kind)).map(({ id }) => id);
}

const ENDINGS = ['turn.done', 'turn.failed', 'turn.aborted'] as const;

test('a failed turn is retried: one event, one turn, and its prompt ends with the original request', async () => {
  const model = inOrder(says('hello'), breaks('provider_refused', 'half'), says('here'), says('more'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'first', ['bo']);
  await stage.quiet();
  await stage.say('c', 'the question', ['bo']);
  await stage.quiet();
  const event = await retry(stage, 'c:bo:2');
  await stage.quiet();
  expect(event).toMatchObject({
    id: 'c:bo:2:retry',
    kind: 'command',
    to: ['bo'],
    author: ANA,
    body: { command: 'retry', agent: 'bo', turn: 'c:bo:2', code: 'provider_refused' },
  });
  expect(await kinds(stage, ...ENDINGS)).toEqual(['c:bo:1:end', 'c:bo:2:end', 'c:bo:3:end']);
  const ending = (await stage.events('c')).find(({ id }) => id === 'c:bo:3:end');
  expect(ending).toMatchObject({ kind: 'turn.done', body: { covers: [event.seq] } });
  expect(await stage.check('c')).toEqual([]);

  const [, failed, again] = model.requests;
  const log = (await stage.events('c')).filter(({ seq }) => seq <= event.seq);
  expect(invalidities(again?.messages ?? [])).toEqual([]);
  expect(misplaced(again?.messages ?? [], [...visibleSeqs(log, 'bo'), event.seq])).toEqual([]);
  expect(times(shown(again), 'the question')).toBe(1);
  const last = again?.messages.at(-1);
  expect(last?.role).toBe('user');
  expect(last?.content).toMatch(
    /^\[reminder #\d{6}\]\nYour last turn failed \(provider_refused\) and is asked for again: answer now what it was given \(event \d+\)\./,
  );
  // Sent prompts never change: each request begins with the one before it.
  await stage.say('c', 'and now?', ['bo']);
  await stage.quiet();
  const next = model.requests.at(-1);
  expect(times(shown(next), AGAIN)).toBe(1);
  const content = (request: typeof next) => request?.messages.map((message) => message.content) ?? [];
  expect(content(again).slice(0, content(failed).length)).toEqual(content(failed));
  expect(content(next).slice(0, content(again).length)).toEqual(content(again));
});

test('a retry of a retry has its own event, and names the original request', async () => {
  const model = inOrder(breaks('provider_refused'), breaks('provider_auth'), says('at last'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'the question', ['bo']);
  await stage.quiet();
  const first = await retry(stage, 'c:bo:1');
  await stage.quiet();
  const second = await retry(stage, 'c:bo:2');
  await stage.quiet();
  expect([first.id, second.id]).toEqual(['c:bo:1:retry', 'c:bo:2:retry']);
  expect(second.body).toMatchObject({ inputs: [1], code: 'provider_auth' });
  expect(await kinds(stage, 'message')).toHaveLength(2);
  // A late repetition of the first retry returns the event that performed it.
  expect(await retry(stage, 'c:bo:1', BEN)).toEqual(first);
  await stage.quiet();
  expect(model.requests).toHaveLength(3);
  expect(await stage.check('c')).toEqual([]);
});

test('a stopped turn is retried', async () => {
  const model = gated(says('never', 'said'), 1);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'the question', ['bo']);
  await model.reached();
  await expect(retry(stage, 'c:bo:1')).rejects.toMatchObject({
    code: 'command_refused',
    message: 'turn c:bo:1 cannot be retried: it is running',
  });
  await stage.troupe.command({ command: 'abort', turn: 'c:bo:1' as TurnId }, ANA);
  model.open();
  await stage.quiet();
  await retry(stage, 'c:bo:1');
  await stage.quiet();
  expect(shown(model.requests.at(-1))).toContain('Your last turn was stopped and is asked for again');
  expect(await kinds(stage, 'message')).toHaveLength(2);
  expect(await stage.check('c')).toEqual([]);
});

test('two or twenty people who retry at once cause one retry', async () => {
  const model = inOrder(breaks('provider_refused'), says('here'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'the question', ['bo']);
  await stage.quiet();
  const asked = Array.from({ length: 20 }, (_, n) => retry(stage, 'c:bo:1', n % 2 ? ANA : BEN));
  const events = await Promise.all(asked);
  await stage.quiet();
  expect(new Set(events.map(({ seq }) => seq)).size).toBe(1);
  expect(await kinds(stage, 'command')).toEqual(['c:bo:1:retry']);
  expect(await kinds(stage, ...ENDINGS)).toHaveLength(2);
  expect(model.requests).toHaveLength(2);
  expect(await stage.check('c')).toEqual([]);
});

test('so do two processes', async () => {
  const driver = await openDriver();
  const clock = createFakeClock();
  const model = inOrder(breaks('provider_refused'), says('here'));
  const limits = { soleOwner: false };
  const open = () => openStage({ driver, clock, limits, agents: [{ id: 'bo', model }] });
  const [one, two] = [await open(), await open()];
  await one.say('c', 'the question', ['bo']);
  await one.quiet();
  const events = await Promise.all([retry(one, 'c:bo:1'), retry(two, 'c:bo:1', BEN)]);
  await one.quiet();
  await two.quiet();
  expect(events[0]?.seq).toBe(events[1]?.seq);
  expect(await kinds(one, ...ENDINGS)).toHaveLength(2);
  expect(await one.check('c')).toEqual([]);
});

describe('a retry is refused with the reason', () => {
  const about = { conversation: 'c' as ConversationId, agent: 'bo' as AgentId };
  type Plain = 'leave' | 'block' | 'retire' | 'pause' | 'archive';
  async function failed(): Promise<Stage> {
    const model = inOrder(breaks('provider_refused'), says('here'));
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await stage.say('c', 'the question', ['bo']);
    await stage.quiet();
    return stage;
  }

  test.each<[Plain, string]>([
    ['leave', '@bo has left'],
    ['block', '@bo is blocked: unblock it first'],
    ['retire', '@bo is retired: reinstate it first'],
    ['pause', '@bo is paused: resume it first'],
    ['archive', 'c is archived: reopen it first'],
  ])('after %s: %s', async (command, why) => {
    const stage = await failed();
    const { conversation } = about;
    await stage.troupe.command(
      command === 'archive' ? { command, conversation } : { command, ...about },
      ANA,
    );
    await expect(retry(stage, 'c:bo:1')).rejects.toMatchObject({
      code: 'command_refused',
      message: `turn c:bo:1 cannot be retried: ${why}`,
    });
    expect(await kinds(stage, ...ENDINGS)).toHaveLength(1);
  });

  test('a turn that is done, or that another one followed', async () => {
    const stage = await failed();
    await stage.say('c', 'never mind', ['bo']);
    await stage.quiet();
    await expect(retry(stage, 'c:bo:1')).rejects.toMatchObject({
      code: 'command_refused',
      message: 'turn c:bo:1 cannot be retried: a later turn exists: c:bo:2',
    });
    await expect(retry(stage, 'c:bo:2')).rejects.toMatchObject({
      code: 'command_refused',
      message: 'turn c:bo:2 cannot be retried: it is done',
    });
  });

  test.each(['c:bo:9', 'd:bo:1', 'c:cy:1', 'nonsense'])('an unknown turn: %s', async (turn) => {
    const stage = await failed();
    await expect(retry(stage, turn)).rejects.toMatchObject({ code: 'turn_unknown' });
  });
});

describe('a failed agent', () => {
  const key = { tenant: 'default', conversation: 'c', agent: 'bo' };

  test('with its turn pinned continues it: one command, and no other turn', async () => {
    const driver = await openDriver();
    const hanging = gated(says('never'), 0);
    const first = await openStage({ driver, agents: [{ id: 'bo', model: hanging }] });
    await first.say('c', 'the question', ['bo']);
    await until('the model is called', () => hanging.requests.length === 1);
    const stopped = first.engine.stop();
    await first.clock.advance(8_000);
    await stopped;
    const model = inOrder(says('here'));
    const stage = await openStage({ driver, clock: first.clock, agents: [{ id: 'bo', model }] });
    await driver.park(key as never, 'failed');
    const events = await Promise.all([retry(stage, 'c:bo:1'), retry(stage, 'c:bo:1', BEN)]);
    await stage.quiet();
    expect(events[0]).toEqual(events[1]);
    expect(events[0]).toMatchObject({ to: [], body: { command: 'resume', agent: 'bo', turn: 'c:bo:1' } });
    expect(await kinds(stage, ...ENDINGS)).toEqual(['c:bo:1:end']);
    expect(await stage.check('c')).toEqual([]);
  });

  test('after a failed turn is resumed, and takes the turn again', async () => {
    const model = inOrder(breaks('provider_refused'), says('here'));
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await stage.say('c', 'the question', ['bo']);
    await stage.quiet();
    await stage.driver.park(key as never, 'failed');
    const event = await retry(stage, 'c:bo:1');
    await stage.quiet();
    expect(event).toMatchObject({ id: 'c:bo:1:retry', to: ['bo'] });
    expect((await stage.actor('c', 'bo')).parked).toBeNull();
    expect(await kinds(stage, ...ENDINGS)).toEqual(['c:bo:1:end', 'c:bo:2:end']);
    expect(await stage.check('c')).toEqual([]);
  });
});

test('a retry waits for a turn that a message has started meanwhile, and does not interrupt it', async () => {
  const model = gated(says('one'), 0);
  const stage = await openStage({ agents: [{ id: 'bo', model, whileBusy: 'interrupt' }] });
  await stage.say('c', 'first', ['bo']);
  await model.reached();
  const body = { command: 'retry' as const, agent: 'bo' as AgentId, turn: 'c:bo:1' as TurnId, inputs: [1] };
  const log = { tenant: 'default', conversation: 'c' } as Parameters<typeof stage.deps.log.append>[0];
  const draft = { id: 'c:bo:1:retry' as Event['id'], author: ANA, to: ['bo' as AgentId] };
  await stage.deps.log.append(log, [{ ...draft, kind: 'command', body }]);
  model.open();
  await stage.quiet();
  expect(await kinds(stage, ...ENDINGS)).toEqual(['c:bo:1:end', 'c:bo:2:end']);
  expect(await kinds(stage, 'turn.aborted', 'turn.steered')).toEqual([]);
});

/** Answers are a function of the request, so that every process answers alike. */
const PLAY: Play = {
  options: {
    agents: [
      {
        id: 'bo',
        model: modelOf(async function* (request) {
          yield* shown(request).includes(AGAIN) ? says('here') : breaks('provider_refused');
        }),
      },
    ],
  },
  async act(stage) {
    const events = await stage.events('c');
    if (events.length === 0) await stage.say('c', 'the question', ['bo'], 'begin');
    const has = (wanted: Event['kind']) => events.some(({ kind }) => kind === wanted);
    if (has('turn.failed') && !has('turn.done')) await retry(stage, 'c:bo:1');
  },
};

test('a process that dies at any point changes no prompt and no reply', async () => {
  // Repeated calls of a model are listed with the attempt that made them.
  const told = async (stage: Stage) =>
    ((await allLogs(stage)).get('c') ?? [])
      .filter(({ kind }) => kind !== 'error')
      .map(({ id, to, kind }) => ({ id, to, kind }));
  const calm = await playKilledAt(0, PLAY);
  const expected = await told(calm.stage);
  expect(expected.filter(({ kind }) => kind === 'command')).toHaveLength(1);
  expect(expected.at(-1)?.id).toBe('c:bo:2:end');
  for (let at = 1; at <= calm.points.length; at++) {
    const { stage, died, driver } = await playKilledAt(at, PLAY);
    const where = `killed at ${at} of ${calm.points.length}: ${JSON.stringify(calm.points[at - 1])}`;
    expect(died, where).toBe(true);
    expect(await told(stage), where).toEqual(expected);
    expect(await stage.check('c'), where).toEqual([]);
    await driver.close();
  }
  console.log(`killed at each of ${calm.points.length} points`);
});

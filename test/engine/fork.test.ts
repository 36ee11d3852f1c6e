import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { showWaiting } from '../../src/context/index.ts';
import type { Author, ConversationId, Event, PromptMessage, TurnId } from '../../src/events/index.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { invalidities } from '../support/check-prompt.ts';
import { asks, breaks, gated, inOrder, modelOf, says, shown, times } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage, until } from '../support/engine-stage.ts';
import { at, fork, forkedAs, given } from '../support/fork-stage.ts';
import { allLogs } from '../support/killed-play.ts';
import { promptOf, viewOf } from '../support/log-player.ts';
import { openDriver } from '../support/mode.ts';

const BEN: Author = { kind: 'user', id: 'u2', name: 'Ben' };

/** The fields that a conversation shares with its copy. */
function shared({ author, to, kind, at: time, tokens, seq, hop }: Event) {
  return { author, to, kind, time, tokens, seq, hop };
}

const long = defineTool({
  name: 'long',
  description: 'says much',
  schema: z.object({}),
  run: () => 'very '.repeat(4_000),
});
const launch = defineTool({
  name: 'launch',
  description: 'launches',
  schema: z.object({}),
  needsApproval: true,
  run: () => 'it flies',
});

/** A log with every kind of content: calls, an artifact, a handoff, tasks, a question, an approval, failures. */
async function eventful(): Promise<{ stage: Stage; asked: () => number }> {
  const bo = inOrder(
    asks(['long', {}]),
    says('that was long'),
    asks(['delegate', { to: 'cy', task: 'count the ships' }]),
    says('cy says four'),
    asks(['ask', { question: 'which colour?' }]),
    says('crimson it is'),
    asks(['launch', {}]),
    says('launched'),
    breaks('provider_refused', 'half a word'),
    asks(['handoff', { to: 'cy', goal: 'go on' }]),
    asks(['ask', { question: 'and the other colour?' }]),
    says('later'),
  );
  const cy = modelOf(async function* () {
    yield* says('four');
  });
  const tools = ['long', 'delegate', 'ask', 'launch', 'handoff'];
  const stage = await openStage({
    tools: [long, launch],
    agents: [
      { id: 'bo', model: bo, tools },
      { id: 'cy', model: cy },
    ],
  });
  const { troupe } = stage;
  const say = async (text: string) => {
    await stage.say('c', text, ['bo']);
    await stage.quiet();
  };
  const open = async () => (await troupe.tasks('c', { open: true })).tasks[0]?.id ?? '';
  const conversation = 'c' as ConversationId;
  await say('be long');
  await say('count');
  await say('paint');
  await troupe.command({ command: 'answer', conversation, question: await open(), content: 'crimson' }, ANA);
  await stage.quiet();
  await say('launch');
  await troupe.command({ command: 'decide', conversation, request: await open(), approved: true }, ANA);
  await stage.quiet();
  await say('break');
  await say('hand over');
  await say('ask again');
  expect(await stage.check('c')).toEqual([]);
  return { stage, asked: () => bo.requests.length + cy.requests.length };
}

test('a fork at any event of an eventful log is sound, wakes no agent, and leaves the original unchanged', async () => {
  const { stage, asked } = await eventful();
  const original = await stage.events('c');
  const calls = asked();
  const threads = [...(await allLogs(stage))].filter(([id]) => id !== 'c');
  for (let seq = 1; seq <= original.length; seq++) {
    const event = await fork(stage, at(seq));
    const as = forkedAs(event);
    expect(event).toMatchObject({
      conversation: 'c',
      to: [],
      body: { fork: { conversation: `c-fork-${seq}`, seq } },
    });
    const events = await stage.events(as);
    expect(events.slice(0, seq).map(shared)).toEqual(original.slice(0, seq).map(shared));
    expect(events.at(-1)).toMatchObject({ author: ANA, body: { from: { conversation: 'c', seq } } });
    expect(await stage.check(as), as).toEqual([]);
    expect((await stage.troupe.tasks(as, { open: true })).tasks).toEqual([]);
    expect(await stage.troupe.state(as)).toMatchObject({ openDelegations: 0 });
  }
  await stage.clock.advance(stage.deps.limits.sweepMs * 4);
  await stage.quiet();
  expect(asked()).toBe(calls);
  expect((await stage.events('c')).slice(0, original.length)).toEqual(original);
  for (const [id, events] of threads) expect(await stage.events(id), id).toEqual(events);
  expect(await stage.check('c')).toEqual([]);
  expect(stage.warnings).toEqual([]);
  console.log(`forked at each of ${original.length} events`);
});

/** Removes what differs between conversations: the keys of fences, and the notes on missing results. */
function plain(messages: readonly PromptMessage[]): string[] {
  return messages
    .filter(({ role, content }) => role !== 'system' && !/^(?:\[no result|not known:)/.test(content))
    .map(({ role, content }) => `${role} ${content.replaceAll(/#\d{6}(?=\]?$)/gm, '#')}`);
}

test('an agent sees in a fork what it had seen of the original, and continues from there', async () => {
  const { stage } = await eventful();
  const original = await stage.events('c');
  for (let seq = 1; seq <= original.length; seq += 3) {
    const as = forkedAs(await fork(stage, at(seq)));
    const view = viewOf('bo', original.slice(0, seq));
    const isUnderWay = view.turn !== null;
    showWaiting(view);
    const before = plain(promptOf(view).messages);
    const now = await stage.troupe.prompt(as, 'bo');
    const after = plain(now.messages);
    expect(after.slice(0, before.length), as).toEqual(before);
    expect(after.length - before.length, as).toBeLessThanOrEqual(isUnderWay ? 2 : 0);
    const seqs = now.messages.flatMap((message) => message.seqs).filter((each) => each <= seq);
    expect(new Set(seqs).size, as).toBe(seqs.length);

    await stage.say(as, `go on ${seq}`, ['bo']);
    await stage.quiet();
    expect(await stage.check(as), as).toEqual([]);
    const sent = (await stage.events(as)).findLast(({ kind }) => kind === 'turn.started');
    const prompt = await stage.troupe.promptOf(sent?.turn ?? '', 1);
    expect(invalidities(prompt.messages), as).toEqual([]);
    expect(prompt.verified, as).toBe(true);
    expect(prompt.messages.at(-1)?.content, as).toContain(`go on ${seq}`);
  }
});

test('a fork of a turn ends before the inputs of the turn, and its agents continue their counts', async () => {
  const model = inOrder(says('one'), says('two'), says('another two'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'first', ['bo']);
  await stage.quiet();
  await stage.say('c', 'second', ['bo']);
  await stage.quiet();
  const event = await fork(stage, { turn: 'c:bo:2' as TurnId, as: 'd' as ConversationId });
  const copied = await stage.events('d');
  expect(copied.map(({ id }) => id)).toEqual([
    copied[0]?.id,
    'joined:bo',
    'baseline:bo:1',
    'd:bo:1:started',
    'd:bo:1:reply',
    'd:bo:1:end',
    'forked:6',
  ]);
  expect(event.body).toEqual({ command: 'fork', fork: { conversation: 'd', seq: 6 } });
  await stage.say('d', 'second, in other words', ['bo']);
  await stage.quiet();
  expect((await stage.events('d')).at(-1)).toMatchObject({ id: 'd:bo:2:end', kind: 'turn.done' });
  expect(times(shown(model.requests.at(-1)), 'second')).toBe(1);
  expect(await stage.check('d')).toEqual([]);
  // Nothing precedes its first input.
  const empty = await fork(stage, { turn: 'c:bo:1' as TurnId });
  expect((await stage.events(forkedAs(empty))).map(({ kind }) => kind)).toEqual(['command']);
});

test('open work is ended in the fork, and continues in the original', async () => {
  const bo = gated(says('never mind'), 1);
  const stage = await openStage({ agents: [{ id: 'bo', model: bo }] });
  await stage.say('c', 'hello', ['bo']);
  await bo.reached();
  const begun = async () => (await stage.events('c')).some(({ kind }) => kind === 'turn.started');
  await until('the turn is in the log', begun);
  const head = (await stage.events('c')).length;
  await fork(stage, at(head, 'd'));
  expect((await stage.events('d')).slice(head)).toMatchObject([
    { id: 'd:bo:1:end', kind: 'turn.aborted', body: { covers: [1], by: 'fork' } },
    { kind: 'command' },
  ]);
  bo.open();
  await stage.quiet();
  expect((await stage.events('c')).at(-1)).toMatchObject({ kind: 'turn.done' });
  // The failed turn may be retried in the copy.
  await stage.troupe.command({ command: 'retry', turn: 'd:bo:1' as TurnId }, ANA);
  await stage.quiet();
  expect((await stage.events('d')).at(-1)).toMatchObject({ id: 'd:bo:2:end', kind: 'turn.done' });
  expect([await stage.check('c'), await stage.check('d')]).toEqual([[], []]);
});

test('the fork has the whole of a shortened output, but not the threads of the original', async () => {
  const { stage } = await eventful();
  const original = await stage.events('c');
  await fork(stage, at(original.length, 'd'));
  const [cut] = original.flatMap((event) =>
    event.kind === 'tool.result' && event.body.artifact !== undefined ? [event.body.artifact] : [],
  );
  const whole = await stage.store.readArtifact(logOf('c'), cut ?? '');
  expect(whole).toHaveLength(20_000);
  expect(await stage.store.readArtifact(logOf('d'), cut ?? '')).toBe(whole);
  const before = [...(await allLogs(stage))];
  await stage.troupe.delete('d', { exported: 'none' });
  expect([...(await allLogs(stage))]).toEqual(before.filter(([id]) => id !== 'd'));
});

test('a fork of a thread belongs to no task, and ends none', async () => {
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'count' }]), says('thanks'));
  const cy = gated(says('four'), 1);
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await cy.reached();
  const thread = (await stage.troupe.tasks('c')).tasks[0]?.thread ?? '';
  const begun = async () => (await stage.events(thread)).some(({ kind }) => kind === 'turn.started');
  await until('the turn is in the log', begun);
  const { head } = await stage.troupe.events(thread);
  await fork(stage, { conversation: thread as ConversationId, seq: head, as: 'd' as ConversationId });
  await stage.troupe.command({ command: 'retry', turn: 'd:cy:1' as TurnId }, ANA);
  cy.open();
  await stage.quiet();
  const ends = (await stage.events('c')).filter(({ kind }) => kind === 'delegation.ended');
  expect(ends).toHaveLength(1);
  expect(await stage.troupe.tasks('d')).toMatchObject({ thread: null });
  for (const id of ['c', 'd', thread]) expect(await stage.check(id), id).toEqual([]);
});

describe('requested twice', () => {
  async function spoken(): Promise<Stage> {
    const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('here')) }] });
    await stage.say('c', 'hello', ['bo']);
    await stage.quiet();
    return stage;
  }

  test('the same name at the same event is the same fork, whoever requests it, and however many at once', async () => {
    const stage = await spoken();
    const asked = Array.from({ length: 10 }, (_, n) => fork(stage, at(3, 'd'), n % 2 ? ANA : BEN));
    const events = await given(stage, asked);
    expect(new Set(events.map(({ seq }) => seq)).size).toBe(1);
    expect(await fork(stage, at(3, 'd'), BEN)).toEqual(events[0]);
    expect(await stage.events('d')).toHaveLength(4);
    expect((await stage.events('c')).filter(({ kind }) => kind === 'command')).toHaveLength(1);
    expect([await stage.check('c'), await stage.check('d')]).toEqual([[], []]);
  });

  test('the name of another fork or conversation is refused', async () => {
    const stage = await spoken();
    await fork(stage, at(3, 'd'));
    await stage.say('e', 'hello', []);
    const refused = {
      code: 'command_refused',
      message: 'there is already a conversation "d": choose another name',
    };
    await expect(fork(stage, at(4, 'd'))).rejects.toMatchObject(refused);
    await expect(fork(stage, at(3, 'e'))).rejects.toMatchObject({ code: 'command_refused' });
    await expect(fork(stage, at(3, 'c'))).rejects.toMatchObject({ code: 'command_refused' });
    expect(await stage.events('e')).toHaveLength(1);
  });

  test('without a name there are two forks, and the name of a deleted fork is free again', async () => {
    const stage = await spoken();
    const names = [await fork(stage, at(3)), await fork(stage, at(3))].map(forkedAs);
    expect(names).toEqual(['c-fork-3', 'c-fork-3-2']);
    await stage.troupe.delete('c-fork-3', { exported: 'none' });
    expect(forkedAs(await fork(stage, at(3)))).toBe('c-fork-3');
    expect(await stage.events('c-fork-3')).toHaveLength(4);
    await stage.troupe.delete('c-fork-3', { exported: 'none' });
    expect(forkedAs(await fork(stage, at(4, 'c-fork-3')))).toBe('c-fork-3');
    expect(await stage.check('c-fork-3')).toEqual([]);
  });

  test('a fork can be forked, and an unknown event cannot', async () => {
    const stage = await spoken();
    await fork(stage, at(3, 'd'));
    await fork(stage, { conversation: 'd' as ConversationId, seq: 4, as: 'e' as ConversationId });
    expect((await stage.events('e')).at(-1)?.body).toMatchObject({ from: { conversation: 'd', seq: 4 } });
    await stage.say('e', 'go on', ['bo']);
    await stage.quiet();
    expect(await stage.check('e')).toEqual([]);
    const head = (await stage.events('c')).length;
    await expect(fork(stage, at(head + 1))).rejects.toMatchObject({
      code: 'command_refused',
      message: `c has ${head} events, so there is no event ${head + 1}`,
    });
    const nowhere = { conversation: 'nowhere' as ConversationId, seq: 1 };
    await expect(fork(stage, nowhere)).rejects.toMatchObject({ code: 'conversation_unknown' });
    await expect(fork(stage, { turn: 'c:bo:9' as TurnId })).rejects.toMatchObject({ code: 'turn_unknown' });
    await expect(fork(stage, { conversation: 'c' as ConversationId })).rejects.toMatchObject({
      code: 'event_invalid',
      data: { path: 'seq' },
    });
  });

  test('by two processes, it is one fork', async () => {
    const driver = await openDriver();
    const clock = createFakeClock();
    const model = inOrder(says('here'));
    const limits = { soleOwner: false };
    const open = () => openStage({ driver, clock, limits, agents: [{ id: 'bo', model }] });
    const [one, two] = [await open(), await open()];
    await one.say('c', 'hello', ['bo']);
    await one.quiet();
    const asked = [fork(one, at(3, 'd')), fork(two, at(3, 'd'), BEN)];
    const events = await given(one, asked);
    expect(events[0]?.seq).toBe(events[1]?.seq);
    expect(await one.events('d')).toHaveLength(4);
    expect(await one.check('d')).toEqual([]);
  });
});

import { describe, expect, test } from 'vitest';
import type { AgentId, Author, ConversationId, Event, EventOf } from '../../src/events/index.ts';
import { asks, inOrder, modelOf, says, shown } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage } from '../support/engine-stage.ts';

const C = 'c' as ConversationId;
const BO = 'bo' as AgentId;
const CY: Author = { kind: 'agent', id: 'cy', name: 'cy' };

function kinds(events: readonly Event[]): string[] {
  return events.map(({ kind }) => kind).filter((kind) => kind !== 'baseline' && !kind.startsWith('turn.'));
}

function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

function repliesOf(events: readonly Event[], agent: string): string[] {
  return only(events, 'message').flatMap(({ author, body }) => (author.id === agent ? [body.content] : []));
}

async function opened(): Promise<{ stage: Stage; bo: ReturnType<typeof inOrder> }> {
  const bo = inOrder(says('one'), says('two'), says('three'), says('four'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo },
      { id: 'cy', model: inOrder(says('cy speaks')) },
    ],
  });
  await stage.say('c', 'hello', ['bo']);
  await stage.quiet();
  return { stage, bo };
}

describe('a blocked agent', () => {
  test('is woken only by a trusted person, who brings it back by addressing it, and then sees the missed words once', async () => {
    const { stage, bo } = await opened();
    await stage.troupe.command({ command: 'block', conversation: C, agent: BO, reason: 'noise' }, ANA);
    await stage.troupe.send('c', { author: CY, to: ['bo'], content: 'are you there, bo?' });
    await stage.quiet();
    expect(repliesOf(await stage.events('c'), 'bo')).toEqual(['one']);
    expect((await stage.actor('c', 'bo')).processed).toBe((await stage.events('c')).length);

    await stage.say('c', 'come back', ['bo']);
    await stage.quiet();
    const events = await stage.events('c');
    expect(repliesOf(events, 'bo')).toEqual(['one', 'two']);
    expect(kinds(events).slice(-3)).toEqual(['membership.changed', 'message', 'message']);
    expect(only(events, 'membership.changed').at(-1)).toMatchObject({
      author: ANA,
      to: [],
      body: { change: 'joined', agent: 'bo' },
    });
    const sent = shown(bo.requests[1]);
    expect(sent.split('are you there, bo?')).toHaveLength(2);
    const call = only(events, 'message').find(({ body }) => body.content === 'come back');
    expect(only(events, 'turn.done').at(-1)?.body.covers).toEqual([call?.seq]);
    await stage.troupe.send('c', { author: CY, to: ['bo'], content: 'and now?' });
    await stage.quiet();
    expect(repliesOf(await stage.events('c'), 'bo')).toEqual(['one', 'two', 'three']);
    expect(stage.warnings).toEqual([]);
  });

  test('cannot be given a task', async () => {
    const cy = inOrder(asks(['delegate', { to: 'bo', task: 'count' }]), says('nobody counts'));
    const stage = await openStage({
      agents: [
        { id: 'bo', model: inOrder(says('never')) },
        { id: 'cy', model: cy, tools: ['delegate'] },
      ],
    });
    await stage.say('c', 'x', []);
    await stage.troupe.command({ command: 'block', conversation: C, agent: BO }, ANA);
    await stage.say('c', 'have it counted', ['cy']);
    await stage.quiet();
    expect(shown(cy.requests[1])).toContain('@bo is blocked here');
    expect(only(await stage.events('c'), 'delegation.opened')).toEqual([]);
  });

  test('comes back by a message that was under way while it was blocked', async () => {
    const { stage } = await opened();
    // Appended as by another process that has not seen the block.
    await stage.deps.log.append(logOf('c'), [
      {
        id: 'b1' as Event['id'],
        author: ANA,
        to: [],
        kind: 'membership.changed',
        body: { change: 'left', agent: BO, reason: '', blocked: true },
      },
      { id: 'm1' as Event['id'], author: ANA, to: [BO], kind: 'message', body: { content: 'bo?' } },
    ]);
    await stage.quiet();
    expect(repliesOf(await stage.events('c'), 'bo')).toEqual(['one', 'two']);
  });

  test('takes no part until it is unblocked, and is then woken with its pending messages', async () => {
    const bo = inOrder(asks(['delegate', { to: 'cy', task: 'count' }]), says('there are seven'));
    const release = Promise.withResolvers<void>();
    const counting = modelOf(async function* () {
      await release.promise;
      yield* says('seven');
    });
    const stage = await openStage({
      agents: [
        { id: 'bo', model: bo, tools: ['delegate'] },
        { id: 'cy', model: counting },
      ],
    });
    await stage.say('c', 'count', ['bo']);
    for (let i = 0; i < 50; i++) await stage.clock.advance(5);
    await stage.troupe.command({ command: 'block', conversation: C, agent: BO }, ANA);
    release.resolve();
    await stage.quiet();
    expect(only(await stage.events('c'), 'delegation.ended')).toHaveLength(1);
    expect(bo.requests).toHaveLength(1);
    await stage.troupe.command({ command: 'unblock', conversation: C, agent: BO }, ANA);
    await stage.quiet();
    expect(repliesOf(await stage.events('c'), 'bo')).toEqual(['there are seven']);
    expect(shown(bo.requests[1])).toContain('seven');
  });
});

test('invalid changes are refused, and so are requests of agents', async () => {
  const { stage } = await opened();
  const refused = { code: 'command_refused' };
  const about = { conversation: C, agent: BO };
  const { troupe } = stage;
  await expect(troupe.command({ command: 'unblock', ...about }, ANA)).rejects.toMatchObject(refused);
  await expect(troupe.command({ command: 'join', ...about }, ANA)).rejects.toMatchObject(refused);
  await expect(troupe.command({ command: 'leave', ...about }, CY)).rejects.toMatchObject(refused);
  for (const command of ['reinstate', 'recall'] as const)
    await expect(troupe.command({ command, ...about }, ANA)).rejects.toMatchObject(refused);
  await expect(troupe.command({ command: 'reopen', conversation: C }, ANA)).rejects.toMatchObject(refused);
  await troupe.command({ command: 'leave', ...about }, ANA);
  await expect(troupe.command({ command: 'leave', ...about }, ANA)).rejects.toMatchObject(refused);
  await expect(
    troupe.command({ command: 'block', conversation: C, agent: 'bob' as AgentId }, ANA),
  ).rejects.toMatchObject({ code: 'agent_unknown' });
});

test('a newcomer sees as much of the past as its join allows', async () => {
  const cy = inOrder(says('fresh eyes'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model: inOrder(says('one')) },
      { id: 'cy', model: cy },
    ],
  });
  await stage.say('c', 'an old secret', ['bo']);
  await stage.quiet();
  await stage.troupe.command(
    { command: 'join', conversation: C, agent: 'cy' as AgentId, policy: 'fresh' },
    ANA,
  );
  await stage.say('c', 'look at this', ['cy']);
  const prompt = await stage.troupe.prompt('c', 'cy');
  await stage.quiet();
  expect(shown(cy.requests[0])).toContain('look at this');
  expect(shown(cy.requests[0])).not.toContain('an old secret');
  expect(JSON.stringify(prompt.messages)).not.toContain('an old secret');
  expect(
    only(await stage.events('c'), 'membership.changed').filter(({ body }) => body.agent === 'cy'),
  ).toHaveLength(1);
  expect(await stage.check('c')).toEqual([]);
});

test('a retired agent keeps its view, and a person who addresses it reinstates it', async () => {
  const { stage, bo } = await opened();
  await stage.troupe.command({ command: 'retire', conversation: C, agent: BO }, ANA);
  await stage.troupe.send('c', { author: CY, to: ['bo'], content: 'are you there?' });
  await stage.quiet();
  expect((await stage.actor('c', 'bo')).parked).toBe('retired');
  expect(bo.requests).toHaveLength(1);
  await stage.say('c', 'we need you', ['bo']);
  await stage.quiet();
  expect((await stage.actor('c', 'bo')).parked).toBeNull();
  // The missed messages may already have had a turn of their own.
  const sent = shown(bo.requests.at(-1));
  expect([sent.includes('one'), sent.includes('are you there?'), sent.includes('we need you')]).toEqual([
    true,
    true,
    true,
  ]);
  const stored = only(await stage.events('c'), 'command').map(({ body }) => body.command);
  expect(stored).toEqual(['retire', 'recall']);
  expect(await stage.check('c')).toEqual([]);
});

import { expect, test } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author, Command, Event, EventId, EventOf } from '../../src/events/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { openTroupe } from '../support/mode.ts';

/** Delivery of messages, through the public API. N17 and N18 are in `test/scenarios/log.test.ts`. */
const UMA: Author = { kind: 'user', id: 'u1', name: 'Uma' };
const EVE: Author = { kind: 'user', id: 'e1', name: 'Eve' };

/** Agents that echo the last message. */
function room(ids: readonly string[], more: Partial<TroupeInput> = {}): Promise<Troupe> {
  const script = { rules: [{ reply: 'heard: {{last}}' }] };
  const agents = ids.map((id) => ({ id, provider: 'scripted', script }) as TroupeInput['agents'][number]);
  return openTroupe({ agents, ...more });
}

async function say(
  troupe: Troupe,
  content: string,
  {
    to,
    author = UMA,
    id,
    where = 'room',
  }: { to?: string; author?: Author; id?: string; where?: string } = {},
): Promise<Event> {
  const message = { author, content, ...(to && { to: [to] }), ...(id && { id: id as EventId }) };
  const { event } = await troupe.send(where, message);
  await troupe.idle();
  return event;
}

async function only<K extends Event['kind']>(troupe: Troupe, kind: K, where = 'room'): Promise<EventOf<K>[]> {
  const { events } = await troupe.events(where);
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

/** The messages that each turn ending of an agent covers. */
async function answered(troupe: Troupe, agent: string, where = 'room'): Promise<string[][]> {
  const { events } = await troupe.events(where);
  return events.flatMap((event) => {
    if (event.kind !== 'turn.done' || event.author.id !== agent) return [];
    return [event.body.covers.map((seq) => wordsOf(events[seq - 1]))];
  });
}

function wordsOf(event: Event | undefined): string {
  return event?.kind === 'message' ? event.body.content : (event?.kind ?? '');
}

async function lastPrompt(troupe: Troupe, turn: string): Promise<string> {
  const { messages, verified } = await troupe.promptOf(turn);
  expect(verified).toBe(true);
  return JSON.stringify(messages);
}

test('N13 an agent in two conversations at once sees in each only what was said there', async () => {
  await using troupe = await room(['p']);
  const rounds = ['first', 'second', 'third'];
  for (const round of rounds) {
    await Promise.all(
      ['red', 'blue'].map((where) =>
        troupe.send(where, {
          author: UMA,
          content: `${round} of ${where}`,
          to: ['p'],
          id: `same-${round}` as EventId,
        }),
      ),
    );
    await troupe.idle();
  }
  for (const [where, other] of [
    ['red', 'blue'],
    ['blue', 'red'],
  ] as const) {
    expect(await answered(troupe, 'p', where)).toEqual(rounds.map((round) => [`${round} of ${where}`]));
    const prompt = await lastPrompt(troupe, `${where}:p:3`);
    expect(prompt).toContain(`first of ${where}`);
    expect(prompt).not.toContain(`of ${other}`);
  }
});

test('N14 a gateway that fetches missed events again adds no second copy, and only new ones are answered', async () => {
  await using troupe = await room(['p']);
  const posts = ['e1', 'e2', 'e3', 'e4'].map((id) => [`words of ${id}`, { to: 'p', id }] as const);
  for (const [content, more] of posts.slice(0, 2)) await say(troupe, content, more);
  const before = (await troupe.events('room')).events;
  // After the reconnect the client sends everything in a different order, with duplicates.
  for (const index of [1, 0, 2, 0, 3, 2]) {
    const [content, more] = posts[index] as (typeof posts)[number];
    await say(troupe, content, more);
  }
  const { events } = await troupe.events('room');
  expect(events.slice(0, before.length)).toEqual(before);
  expect(await answered(troupe, 'p')).toEqual(posts.map(([content]) => [content]));
  await expect(say(troupe, 'other words', { to: 'p', id: 'e1' })).rejects.toMatchObject({
    code: 'event_conflict',
  });
});

test('N15 an agent blocked by a person is not woken until a trusted person addresses it again', async () => {
  await using troupe = await room(['p'], { trust: { people: ['u1'] } });
  await say(troupe, 'one', { to: 'p' });
  const block = { command: 'block', conversation: 'room', agent: 'p', reason: 'too loud' } as Command;
  await expect(troupe.command(block, EVE)).rejects.toMatchObject({ code: 'command_refused' });
  await troupe.command(block, UMA);
  const agent: Author = { kind: 'agent', id: 'q', name: 'q' };
  await say(troupe, 'of an agent', { to: 'p', author: agent });
  await say(troupe, 'of a stranger', { to: 'p', author: EVE });
  expect(await answered(troupe, 'p')).toEqual([['one']]);
  await say(troupe, 'two', { to: 'p' });
  expect(await answered(troupe, 'p')).toEqual([['one'], ['two']]);
  const changes = await only(troupe, 'membership.changed');
  expect(changes.filter(({ body }) => body.change === 'left')).toMatchObject([
    { body: { agent: 'p', blocked: true } },
  ]);
  expect(changes.at(-1)).toMatchObject({ author: UMA, body: { change: 'joined', agent: 'p' } });
  await say(troupe, 'of an agent again', { to: 'p', author: agent });
  expect(await answered(troupe, 'p')).toHaveLength(3);
});

test('N16 a message of a stranger is stored as context and wakes no agent until it is passed on', async () => {
  await using troupe = await room(['p'], { trust: { people: ['u1'] } });
  const held = await say(troupe, 'let me in', { to: 'p', author: EVE });
  expect(held).toMatchObject({ to: [], context: { held: ['p'] } });
  expect(await answered(troupe, 'p')).toEqual([]);
  const dispatch = { command: 'dispatch', conversation: 'room', event: held.id } as Command;
  await expect(troupe.command(dispatch, EVE)).rejects.toMatchObject({ code: 'command_refused' });
  const passedOn = await troupe.command(dispatch, UMA);
  expect((await troupe.command(dispatch, UMA)).id).toBe(passedOn.id);
  await troupe.idle();
  expect(await answered(troupe, 'p')).toHaveLength(1);
  const prompt = await lastPrompt(troupe, 'room:p:1');
  expect(prompt.split('let me in')).toHaveLength(2);
});

test('N17 an unaddressed reply is stored and wakes no agent; an unaddressed message at the top goes to the default agent', async () => {
  await using troupe = await room(['p', 'd'], { defaults: { respondWhenUnaddressed: 'd' } });
  const root = await say(troupe, 'at the top');
  await troupe.send('room', { author: UMA, content: 'in the thread', replyTo: root.id });
  await troupe.idle();
  expect(await answered(troupe, 'd')).toEqual([['at the top']]);
  expect(await answered(troupe, 'p')).toEqual([]);
  expect((await only(troupe, 'message')).map(wordsOf)).toContain('in the thread');
});

test('N18 a message of 100 kB arrives intact', async () => {
  await using troupe = await room(['p']);
  const text = 'Größe 7 – {"a":[1,2]} 🎭 line\n'.repeat(3_500);
  expect(Buffer.byteLength(text)).toBeGreaterThan(100_000);
  await say(troupe, text, { to: 'p' });
  const [stored] = await only(troupe, 'message');
  expect(stored?.body.content).toBe(text);
  const { messages } = await troupe.promptOf('room:p:1');
  expect(messages.find(({ role }) => role === 'user')?.content.startsWith(text)).toBe(true);
});

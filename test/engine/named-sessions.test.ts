import { expect, test } from 'vitest';
import type { NewMessage } from '../../src/library/troupe.ts';
import {
  createFakeSessions,
  newSessionMemory,
  type SessionMemory,
} from '../../packages/testing/src/fake-sessions.ts';
import { breaks, inOrder, modelOf, says } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';

const SCRIPTED = 'scripted';

/** A memory that holds a session which somebody began by hand. */
function memoryWith(id: string): SessionMemory {
  const memory = newSessionMemory();
  memory.sessions.set(id, [{ id: 'by-hand', texts: ['said by hand'] }]);
  return memory;
}

async function open(memory: SessionMemory, fails = 0) {
  let failures = fails;
  const answer = modelOf(async function* () {
    yield* (failures -= 1) >= 0 ? breaks('provider_failed', 'half') : says('ok');
  });
  const model = createFakeSessions({
    memory,
    answer: (request, signal) => answer.stream(request, { signal }),
  });
  const cwdOf = (key: string) => `/srv/${key.split('/').at(-1)}`;
  return openStage({ agents: ['bo', 'cy'].map((id) => ({ id, model: { ...model, cwdOf } })) });
}

async function ask(stage: Stage, content: string, more: Partial<NewMessage> = {}, conversation = 'c') {
  await stage.troupe.send(conversation, { author: ANA, to: ['bo'], content, ...more });
  await stage.quiet();
}

const named = (id: string, more: object = {}) => ({
  session: { agent: 'bo', provider: SCRIPTED, id, ...more },
});

async function told(stage: Stage, conversation = 'c'): Promise<string[]> {
  return (await stage.events(conversation)).flatMap((event) =>
    event.kind === 'session.changed' ? [`${event.body.change} ${event.body.reason ?? ''}`.trim()] : [],
  );
}

test('a session named by a message is adopted: it gets the whole prompt once, and later turns continue it', async () => {
  const memory = memoryWith('own-1');
  const stage = await open(memory);
  await ask(stage, 'alpha-1');
  await ask(stage, 'beta-2', named('own-1', { cwd: '/srv/bo' }));
  await ask(stage, 'gamma-3');
  expect(memory.seen.map(({ session }) => session)).toEqual([memory.seen[0]?.session, 'own-1', 'own-1']);
  const second = memory.seen[1];
  expect(second?.sent[0]?.role).toBe('system');
  expect(second?.transcript[0]).toBe('said by hand');
  const words = memory.seen[2]?.transcript.join('\n') ?? '';
  for (const word of ['alpha-1', 'beta-2', 'gamma-3']) expect(words.split(word)).toHaveLength(2);
  expect(memory.seen[2]?.sent.map(({ content }) => content).join('\n')).not.toContain('beta-2');
  expect(await stage.actor('c', 'bo')).toMatchObject({ session: { id: 'own-1', state: 'ok' } });
  expect(await told(stage)).toEqual(['started first', 'adopted named', 'resumed', 'resumed']);
  expect((await stage.troupe.promptOf('c:bo:2')).verified).toBe(true);
  expect(await stage.check('c')).toEqual([]);
});

test('nobody takes the session of another conversation or agent, nor brings back one that was left', async () => {
  const memory = memoryWith('own-1');
  const stage = await open(memory);
  await ask(stage, 'one', named('own-1'));
  await ask(stage, 'theirs', named('own-1'), 'other');
  expect(await told(stage, 'other')).toEqual(['refused taken', 'started first']);
  await stage.troupe.send('c', {
    author: ANA,
    to: ['cy'],
    content: 'mine',
    session: { agent: 'cy', provider: SCRIPTED, id: 'own-1' },
  });
  await stage.quiet();
  const started = memory.seen.find(({ trace }) => trace.conversation === 'other')?.session ?? '';
  await ask(stage, 'two', named(started));
  expect((await told(stage)).filter((each) => each === 'refused taken')).toHaveLength(2);
  const holders = memory.seen.filter(({ session }) => session === 'own-1').map(({ trace }) => trace);
  for (const { conversation, agent } of holders) expect([conversation, agent]).toEqual(['c', 'bo']);
});

test.each([
  ['of another provider', { provider: 'codex' }, 'provider'],
  ['of another directory', { cwd: '/elsewhere' }, 'elsewhere'],
  ['named by an author who may not', { refused: 'author' }, 'author'],
])('a session %s is refused with an event, and the turn goes on without it', async (_name, more, reason) => {
  const memory = memoryWith('own-1');
  const stage = await open(memory);
  await ask(stage, 'one', named('own-1', more));
  expect(await told(stage)).toEqual([`refused ${reason}`, 'started first']);
  expect(memory.seen.map(({ session }) => session)).not.toContain('own-1');
});

test('an agent whose provider has no sessions refuses every one', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('ok')) }] });
  await ask(stage, 'one', named('own-1'));
  expect(await told(stage)).toEqual(['refused provider']);
});

test('a session that does not exist is lost, and a new one gets the prompt in the same turn', async () => {
  const memory = newSessionMemory();
  const stage = await open(memory);
  await ask(stage, 'one', named('nowhere'));
  expect(await told(stage)).toEqual(['adopted named', 'lost lost', 'rebuilt lost']);
  expect(memory.seen).toHaveLength(1);
});

test('an adopted session whose first answer broke off is not sent the prompt again', async () => {
  const memory = memoryWith('own-1');
  const stage = await open(memory, 1);
  await ask(stage, 'one', named('own-1'));
  const sessions = memory.seen.map(({ session }) => session);
  expect(sessions[0]).toBe('own-1');
  expect(sessions.slice(1)).not.toContain('own-1');
  expect(await told(stage)).toEqual(['adopted named', 'resumed', 'rebuilt unknown']);
});

test('a session id that could be an option or a path, or of an agent that is not addressed, is refused at once', async () => {
  const stage = await open(newSessionMemory());
  for (const id of ['--resume', '../x', 'a b', ''])
    await expect(
      stage.troupe.send('c', { author: ANA, to: ['bo'], content: 'x', ...named(id) }),
    ).rejects.toMatchObject({ code: 'event_invalid', data: { path: 'context.session.id' } });
  await expect(
    stage.troupe.send('c', { author: ANA, to: ['cy'], content: 'x', ...named('own-1') }),
  ).rejects.toMatchObject({ code: 'event_invalid', data: { path: 'session.agent' } });
});

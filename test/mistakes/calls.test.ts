import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTroupe, type Troupe } from '../../src/index.ts';

/** What a program without types did by mistake, and the words of the answer. */
type Mistake = [what: string, call: (troupe: Troupe) => unknown, words: string];

const bo = { id: 'bo', provider: 'scripted' as const, script: { rules: [{ reply: 'hi' }] } };
const ANA = { kind: 'user' as const, id: 'ana', name: 'Ana' };
const message = (more: object) => ({ author: ANA, content: 'hi', ...more }) as never;

let troupe: Troupe;
beforeAll(async () => {
  troupe = await createTroupe({ agents: [bo] });
  await troupe.ask('c', 'hi');
});
afterAll(() => troupe.close());

test.each<Mistake>([
  [
    'a conversation with a space',
    (t) => t.ask('a b', 'hi'),
    'conversation: a conversation id is 1 to 128 of',
  ],
  ['no conversation', (t) => t.ask(undefined as never, 'hi'), 'conversation: is missing'],
  ['no message', (t) => t.ask('c', undefined as never), 'message: give a text, or an object such as'],
  ['one addressee', (t) => t.send('c', message({ to: 'bo' })), 'to: is a text: give a list: [ … ]'],
  [
    'an author as a text',
    (t) => t.send('c', message({ author: 'ana' })),
    'author: is missing: say who speaks',
  ],
  [
    'another kind of author',
    (t) => t.send('c', message({ author: { ...ANA, kind: 'human' } })),
    'author.kind: is "human": give one of "user", "agent", "system"',
  ],
  [
    'an author without a name',
    (t) => t.send('c', message({ author: { kind: 'user', id: 'a' } })),
    'author.name: is missing',
  ],
  [
    'a mistyped field',
    (t) => t.send('c', message({ replyToo: 'x' })),
    'replyToo: is not a field; did you mean "replyTo"?',
  ],
  [
    'an empty attachment',
    (t) => t.send('c', message({ attachments: [{}] })),
    'attachments.0: give data, or a url',
  ],
  [
    'data of no type',
    (t) => t.send('c', message({ attachments: [{ data: 'aGk=' }] })),
    'attachments.0.mediaType: is missing: such as "image/png"',
  ],
  [
    'another policy',
    (t) => t.send('c', message({ whileBusy: 'wait' })),
    'whileBusy: is "wait": give one of "queue", "steer", "interrupt", "reject"',
  ],
  [
    'a mistyped option',
    (t) => t.ask('c', 'hi', { timeout: 5 } as never),
    'the options of ask: timeout: is not a field; did you mean "timeoutMs"?',
  ],
  [
    'a time in quotes',
    (t) => t.ask('c', 'hi', { timeoutMs: '5' } as never),
    'the options of ask: timeoutMs: is a text: give a number',
  ],
  [
    'a signal that is none',
    (t) => t.ask('c', 'hi', { signal: 1 } as never),
    'the options of ask: signal: give the signal of an AbortController',
  ],
  [
    'a page of less than none',
    (t) => t.events('c', { limit: -1 }),
    'the options of events: limit: is -1: give more than 0',
  ],
  [
    'a filter where the number of conversations stands',
    (t) => t.conversations({ kind: 'thread' } as never),
    'the options of conversations: limit: is an object: give a number',
  ],
  [
    'a mistyped filter of conversations',
    (t) => t.listConversations({ kind: 'threads' } as never),
    'the options of listConversations: kind: is "threads": give one of "conversation", "thread"',
  ],
  [
    'no number of exported events',
    (t) => t.delete('c', undefined as never),
    'the options of delete: exported: say how many events you have exported',
  ],
  [
    'a wrong number of exported events',
    (t) => t.delete('c', { exported: 99 }),
    'but 99 were exported: export them again',
  ],
  ['null for options', (t) => t.ask('c', 'hi', null as never), 'the options of ask: they: is null'],
  [
    'two mistakes at once',
    (t) => t.send('c', message({ to: 'bo', replyToo: 'x' })),
    'to: is a text: give a list: [ … ]; replyToo: is not a field',
  ],
  [
    'a time that no timer can wait',
    (t) => t.ask('c', 'hi', { timeoutMs: 30 * 86_400_000 }),
    'the options of ask: timeoutMs: is 2592000000: give at most 2147483647',
  ],
  [
    'a mistyped conversation to watch',
    (t) => t.watch(() => {}, { conversaton: 'c' } as never),
    'the options of watch: conversaton: is not a field; did you mean "conversation"?',
  ],
  [
    'data as numbers',
    (t) => t.send('c', message({ attachments: [{ data: 5, mediaType: 'text/plain' }] })),
    'attachments.0.data: give bytes, or a text in base64',
  ],
  ['a session of nobody', (t) => t.send('c', message({ session: {} })), 'session.agent: is missing'],
  [
    'a command of somebody without a kind',
    (t) => t.command({ command: 'pause', conversation: 'c', agent: 'bo' }, { id: 'ana' } as never),
    'by.kind: is missing: give one of "user", "agent", "system"; by.name: is missing',
  ],
  [
    'an answer of somebody without a name',
    (t) => t.command({ command: 'cancelTask', conversation: 'c', task: 'd' }, { ...ANA, name: 1 } as never),
    'by.name: is 1: give a text',
  ],
  ['no watcher', (t) => t.watch(undefined as never), 'watcher: give a function'],
  ['an unknown conversation', (t) => t.events('zz'), 'there is no conversation "zz"'],
  ['an unknown agent', (t) => t.prompt('c', 'b'), 'there is no agent "b". Did you mean "bo"?'],
  ['an unknown turn', (t) => t.trace('zz'), 'there is no turn "zz"'],
  ['an invalid tenant', (t) => t.forTenant('a b'), '"a b" is not a valid tenant id'],
  [
    'an answer to nothing',
    (t) => t.command({ command: 'answer', conversation: 'c', question: 'q', content: 'x' }, ANA),
    'could not answer q: there is no such question. Open: none',
  ],
  [
    'a retry of what went well',
    (t) => t.command({ command: 'retry', turn: 'c:bo:1' }, ANA),
    'turn c:bo:1 cannot be retried: it is done',
  ],
  [
    'a number for a folder',
    () => createTroupe({ agents: [bo] }, { data: 3 } as never),
    'the options of createTroupe: data: is 3: give a text',
  ],
  [
    'null for the options of the troupe',
    () => createTroupe({ agents: [bo] }, null as never),
    'the options of createTroupe: they: is null: give an object',
  ],
  [
    'no definition, where it may be empty',
    () => createTroupe(undefined as never, { allowEmpty: true }),
    'the definition has 1 problem(s)',
  ],
  [
    'another name of a store',
    () => createTroupe({ agents: [bo] }, { mongo: 'x' } as never),
    'the options of createTroupe: mongo: is not a field; did you mean "mongodb"?',
  ],
])('%s: the answer names the place and what to give instead', async (_, call, words) => {
  await expect(async () => call(troupe)).rejects.toMatchObject({
    name: 'TroupeError',
    message: expect.stringContaining(words),
  });
});

test('of very many unknown fields only some are named', async () => {
  const unknown = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`field${n}`, n]));
  const refused = await troupe.send('c', message(unknown)).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 'event_invalid' });
  expect(String(refused).split('is not a field')).toHaveLength(21);
});

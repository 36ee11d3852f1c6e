import * as fc from 'fast-check';
import { npubEncode } from 'nostr-tools/nip19';
import { parse as parseNip10 } from 'nostr-tools/nip10';
import { parse as parseNip22 } from 'nostr-tools/nip22';
import { expect, test } from 'vitest';
import { composeReply, type Reply } from '../src/compose-reply.ts';
import { type Place, placeOf } from '../src/published.ts';

const hex = (digit: string) => digit.repeat(64);
const [ROOT, PARENT, ANA, BEN, ADA, BOB] = ['1', '2', 'a', 'b', 'c', 'd'].map(hex) as [
  string,
  string,
  string,
  string,
  string,
  string,
];
const RELAY = 'wss://relay.example/in';

function place(id: string, kind: number, pubkey: string, tags: string[][] = [], relay = RELAY): Place {
  return placeOf({ id, kind, pubkey, tags }, relay);
}

function reply(parent: Place, more: Partial<Reply> = {}): Reply {
  return {
    content: 'words',
    at: 1_767_225_600_999,
    self: ADA,
    parent,
    rootId: parent.id,
    root: null,
    to: [],
    ours: new Set([ADA, BOB]),
    ...more,
  };
}

test('a note is answered by a note that marks it as the root', () => {
  expect(composeReply(reply(place(ROOT, 1, ANA, [['p', ADA]])))).toEqual({
    kind: 1,
    created_at: 1_767_225_600,
    content: 'words',
    tags: [
      ['e', ROOT, RELAY, 'root', ANA],
      ['p', ANA],
    ],
  });
});

test('a reply within a thread marks root and parent and names the participants, the answered author first', () => {
  const parent = place(PARENT, 1, BEN, [
    ['e', ROOT, '', 'root'],
    ['p', ANA],
    ['p', BEN],
    ['p', ADA],
    ['p', 'nonsense'],
  ]);
  const template = composeReply(reply(parent, { rootId: ROOT, root: place(ROOT, 1, ANA) }));
  expect(template.tags).toEqual([
    ['e', ROOT, RELAY, 'root', ANA],
    ['e', PARENT, RELAY, 'reply', BEN],
    ['p', BEN],
    ['p', ANA],
  ]);
  expect(parseNip10(template)).toMatchObject({ root: { id: ROOT }, reply: { id: PARENT } });
});

test('a thread of kind 11 is answered by a comment on it', () => {
  const template = composeReply(reply(place(ROOT, 11, ANA)));
  expect(template).toMatchObject({
    kind: 1111,
    tags: [
      ['E', ROOT, RELAY, ANA],
      ['K', '11'],
      ['P', ANA],
      ['e', ROOT, RELAY, ANA],
      ['k', '11'],
      ['p', ANA],
    ],
  });
  expect(parseNip22(template)).toMatchObject({
    root: { id: ROOT },
    rootKind: 11,
    reply: { id: ROOT },
    replyKind: 11,
  });
});

test('a comment is answered by a comment with the same root, whatever its kind', () => {
  const scope = [
    ['A', `30023:${ANA}:post`, RELAY],
    ['K', '30023'],
    ['P', ANA],
  ];
  const parent = place(PARENT, 1111, BEN, [...scope, ['e', ROOT], ['k', '30023'], ['p', ANA]]);
  expect(composeReply(reply(parent, { rootId: ROOT })).tags).toEqual([
    ...scope,
    ['e', PARENT, RELAY, BEN],
    ['k', '1111'],
    ['p', BEN],
    ['p', ANA],
  ]);
  const article = place(ROOT, 30_023, ANA, [['d', 'post']]);
  expect(composeReply(reply(article)).tags.slice(0, 4)).toEqual([
    ['A', `30023:${ANA}:post`, RELAY, ANA],
    ['K', '30023'],
    ['P', ANA],
    ['a', `30023:${ANA}:post`, RELAY, ANA],
  ]);
});

test('an answer to another of our agents names it only if it is an addressee', () => {
  const parent = place(PARENT, 1, BOB, [
    ['p', ANA],
    ['p', ADA],
    ['p', BOB],
  ]);
  const people = (more: Partial<Reply>) =>
    composeReply(reply(parent, { rootId: ROOT, ...more })).tags.flatMap(([name, key]) =>
      name === 'p' ? [key] : [],
    );
  expect(people({})).toEqual([ANA]);
  expect(people({ to: [BOB] })).toEqual([BOB, ANA]);
  expect(people({ to: [ADA] })).toEqual([ANA]);
});

test('the address of a relay is a hint only if it can hold no secret', () => {
  const hintFrom = (relay: string) => composeReply(reply(place(ROOT, 1, ANA, [], relay))).tags[0]?.[2];
  expect(hintFrom('wss://relay.example')).toBe('wss://relay.example/');
  for (const url of [
    'wss://me:secret@relay.example',
    'wss://relay.example/?key=secret',
    'https://relay.example',
    '',
  ]) {
    expect(hintFrom(url)).toBe('');
  }
});

const key = fc.constantFrom(ANA, BEN, ADA, BOB, hex('e'));
const tag = fc.tuple(
  fc.constantFrom('p', 'e', 'E', 'K', 'P', 'k', 'x'),
  fc.oneof(key, fc.string({ maxLength: 80 })),
);
const words = fc.oneof(
  fc.string(),
  fc.constantFrom(`nostr:${npubEncode(BOB)}`, `["p","${BOB}"]`, '#[0]', `@bob p-tag ${BOB}`, '"],["p","'),
);

test('for any thread and content, tags alone name people, once each, never the agent, and the event is always the same', () => {
  fc.assert(
    fc.property(
      fc.array(words).map((parts) => parts.join(' ')),
      fc.constantFrom(1, 11, 1111, 30_023, 9),
      key,
      fc.array(tag, { maxLength: 200 }),
      fc.array(fc.constantFrom(ADA, BOB)),
      fc.boolean(),
      (content, kind, author, tags, to, isRoot) => {
        const parent = place(PARENT, kind, author, tags);
        const given = reply(parent, { content, to, rootId: isRoot ? PARENT : ROOT });
        const template = composeReply(given);
        expect(composeReply(structuredClone(given))).toEqual(template);
        expect(template.content).toBe(content);
        const named = template.tags.filter(([name]) => name === 'p').map(([, pubkey]) => pubkey ?? '');
        const allowed = new Set([
          author,
          ...to,
          ...tags.flatMap(([name, text]) => (name === 'p' ? [text] : [])),
        ]);
        expect(new Set(named).size).toBe(named.length);
        expect(named.length).toBeLessThanOrEqual(50);
        for (const pubkey of named) {
          expect(allowed.has(pubkey) && /^[0-9a-f]{64}$/.test(pubkey) && pubkey !== ADA).toBe(true);
          expect(pubkey !== BOB || to.includes(BOB)).toBe(true);
        }
        expect(template.tags.filter(([name, id]) => name === 'e' && id === PARENT)).toHaveLength(1);
      },
    ),
    { numRuns: 500 },
  );
});

import { describe, expect, test } from 'vitest';
import { threadOf } from '../src/nostr-event.ts';

const id = (letter: string) => letter.repeat(64);
const [SELF, A, B, C] = [id('0'), id('a'), id('b'), id('c')];

describe('a note belongs to the thread (NIP-10)', () => {
  test.each<[string, string[][], string, string | null]>([
    ['of its own if it answers nothing', [], SELF, null],
    ['of its own if it only names people', [['p', A]], SELF, null],
    ['of the marked root, which it answers', [['e', A, '', 'root']], A, A],
    [
      'of the marked root, and answers the marked reply',
      [
        ['e', B, '', 'reply'],
        ['e', A, '', 'root'],
        ['e', C, '', 'mention'],
      ],
      A,
      B,
    ],
    ['of the marked reply if there is no marked root', [['e', A, '', 'reply']], A, A],
    ['of the only event, without marks', [['e', A]], A, A],
    [
      'of the first of several, without marks, and answers the last',
      [
        ['e', A],
        ['e', C],
        ['e', B],
      ],
      A,
      B,
    ],
    ['of its own if it only mentions', [['e', A, '', 'mention']], SELF, null],
    ['of its own if it only quotes', [['q', A]], SELF, null],
    [
      'of the marked event, whatever unmarked events there are',
      [
        ['e', C],
        ['e', A, '', 'root'],
      ],
      A,
      A,
    ],
    ['of its own if the id is invalid', [['e', 'A'.repeat(64)], ['e', 'x'], ['e']], SELF, null],
    ['of its own if it names itself', [['e', SELF, '', 'root']], SELF, null],
  ])('%s', (_name, tags, root, parent) => {
    expect(threadOf({ id: SELF, pubkey: A, kind: 1, tags })).toMatchObject({ root, rootEvent: root, parent });
  });
});

test('a thread of kind 11 begins with itself', () => {
  expect(threadOf({ id: SELF, pubkey: A, kind: 11, tags: [['subject', 'Hello']] })).toMatchObject({
    root: SELF,
    parent: null,
  });
});

describe('a comment belongs to the thread (NIP-22)', () => {
  const ARTICLE = `30023:${A}:an-article`;
  const rootOf = (tags: string[][]) => threadOf({ id: SELF, pubkey: A, kind: 1_111, tags });

  test('of the event that is its root, and answers its parent', () => {
    const tags = [
      ['E', A, '', B],
      ['K', '11'],
      ['P', B],
      ['e', C, '', B],
      ['k', '1111'],
      ['p', B],
    ];
    expect(rootOf(tags)).toEqual({ root: A, rootEvent: A, parent: C, filter: { '#E': [A] } });
  });

  test('of an article, by its address and not its version', () => {
    const tags = [
      ['A', ARTICLE],
      ['K', '30023'],
      ['a', ARTICLE],
      ['e', C],
      ['k', '30023'],
    ];
    const thread = rootOf(tags);
    expect(thread).toMatchObject({ rootEvent: null, parent: C, filter: { '#A': [ARTICLE] } });
    expect(thread.root).toMatch(/^[0-9a-f]{32}$/);
    expect(rootOf([...tags, ['E', B]]).root).toBe(thread.root);
    expect(rootOf([['A', `${ARTICLE}2`]]).root).not.toBe(thread.root);
    const mentioned = ['e', B, '', 'root'];
    for (const id of [SELF, C]) {
      const article = { id, pubkey: A, kind: 30_023, tags: [mentioned, ['d', 'an-article']] };
      expect(threadOf(article)).toEqual({ ...thread, parent: null });
    }
  });

  test('of a replaceable list, by its address', () => {
    const list = threadOf({ id: SELF, pubkey: A, kind: 10_003, tags: [] });
    expect(rootOf([['A', `10003:${A}:`]]).root).toBe(list.root);
  });

  test('of an addressable event by its id if its name is missing or too long', () => {
    for (const tags of [[], [['d', 'x'.repeat(1_000)]]]) {
      expect(threadOf({ id: SELF, pubkey: A, kind: 30_023, tags })).toMatchObject({ root: SELF });
    }
  });

  test('of something outside Nostr', () => {
    const thread = rootOf([
      ['I', 'https://example.com/a'],
      ['K', 'web'],
      ['i', 'https://example.com/a'],
    ]);
    expect(thread).toMatchObject({
      rootEvent: null,
      parent: null,
      filter: { '#I': ['https://example.com/a'] },
    });
    expect(thread.root).toMatch(/^[0-9a-f]{32}$/);
  });

  test('of a note if it has no root of NIP-22', () => {
    expect(rootOf([['e', A, '', 'root']])).toMatchObject({ root: A, parent: A });
    expect(rootOf([['E', 'nonsense']])).toMatchObject({ root: SELF, parent: null });
  });
});

import { expect, test } from 'vitest';
import { TroupeError } from '../../../src/base/errors.ts';
import type { SignedEvent, Thread } from '../src/nostr-event.ts';
import { Receiver, type ReceiverParts } from '../src/intake.ts';
import { memoryKeyValue } from '../../../src/base/key-value.ts';
import { createFakeClock } from '../../testing/src/index.ts';
import type { NewMessage } from '../../../src/library/troupe.ts';
import { person } from './sign.ts';

const [CODER, ana, ben, eve] = [person(), person(), person(), person()];
const NAMES_CODER = ['p', CODER.pubkey];
const inThread = (root: SignedEvent) => ['e', root.id, '', 'root'];

interface Stage {
  receiver: Receiver;
  sent: (NewMessage & { conversation: string })[];
  /** Threads whose beginning was requested. */
  asked: Thread[];
  receive(event: SignedEvent): Promise<unknown>;
}

/** A receiver whose log is a list. `thread`: the events that relays have of every thread. */
function openReceiver(parts: Partial<ReceiverParts> & { thread?: () => SignedEvent[] } = {}): Stage {
  const { thread = () => [], ...others } = parts;
  const sent: Stage['sent'] = [];
  const asked: Thread[] = [];
  const receiver = new Receiver({
    troupe: {
      async send(conversation, message) {
        sent.push({ conversation, ...message });
        return {} as never;
      },
    },
    keyValue: memoryKeyValue(),
    settings: { strangers: 'store', conversationPrefix: 'nostr:', limits: { answersInARow: 50 } },
    agents: new Map([[CODER.pubkey, { id: 'coder', name: 'Coder' }]]),
    people: new Set([ana.pubkey]),
    operators: new Set<string>(),
    publishedAs: async () => null,
    horizon: 0,
    clock: createFakeClock(),
    random: () => 0,
    signal: new AbortController().signal,
    onWarning: () => {},
    ...others,
  });
  const earlier = async (found: Thread) => {
    asked.push(found);
    return thread();
  };
  return {
    receiver,
    sent,
    asked,
    receive: (event) => receiver.receive(event, 'wss://relay.example', earlier),
  };
}

const words = ({ sent }: Stage) => sent.map(({ content }) => content);

test('an event of a stranger does not fetch the thread; a later event of a person fetches all of it', async () => {
  const root = ben.sign({ content: 'the plan' });
  const thread = [root, ben.sign({ content: 'a part of it', tags: [inThread(root)] })];
  const stage = openReceiver({ thread: () => thread });
  await stage.receive(eve.sign({ content: 'hi', tags: [inThread(root), NAMES_CODER] }));
  expect(words(stage)).toEqual(['hi']);
  expect(stage.asked).toEqual([]);
  await stage.receive(ana.sign({ content: 'build it', tags: [inThread(root), NAMES_CODER] }));
  await stage.receive(ana.sign({ content: 'now', tags: [inThread(root), NAMES_CODER] }));
  expect(words(stage)).toEqual(['hi', 'the plan', 'a part of it', 'build it', 'now']);
  expect(stage.asked).toHaveLength(1);
});

test('a thread begun by a person is complete as it arrives: nothing of it is requested', async () => {
  const stage = openReceiver();
  const root = ana.sign({ tags: [NAMES_CODER] });
  await stage.receive(root);
  await stage.receive(ana.sign({ content: 'again', tags: [inThread(root), NAMES_CODER] }));
  expect(stage.asked).toEqual([]);
});

test('the beginning of a thread is requested once, by whichever process', async () => {
  const keyValue = memoryKeyValue();
  const root = ben.sign({});
  const [first, second] = [openReceiver({ keyValue }), openReceiver({ keyValue })];
  await first.receive(ana.sign({ content: 'one', tags: [inThread(root), NAMES_CODER] }));
  await second.receive(ana.sign({ content: 'two', tags: [inThread(root), NAMES_CODER] }));
  expect([first.asked.length, second.asked.length]).toEqual([1, 0]);
});

test('a process that stops while it stores the beginning of a thread leaves all of it to the next', async () => {
  const keyValue = memoryKeyValue();
  const root = ben.sign({ content: 'the plan' });
  const thread = [root, ben.sign({ content: 'a part of it', tags: [inThread(root)] })];
  const mention = ana.sign({ content: 'build it', tags: [inThread(root), NAMES_CODER] });
  const stopping = new AbortController();
  const sent: string[] = [];
  const first = openReceiver({
    keyValue,
    signal: stopping.signal,
    thread: () => thread,
    troupe: {
      async send(_conversation, { content }) {
        if (sent.length === 1) stopping.abort();
        if (stopping.signal.aborted) throw new TroupeError('shutting_down', 'closed');
        sent.push(String(content));
        return {} as never;
      },
    },
  });
  expect(await first.receive(mention)).toBeNull();
  expect(sent).toEqual(['the plan']);
  const second = openReceiver({ keyValue, thread: () => thread });
  await second.receive(mention);
  expect(words(second)).toContain('a part of it');
  expect(words(second).at(-1)).toBe('build it');
});

test('a search that a stop interrupted does not count as the whole thread', async () => {
  const keyValue = memoryKeyValue();
  const root = ben.sign({ content: 'the plan' });
  const mention = ana.sign({ content: 'build it', tags: [inThread(root), NAMES_CODER] });
  const stopping = new AbortController();
  const first = openReceiver({
    keyValue,
    signal: stopping.signal,
    thread: () => {
      stopping.abort();
      return [];
    },
  });
  expect(await first.receive(mention)).toBeNull();
  const second = openReceiver({ keyValue, thread: () => [root] });
  await second.receive(mention);
  expect(words(second)).toEqual(['the plan', 'build it']);
});

test('a stored event is not stored again by a later process: if it is missing, it was deleted', async () => {
  const keyValue = memoryKeyValue();
  const event = ana.sign({ tags: [NAMES_CODER] });
  await openReceiver({ keyValue }).receive(event);
  const later = openReceiver({ keyValue });
  expect(await later.receive(event)).toBe('stored');
  expect(later.sent).toEqual([]);
});

test('an event that names none of our agents wakes no agent, even from a person', async () => {
  const stage = openReceiver();
  await stage.receive(ana.sign({ content: 'to nobody' }));
  await stage.receive(ana.sign({ content: 'to coder', tags: [NAMES_CODER] }));
  expect(stage.sent.map(({ to, untrusted }) => [to, untrusted])).toEqual([
    [[], true],
    [['coder'], undefined],
  ]);
});

test('an answer to an event of another conversation has no replyTo', async () => {
  const stage = openReceiver({
    publishedAs: async () => ({ conversation: 'nostr:elsewhere', event: 'said' }) as never,
  });
  const root = ana.sign({ content: 'root', tags: [NAMES_CODER] });
  await stage.receive(ana.sign({ tags: [inThread(root), ['e', 'f'.repeat(64), '', 'reply'], NAMES_CODER] }));
  expect(stage.sent[0]).not.toHaveProperty('replyTo');
});

test('an author who answers our agents like a machine wakes no agent after a while, until it pauses', async () => {
  const clock = createFakeClock();
  const warnings: string[] = [];
  const root = ana.sign({ tags: [NAMES_CODER] });
  const ours = CODER.sign({ content: 'an answer', tags: [inThread(root)] });
  const stage = openReceiver({
    clock,
    settings: { strangers: 'store', conversationPrefix: 'nostr:', limits: { answersInARow: 3 } },
    publishedAs: async (id) =>
      id === ours.id ? ({ conversation: `nostr:${root.id}`, event: 'said' } as never) : null,
    onWarning: (warning) => void warnings.push(String(warning)),
  });
  async function wakes(pauseMs: number, answered = ours): Promise<boolean> {
    await clock.advance(pauseMs);
    const tags = [inThread(root), ['e', answered.id, '', 'reply'], NAMES_CODER];
    const event = ana.sign({ content: `after ${clock.monotonic()}`, tags });
    await stage.receive(event);
    return stage.sent.at(-1)?.untrusted === undefined;
  }
  await stage.receive(root);
  const quick = [
    await wakes(9_000),
    await wakes(30_000),
    await wakes(60_000),
    await wakes(5),
    await wakes(7),
  ];
  expect(quick).toEqual([true, true, true, false, false]);
  expect(warnings).toEqual([expect.stringContaining('have answered each other 4 times')]);
  expect(await wakes(60_001)).toBe(true);
  expect([await wakes(9), await wakes(10), await wakes(11)]).toEqual([true, true, false]);
  expect(await wakes(12, root)).toBe(true);
  expect(await wakes(13)).toBe(true);
});

test('the tag of a session counts for operators; of anybody else it is passed on as refused', async () => {
  const tagged = (by: typeof ana, id: string, names = [NAMES_CODER]) =>
    by.sign({ content: id, tags: [...names, ['claude-session', id]] });
  const stage = openReceiver({ operators: new Set([ana.pubkey]), people: new Set([ana.pubkey, ben.pubkey]) });
  await stage.receive(tagged(ana, 'f00d-1'));
  await stage.receive(tagged(ben, 'f00d-2'));
  await stage.receive(tagged(eve, 'f00d-3'));
  await stage.receive(tagged(ana, '--resume'));
  await stage.receive(tagged(ana, 'f00d-4', []));
  const session = { agent: 'coder', provider: 'claude-code' };
  expect(stage.sent.map((each) => [each['content'], each['session']])).toEqual([
    ['f00d-1', { ...session, id: 'f00d-1' }],
    ['f00d-2', { ...session, id: 'f00d-2', refused: 'author' }],
    ['f00d-3', undefined],
    ['--resume', undefined],
    ['f00d-4', undefined],
  ]);
});

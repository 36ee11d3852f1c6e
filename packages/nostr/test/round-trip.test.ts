import { expect, test } from 'vitest';
import type { AgentInput } from '../../../src/library/config/agent-input.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { Event } from '../../../src/events/index.ts';
import type { SignedEvent } from '../src/nostr-event.ts';
import { type Nostr, openNostr } from '../src/open-nostr.ts';
import { RelayLink } from '../src/relay-link.ts';
import { type NostrInput, NostrSettings } from '../src/settings.ts';
import { memoryKeyValue } from '../../../src/base/key-value.ts';
import { createTroupe } from '../../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../../src/library/troupe.ts';
import { agent, ANA, KEYS, QUICK, SOURCES } from './outbound-stage.ts';
import { startRelay } from './relay.ts';
import type { TestRelay } from './relay-process.ts';
import { problemOf } from './verify-alone.ts';

interface World extends AsyncDisposable {
  troupe: Troupe;
  nostr: Nostr;
  ada: string;
  bob: string;
  /** Events that a subscriber of the relay gets, in order of arrival. */
  heard: SignedEvent[];
  publish(event: SignedEvent): Promise<void>;
  log(root: SignedEvent): Promise<Event[]>;
}

async function openWorld(
  relay: TestRelay,
  {
    agents,
    authenticated = false,
    ...settings
  }: Partial<NostrInput> & { agents?: AgentInput[]; authenticated?: boolean } = {},
): Promise<World> {
  const troupe = await createTroupe({
    agents: agents ?? [agent('ada', 'ada says {{n}}'), agent('bob', 'bob says {{n}}')],
  });
  const base = { clock: systemClock, random: Math.random, onWarning: () => {}, timing: QUICK };
  const nostr = await openNostr({
    ...base,
    troupe,
    settings: NostrSettings.parse({ relays: [relay.url], people: [ANA.pubkey], keys: SOURCES, ...settings }),
    agents: troupe.agents,
    keyValue: memoryKeyValue(),
    env: KEYS,
    owner: 'process-1',
  });
  const { ada = '', bob = '' } = nostr.status().agents;
  const authenticate = async (challenge: string, url: string) =>
    ANA.sign({
      kind: 22_242,
      tags: [
        ['relay', url],
        ['challenge', challenge],
      ],
    });
  const reader = new RelayLink(relay.url, { ...base, ...(authenticated && { authenticate }) });
  const heard: SignedEvent[] = [];
  reader.follow(() => [{ authors: [ada, bob].filter(Boolean) }], {
    event: (raw) => void heard.push(raw as SignedEvent),
    caughtUp: () => {},
  });
  return {
    troupe,
    nostr,
    ada,
    bob,
    heard,
    async publish(event) {
      expect(await reader.publish(event)).toMatchObject({ accepted: true });
    },
    async log(root) {
      return (await troupe.events(`nostr:${root.id}`)).events;
    },
    async [Symbol.asyncDispose]() {
      await reader.close();
      await nostr.close();
      await troupe.close();
    },
  };
}

test("a person's event gets a signed answer, and a reply to that continues the same conversation", async () => {
  await using relay = await startRelay();
  await using world = await openWorld(relay);
  const { ada, heard } = world;
  const root = ANA.sign({ content: 'Hello, Ada', tags: [['p', ada]] });
  await world.publish(root);
  await expect.poll(() => heard.length).toBe(1);
  const [answer] = heard as [SignedEvent];
  expect(problemOf(answer)).toBeNull();
  expect(answer).toMatchObject({ kind: 1, pubkey: ada, content: 'ada says 1' });
  const hint = `${relay.url}/`;
  expect(answer.tags).toEqual([
    ['e', root.id, hint, 'root', ANA.pubkey],
    ['p', ANA.pubkey],
  ]);
  const again = ANA.sign({
    content: 'And then?',
    tags: [
      ['e', root.id, '', 'root'],
      ['e', answer.id, '', 'reply'],
      ['p', ada],
    ],
  });
  await world.publish(again);
  await expect.poll(() => heard.length).toBe(2);
  expect(problemOf(heard[1])).toBeNull();
  expect(heard[1]?.tags).toEqual([
    ['e', root.id, hint, 'root', ANA.pubkey],
    ['e', again.id, hint, 'reply', ANA.pubkey],
    ['p', ANA.pubkey],
  ]);
  const messages = (await world.log(root)).filter(({ kind }) => kind === 'message');
  expect(messages.map(({ author }) => author.id)).toEqual([ANA.pubkey, 'ada', ANA.pubkey, 'ada']);
  expect(messages.map(({ id }) => id)).toEqual([root.id, messages[1]?.id, again.id, messages[3]?.id]);
  expect(messages[2]?.replyTo).toBe(messages[1]?.id);
  expect((await world.troupe.conversations()).map(({ id }) => id)).toEqual([`nostr:${root.id}`]);
  expect(world.nostr.status().relays).toMatchObject([{ state: 'open', outbox: { published: 2, behind: 0 } }]);
});

test('two agents answer one event, and do not answer each other forever', async () => {
  await using relay = await startRelay();
  await using world = await openWorld(relay);
  const { ada, bob, heard } = world;
  await world.publish(
    ANA.sign({
      tags: [
        ['p', ada],
        ['p', bob],
        ['p', ada],
      ],
    }),
  );
  await expect.poll(() => heard.length).toBe(2);
  await world.nostr.idle();
  await world.troupe.idle();
  expect(new Set(heard.map(({ pubkey }) => pubkey))).toEqual(new Set([ada, bob]));
  for (const { tags } of heard) {
    expect(tags.filter(([name]) => name === 'p')).toEqual([['p', ANA.pubkey]]);
  }
  expect((await relay.seen('EVENT')).length).toBe(3);
});

test('a thread is answered by comments, and a comment by a comment on it', async () => {
  await using relay = await startRelay();
  await using world = await openWorld(relay);
  const { bob, heard } = world;
  const thread = ANA.sign({ kind: 11, content: 'A thread', tags: [['p', bob]] });
  await world.publish(thread);
  await expect.poll(() => heard.length).toBe(1);
  const hint = `${relay.url}/`;
  const scope = [
    ['E', thread.id, hint, ANA.pubkey],
    ['K', '11'],
    ['P', ANA.pubkey],
  ];
  expect(heard[0]).toMatchObject({
    kind: 1111,
    tags: [...scope, ['e', thread.id, hint, ANA.pubkey], ['k', '11'], ['p', ANA.pubkey]],
  });
  const comment = ANA.sign({
    kind: 1111,
    tags: [...scope, ['e', heard[0]?.id ?? ''], ['k', '1111'], ['p', bob]],
  });
  await world.publish(comment);
  await expect.poll(() => heard.length).toBe(2);
  expect(problemOf(heard[1])).toBeNull();
  expect(heard[1]?.tags).toEqual([
    ...scope,
    ['e', comment.id, hint, ANA.pubkey],
    ['k', '1111'],
    ['p', ANA.pubkey],
  ]);
  expect((await world.log(thread)).filter(({ kind }) => kind === 'message')).toHaveLength(4);
});

test('a question to people is published, and a reply to it is the answer', async () => {
  await using relay = await startRelay();
  const args = { question: 'Which colour?', choices: ['red', 'blue'] };
  const rules = [
    { when: { contains: 'hello' }, reply: '', calls: [{ name: 'ask', args }] },
    { reply: 'done' },
  ];
  const ada: AgentInput = {
    id: 'ada',
    name: 'ada',
    provider: 'scripted',
    model: 'test',
    tools: ['ask'],
    script: { rules },
  };
  await using world = await openWorld(relay, { agents: [ada], keys: { ada: { env: 'ADA_KEY' } } });
  const root = ANA.sign({ tags: [['p', world.ada]] });
  await world.publish(root);
  await expect
    .poll(() => world.heard.map(({ content }) => content))
    .toContain('Which colour?\n- red\n- blue');
  const question = world.heard.find(({ content }) => content.startsWith('Which'));
  await world.publish(
    ANA.sign({
      content: 'Blue',
      tags: [
        ['e', root.id, '', 'root'],
        ['e', question?.id ?? '', '', 'reply'],
        ['p', world.ada],
      ],
    }),
  );
  await expect
    .poll(async () => (await world.log(root)).find(({ kind }) => kind === 'question.answered')?.body)
    .toMatchObject({ outcome: 'answered', content: 'blue' });
});

test('a relay that requires a login gets one, and is published to', async () => {
  await using relay = await startRelay({ auth: true });
  await using world = await openWorld(relay, { authenticated: true });
  await world.publish(ANA.sign({ tags: [['p', world.ada]] }));
  await expect.poll(() => world.heard.length).toBe(1);
  const [auth] = (await relay.seen('AUTH')).map(([, event]) => event as SignedEvent);
  expect(auth?.kind).toBe(22_242);
  expect((await relay.seen('AUTH')).some(([, event]) => (event as SignedEvent).pubkey === world.ada)).toBe(
    true,
  );
});

test('it does not start if no agent has a key', async () => {
  await using troupe = await createTroupe({ agents: [agent('ada', 'x')] });
  const parts = { clock: systemClock, random: Math.random, onWarning: () => {}, env: {}, owner: 'p' };
  const settings = NostrSettings.parse({ relays: ['ws://127.0.0.1:1'] });
  await expect(
    openNostr({ ...parts, troupe, settings, agents: troupe.agents, keyValue: memoryKeyValue() }),
  ).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringMatching(/nostr keys create/) });
});

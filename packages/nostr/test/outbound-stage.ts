import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { AgentInput } from '../../../src/library/config/agent-input.ts';
import type { Event, EventId } from '../../../src/events/index.ts';
import { type AgentSigners, type KeySource, signersFor } from '../src/agent-signers.ts';
import { createAgentKeys } from '../src/agent-keys.ts';
import type { SignedEvent } from '../src/nostr-event.ts';
import { openOutbox, type Outbox } from '../src/outbox.ts';
import { savePlace, placeOf } from '../src/published.ts';
import { createPublished, type Published } from '../src/published.ts';
import { createPublisher } from '../src/outbox.ts';
import { RelayLink, type RelayLinkOptions } from '../src/relay-link.ts';
import { memoryKeyValue, type KeyValue } from '../../../src/base/key-value.ts';
import { createTroupe } from '../../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../../src/library/troupe.ts';
import type { TestRelay } from './relay-process.ts';
import { person } from './sign.ts';

/** Environment variables with agents' keys. */
export const KEYS = { ADA_KEY: '01'.repeat(32), BOB_KEY: '02'.repeat(32) };
export const SOURCES: Record<string, KeySource> = { ada: { env: 'ADA_KEY' }, bob: { env: 'BOB_KEY' } };
export const QUICK = { retryMs: { first: 20, most: 200 } };
export const ANA = person();

export function agent(id: string, reply: string): AgentInput {
  return { id, name: id, provider: 'scripted', model: 'test', script: { rules: [{ reply }] } };
}

export interface OutboundStage extends AsyncDisposable {
  troupe: Troupe;
  keyValue: KeyValue;
  published: Published;
  pubkeys: ReadonlyMap<string, string>;
  links: readonly RelayLink[];
  outboxes: readonly Outbox[];
  warnings: string[];
  /** Sends a person's event as the gateway does, without a relay. Resolves when it is answered. */
  ask(event: SignedEvent, to: string[]): Promise<void>;
  /** Agents' events in the conversation of an event. */
  said(event: SignedEvent): Promise<Event[]>;
  /** Stops the publishing process and starts another, with these entries. */
  restart(keyValue?: KeyValue): Promise<void>;
}

/** Outboxes over real relays, without the inbound half. */
export async function openOutbound(
  relays: readonly Pick<TestRelay, 'url'>[],
  {
    clock = systemClock,
    keyValue: first = memoryKeyValue(),
    timing = QUICK,
    ada = 'ada says {{n}}',
  }: { clock?: Clock; keyValue?: KeyValue; timing?: RelayLinkOptions['timing']; ada?: string } = {},
): Promise<OutboundStage> {
  const troupe = await createTroupe({
    agents: [agent('ada', ada), agent('bob', 'bob says {{n}}')],
  });
  const warnings: string[] = [];
  const onWarning = (error: unknown) => void warnings.push(String(error));
  let keyValue = first;
  let signers: AgentSigners | null = null;
  let links: RelayLink[] = [];
  let outboxes: Outbox[] = [];
  let starts = 0;

  async function open(): Promise<void> {
    starts += 1;
    signers = await signersFor({
      agents: troupe.agents,
      sources: SOURCES,
      keys: createAgentKeys({ keyValue, clock, env: {} }),
      env: KEYS,
      clock,
    });
    const publisher = createPublisher({
      log: troupe,
      keyValue,
      published: createPublished(keyValue),
      signers,
      prefix: 'nostr:',
      relay: relays[0]?.url ?? '',
    });
    const base = { clock, random: Math.random, onWarning };
    links = relays.map(({ url }) => new RelayLink(url, { ...base, timing }));
    outboxes = await Promise.all(
      links.map((link) =>
        openOutbox({ ...base, troupe, keyValue, owner: `process-${starts}`, link, publisher }),
      ),
    );
  }

  async function close(): Promise<void> {
    await Promise.all(outboxes.map((each) => each.close()));
    await Promise.all(links.map((each) => each.close()));
    await signers?.close();
  }

  await open();
  return {
    troupe,
    get keyValue() {
      return keyValue;
    },
    get published() {
      return createPublished(keyValue);
    },
    get pubkeys() {
      return signers?.pubkeys ?? new Map();
    },
    get links() {
      return links;
    },
    get outboxes() {
      return outboxes;
    },
    warnings,
    async ask(event, to) {
      const root = event.tags.find((tag) => tag[3] === 'root')?.[1] ?? event.id;
      await savePlace(keyValue, placeOf(event, relays[0]?.url ?? ''));
      await troupe.send(`nostr:${root}`, {
        id: event.id as EventId,
        author: { kind: 'user', id: event.pubkey, name: 'Ana' },
        to,
        content: event.content,
      });
      await troupe.idle();
    },
    async said({ id }) {
      const { events } = await troupe.events(`nostr:${id}`);
      return events.filter(({ kind, author }) => kind === 'message' && author.kind === 'agent');
    },
    async restart(others = keyValue) {
      await close();
      keyValue = others;
      await open();
    },
    async [Symbol.asyncDispose]() {
      await close();
      await troupe.close();
    },
  };
}

/** Events of these authors that were sent to a relay, in order of sending, each as often as it was sent. */
export async function sentTo(relay: TestRelay): Promise<SignedEvent[]> {
  return (await relay.seen('EVENT')).map(([, event]) => event as SignedEvent);
}

import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { Event, EventId, EventOf } from '../../../src/events/index.ts';
import { TroupeError } from '../../../src/base/errors.ts';
import { type Inbound, openInbound } from '../src/open-nostr.ts';
import type { Authenticate } from '../src/relay-link.ts';
import { RelayLink, type RelayLinkOptions } from '../src/relay-link.ts';
import { type NostrInput, NostrSettings } from '../src/settings.ts';
import { memoryKeyValue, type KeyValue } from '../../../src/base/key-value.ts';
import type { Troupe } from '../../../src/library/troupe.ts';
import type { AgentInput } from '../../../src/library/config/agent-input.ts';
import { createTroupe } from '../../../src/library/runtime/create-troupe.ts';
import { type Person, person } from './sign.ts';

export interface Stage extends AsyncDisposable {
  troupe: Troupe;
  inbound: Inbound;
  links: readonly RelayLink[];
  keyValue: KeyValue;
  warnings: string[];
  /** All events of a conversation; [] if there is none. */
  log(conversation: string): Promise<Event[]>;
  /** Messages of people in a conversation. */
  heard(conversation: string): Promise<EventOf<'message'>[]>;
  /** Ids of all messages of people in all conversations. */
  stored(): Promise<string[]>;
  /** The outcome of each stored message of a person, by its id. */
  outcomes(): Promise<Map<string, Outcome>>;
  /** Stops the gateway; the troupe stays. */
  leave(): Promise<void>;
  /** Starts the gateway again. */
  come(): Promise<void>;
}

export interface Outcome {
  to: readonly string[];
  /** How often it is in a log. */
  times: number;
  /** Agents that have finished a turn with it as an input. */
  done: string[];
}

export interface StageOptions extends Partial<Omit<NostrInput, 'relays'>> {
  relays: readonly { url: string }[];
  authenticate?: Authenticate;
  published?: Record<string, { conversation: string; event: string }>;
  link?: Partial<RelayLinkOptions>;
  keyValue?: KeyValue;
  wrap?: (troupe: Troupe) => Pick<Troupe, 'send' | 'events' | 'agents'>;
  claimMs?: number;
  clock?: Clock;
}

export const CODER: Person = person();
export const TESTER: Person = person();

function scripted(id: string, reply: string): AgentInput {
  return { id, name: id, provider: 'scripted', model: 'test', script: { rules: [{ reply }] } };
}

const QUICK = { retryMs: { first: 20, most: 200 } };

/** A troupe of two scripted agents with pubkeys, behind relays. */
export async function openStage({
  relays,
  authenticate,
  published = {},
  link: linkOptions,
  keyValue = memoryKeyValue(),
  wrap = (troupe) => troupe,
  claimMs = 300,
  clock = systemClock,
  ...settings
}: StageOptions): Promise<Stage> {
  const troupe = await createTroupe(
    {
      agents: [
        { ...scripted('coder', 'done'), pubkey: CODER.pubkey },
        { ...scripted('tester', 'tested'), pubkey: TESTER.pubkey },
      ],
    },
    { onWarning: () => {} },
  );
  const warnings: string[] = [];
  const onWarning = (error: unknown) => void warnings.push(String(error));
  let links: RelayLink[] = [];
  let inbound: Inbound | null = null;
  let opened = 0;

  async function come(): Promise<void> {
    links = relays.map(
      ({ url }) =>
        new RelayLink(url, {
          clock,
          random: Math.random,
          onWarning,
          authenticate,
          maxEventBytes: settings.limits?.maxEventBytes,
          timing: QUICK,
          ...linkOptions,
        }),
    );
    opened += 1;
    inbound = await openInbound({
      troupe: wrap(troupe),
      settings: NostrSettings.parse({ ...settings, relays: relays.map(({ url }) => url) }),
      keyValue,
      clock,
      random: Math.random,
      owner: `gateway-${opened}`,
      onWarning,
      links,
      publishedAs: async (id) => (published[id] ?? null) as { conversation: never; event: EventId } | null,
      claimMs,
    });
  }

  async function leave(): Promise<void> {
    await inbound?.close();
    await Promise.all(links.map((link) => link.close()));
  }

  async function log(conversation: string): Promise<Event[]> {
    const events: Event[] = [];
    for (;;) {
      const page = await troupe
        .events(conversation, { after: events.at(-1)?.seq ?? 0 })
        .catch((error: unknown) => {
          if (error instanceof TroupeError && error.code === 'conversation_unknown') return { events: [] };
          throw error;
        });
      if (page.events.length === 0) return events;
      events.push(...page.events);
    }
  }

  const heard = async (conversation: string) =>
    (await log(conversation)).filter(
      (event): event is EventOf<'message'> => event.kind === 'message' && event.author.kind === 'user',
    );

  await come();
  return {
    troupe,
    get inbound() {
      if (!inbound) throw new Error('the gateway is away');
      return inbound;
    },
    get links() {
      return links;
    },
    keyValue,
    warnings,
    log,
    heard,
    async stored() {
      const all = await troupe.conversations(100_000);
      const ids: string[] = [];
      for (const { id } of all) ids.push(...(await heard(id)).map((event) => event.id as string));
      return ids;
    },
    async outcomes() {
      const outcomes = new Map<string, Outcome>();
      for (const { id: conversation } of await troupe.conversations(100_000)) {
        const bySeq = new Map<number, Outcome>();
        for (const event of await log(conversation)) {
          if (event.kind === 'message' && event.author.kind === 'user') {
            const outcome = outcomes.get(event.id) ?? { to: event.to, times: 0, done: [] };
            outcome.times += 1;
            outcomes.set(event.id, outcome);
            bySeq.set(event.seq, outcome);
          }
          if (event.kind !== 'turn.done') continue;
          for (const seq of event.body.covers) bySeq.get(seq)?.done.push(event.author.id);
        }
      }
      return outcomes;
    },
    leave,
    come,
    async [Symbol.asyncDispose]() {
      await leave();
      await troupe.close();
    },
  };
}

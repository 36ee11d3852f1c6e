import { type Clock, systemClock } from '../../src/base/clock.ts';
import { Intake, Receiver } from '../../packages/nostr/src/intake.ts';
import { openVerifier } from '../../packages/nostr/src/nostr-event.ts';
import type { Refused } from '../../packages/nostr/src/relay-faults.ts';
import { type NostrInput, NostrSettings } from '../../packages/nostr/src/settings.ts';
import { memoryKeyValue } from '../../src/base/key-value.ts';
import { type Person, person } from '../../packages/nostr/test/sign.ts';
import { type AttackStage, openStage } from './stage.ts';

export const BO: Person = person();
export const CY: Person = person();
/** A person who may wake agents. */
export const ANA: Person = person();
export const NAMES_BO = [['p', BO.pubkey]];

/** A company with pubkeys, behind an attacker's relay. */
export interface NostrStage extends AsyncDisposable {
  stage: AttackStage;
  intake: Intake;
  /** The refusals so far, in order. */
  refusals: Refused[];
  /** Delivers events as a relay does, waits until all effects are over, and returns the refusals of these events. */
  bring: (...raw: readonly unknown[]) => Promise<Refused[]>;
  /** The same troupe behind a gateway without memory of earlier events. */
  again(): NostrStage;
  /** Closes the gateway; the troupe stays. */
  close(): void;
}

const RELAY = 'ws://127.0.0.1:1';
const verify = await openVerifier();

export async function openNostrStage(
  settings: Partial<NostrInput> = {},
  clock: Clock = systemClock,
): Promise<NostrStage> {
  const stage = await openStage({
    agents: [
      { id: 'bo', pubkey: BO.pubkey },
      { id: 'cy', pubkey: CY.pubkey },
    ],
  });
  return gatewayTo(stage, settings, clock);
}

function gatewayTo(stage: AttackStage, settings: Partial<NostrInput>, clock: Clock): NostrStage {
  const closing = new AbortController();
  const refusals: Refused[] = [];
  const agents = new Map([
    [BO.pubkey, { id: 'bo', name: 'bo' }],
    [CY.pubkey, { id: 'cy', name: 'cy' }],
  ]);
  const parsed = NostrSettings.parse({
    relays: [RELAY],
    people: [ANA.pubkey],
    limits: { perAuthorPerSecond: 10_000, verificationsPerSecond: 10_000 },
    ...settings,
  });
  const receiver = new Receiver({
    troupe: stage.troupe,
    keyValue: memoryKeyValue(),
    settings: parsed,
    agents,
    people: new Set(parsed.people),
    operators: new Set<string>(),
    publishedAs: () => Promise.resolve(null),
    horizon: 0,
    clock,
    random: Math.random,
    signal: closing.signal,
    onWarning: (error) => void stage.warnings.push(String(error)),
  });
  const intake = new Intake({
    link: { url: RELAY, query: () => Promise.resolve([]), refuse: (reason) => void refusals.push(reason) },
    receiver,
    agents,
    settings: parsed,
    relays: 1,
    verify,
    mark: { begin: () => () => {} },
    handled: () => {},
    clock,
    signal: closing.signal,
  });
  return {
    stage,
    intake,
    refusals,
    async bring(...raw) {
      const before = refusals.length;
      for (const each of raw) await intake.take(each);
      await intake.idle();
      await stage.troupe.idle();
      return refusals.slice(before);
    },
    close: () => closing.abort(),
    again: () => gatewayTo(stage, settings, clock),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await stage[Symbol.asyncDispose]();
    },
  };
}

import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { SignedEvent } from '../src/nostr-event.ts';
import { RelayLink } from '../src/relay-link.ts';
import { FORGERIES } from './forge.ts';
import { CODER, openStage, type Stage, TESTER } from './inbound-stage.ts';
import { type TestRelay, startHostileRelay, startRelayProcess } from './relay-process.ts';
import { person } from './sign.ts';

export interface LoadReport {
  valid: number;
  forged: number;
  /** Events sent to more than one relay. */
  duplicates: number;
  disconnects: number;
  /** Published while the gateway was away, over an hour. */
  missed: number;
  /** Valid events in a log once, several times, never. */
  stored: number;
  storedTwice: number;
  lost: number;
  /** Forged events in a log. */
  forgedStored: number;
  /** Agents named by all valid events; of these, those with one turn for the event, and those with several. */
  named: number;
  woken: number;
  wokenTwice: number;
  rejected: Record<string, number>;
  expectedRejected: Record<string, number>;
  ms: number;
}

export interface LoadOptions {
  /** A quarter of the events are forged. */
  events: number;
  seed: number;
  report?: (line: string) => void;
}

const HOUR_MS = 3_600_000;
const AUTHORS = 60;
const CONCURRENT = 40;
const ANYTHING = 10_000;
const QUIET_MS = 60_000;

/**
 * Two real relays, one that sends forgeries, and a gateway that stops for an hour. The first part of the events is published
 * an hour ago by the gateway's clock, the second while it is stopped, the third when it is back.
 */
export async function runLoad({ events, seed, report = () => {} }: LoadOptions): Promise<LoadReport> {
  const random = randomOf(seed);
  const startedAt = performance.now();
  let behindMs = HOUR_MS;
  const clock: Clock = { ...systemClock, now: () => Date.now() - behindMs };
  await using first = await startRelayProcess();
  await using second = await startRelayProcess();
  await using hostile = await startHostileRelay();
  await using stage = await openStage({
    relays: [first, second, hostile],
    strangers: 'dispatch',
    clock,
    limits: { verificationsPerSecond: ANYTHING, perAuthorPerSecond: ANYTHING },
    // No relay is isolated, so that each forgery is checked.
    link: { faults: { liesPerMinute: 1_000_000, noisePerSecond: 1_000_000 } },
  });
  await stage.inbound.caughtUp();
  const writers = [first, second].map(
    ({ url }) =>
      new RelayLink(url, {
        clock: systemClock,
        random,
        onWarning: () => {},
        timing: { retryMs: { first: 20, most: 200 } },
      }),
  );

  const now = Math.floor(Date.now() / 1_000);
  const forgedCount = Math.floor(events / 4);
  const valid = sign(events - forgedCount, (part) => timeOf(part, now), random);
  report(`${valid.length} events are signed after ${since(startedAt)}`);
  const [live, missed, late] = [
    valid.slice(0, Math.floor(valid.length * 0.4)),
    valid.slice(Math.floor(valid.length * 0.4), Math.floor(valid.length * 0.8)),
    valid.slice(Math.floor(valid.length * 0.8)),
  ];
  // Half are forged from events that are never published, half from late events: a forgery must not keep out the event
  // whose id it has.
  const unpublished = sign(Math.ceil(forgedCount / 2), () => now - HOUR_MS / 1_000, random);
  const forged = Array.from({ length: forgedCount }, (_, n) => {
    const { forge, reason } = pick(FORGERIES, n);
    return { text: JSON.stringify(forge(pick(n < forgedCount / 2 ? unpublished : late, n))), reason };
  });
  let duplicates = 0;
  let disconnects = 0;

  async function publish(some: readonly SignedEvent[], { cut }: { cut: number }): Promise<void> {
    const copies = some.flatMap((event) => {
      const places = random() < 0.5 ? [0, 1] : [random() < 0.5 ? 0 : 1];
      duplicates += places.length - 1;
      return places.map((place) => ({ event, place }));
    });
    shuffle(copies, random);
    let at = 0;
    const cutEvery = Math.ceil(copies.length / (cut + 1));
    const worker = async () => {
      for (let next = copies[at++]; next; next = copies[at++]) {
        if (cut > 0 && at % cutEvery === 0) {
          disconnects += 1;
          await (at % 2 === 0 ? first : second).ask({ do: 'drop' });
        }
        await publishSurely(writers[next.place], next.event);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT }, worker));
  }

  try {
    const early = forged.slice(0, forgedCount / 2);
    await Promise.all([publish(live, { cut: 4 }), push(hostile, early)]);
    await until(async () => (await stage.stored()).length >= live.length);
    // The hostile relay does not repeat forgeries that the gateway has not read.
    await until(async () => sumOf(rejectedBy(stage)) >= early.length);
    report(`${live.length} live events are stored after ${since(startedAt)}`);
    await stage.leave();
    const before = rejectedBy(stage);
    await publish(missed, { cut: 0 });
    behindMs = 0;
    await stage.come();
    await stage.inbound.caughtUp();
    report(`${missed.length} missed events are stored after ${since(startedAt)}`);
    const others = forged.slice(early.length);
    await push(hostile, others);
    await until(async () => sumOf(rejectedBy(stage)) >= others.length);
    await publish(late, { cut: 4 });
    await until(async () => (await stage.stored()).length >= valid.length);
    report(`all are stored after ${since(startedAt)}`);
    await stage.troupe.idle();
    const rejected = sum(before, rejectedBy(stage));
    const expectedRejected = sum(...forged.map(({ reason }) => ({ [reason]: 1 })));
    const outcomes = await stage.outcomes();
    const known = valid.map((event) => ({ event, outcome: outcomes.get(event.id) }));
    const wakes = known.flatMap(({ event, outcome }) =>
      agentsOf(event).map((agent) => outcome?.done.filter((id) => id === agent).length ?? 0),
    );
    const validIds = new Set(valid.map(({ id }) => id));
    return {
      valid: valid.length,
      forged: forgedCount,
      duplicates,
      disconnects,
      missed: missed.length,
      stored: known.filter(({ outcome }) => outcome?.times === 1).length,
      storedTwice: known.filter(({ outcome }) => (outcome?.times ?? 0) > 1).length,
      lost: known.filter(({ outcome }) => !outcome).length,
      forgedStored: [...outcomes.keys()].filter((id) => !validIds.has(id)).length,
      named: wakes.length,
      woken: wakes.filter((times) => times === 1).length,
      wokenTwice: wakes.filter((times) => times > 1).length,
      rejected,
      expectedRejected,
      ms: performance.now() - startedAt,
    };
  } finally {
    await Promise.all(writers.map((writer) => writer.close()));
  }
}

/** Problems of a run; [] if it is good. */
export function problemsOf(report: LoadReport): string[] {
  const problems: string[] = [];
  if (report.stored !== report.valid)
    problems.push(`${report.valid - report.stored} events are not stored once`);
  if (report.lost > 0) problems.push(`${report.lost} events are lost`);
  if (report.forgedStored > 0) problems.push(`${report.forgedStored} forged events are stored`);
  if (report.woken !== report.named)
    problems.push(`${report.named - report.woken} agents were not woken once`);
  for (const [reason, count] of Object.entries(report.expectedRejected)) {
    const got = report.rejected[reason] ?? 0;
    if (got !== count) problems.push(`${got} instead of ${count} are refused for ${reason}`);
  }
  return problems;
}

function agentsOf({ tags }: SignedEvent): string[] {
  const named = tags.map(([, value]) => value);
  return [
    ...(named.includes(CODER.pubkey) ? ['coder'] : []),
    ...(named.includes(TESTER.pubkey) ? ['tester'] : []),
  ];
}

/**
 * The first two fifths are an hour old, the next two are from the hour since, the rest from the last minutes. Never hundreds
 * in one second: events of one second beyond a relay's limit cannot be requested.
 */
function timeOf(part: number, now: number): number {
  if (part < 0.4) return now - 3_900 + Math.floor(part * 750);
  return part < 0.8 ? now - Math.floor((0.8 - part) * 9_000) : now - Math.floor((1 - part) * 1_000);
}

/** Threads of about forty events. `at`: time of an event by its position, 0 to 1. */
function sign(count: number, at: (part: number) => number, random: () => number): SignedEvent[] {
  const people = Array.from({ length: AUTHORS }, () => person());
  const signed: SignedEvent[] = [];
  let roots: SignedEvent[] = [];
  for (let n = 0; n < count; n++) {
    const author = people[n % AUTHORS];
    const named = [[CODER], [TESTER], [CODER, TESTER]][Math.floor(random() * 3)] ?? [];
    const root = n % 40 === 0 ? undefined : roots[Math.floor(random() * roots.length)];
    const event = author?.sign({
      content: `${n}`,
      at: at(n / count),
      tags: [...(root ? [['e', root.id, '', 'root']] : []), ...named.map(({ pubkey }) => ['p', pubkey])],
    });
    if (!event) continue;
    if (!root) roots = [...roots.slice(-9), event];
    signed.push(event);
  }
  return signed;
}

async function publishSurely(writer: RelayLink | undefined, event: SignedEvent): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const published = await writer?.publish(event, { timeoutMs: 20_000 });
    if (published?.accepted) return;
    if (published && !published.reason.startsWith('error: ')) throw new Error(published.reason);
  }
  throw new Error(`${event.id} cannot be published`);
}

async function push(relay: TestRelay, forged: readonly { text: string }[]): Promise<void> {
  const frames = forged.map(({ text }) => `["EVENT","$sub",${text}]`);
  for (let at = 0; at < frames.length; at += 100) {
    await relay.ask({ do: 'push', frames: frames.slice(at, at + 100) });
  }
}

function rejectedBy({ links }: Stage): Record<string, number> {
  return sum(...links.map((link) => link.status().rejected as Record<string, number>));
}

function sum(...counts: Record<string, number>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const [name, count] of counts.flatMap(Object.entries<number>))
    total[name] = (total[name] ?? 0) + count;
  return total;
}

function sumOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** Resolves when the condition holds, or after a minute. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + QUIET_MS;
  while (!(await isSo()) && performance.now() < giveUpAt) await systemClock.sleep(500);
}

function since(startedAt: number): string {
  return `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
}

function pick<T>(list: readonly T[], n: number): T {
  return list[n % list.length] as T;
}

function shuffle<T>(list: T[], random: () => number): void {
  for (let n = list.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1));
    [list[n], list[other]] = [list[other] as T, list[n] as T];
  }
}

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

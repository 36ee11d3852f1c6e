import type { RedisClient } from './connect-redis.ts';
import { randomUUID } from 'node:crypto';
import type { ActorAddress, TenantId } from '../../events/index.ts';
import type { Admission, AdmissionCaps, AdmissionLoad, Entry } from '../admission.ts';
import { admissionLimits, DEFAULT_SLOT_MS, retryInMs } from '../admission-rules.ts';
import { parseSlot, parseWish, slotText, wishText } from '../refusals.ts';
import { admissionScripts } from './admission-scripts.ts';
import { createOutage } from '../outage.ts';

export interface RedisAdmissionOptions {
  /** Shared: `close` leaves it open. */
  redis: RedisClient;
  /** Prefix of all keys of one troupe. */
  prefix: string;
  caps: AdmissionCaps;
  onWarning: (error: unknown, where: string) => void;
  /** Called with the error of each failed command. */
  onFailed?: (error: unknown) => void;
  slotMs?: number;
  /** Redis counts as unavailable after this long without an answer. */
  answerMs?: number;
  /** 0 <= n < 1. */
  random?: () => number;
}

/** The sets that hold a slot: its tenant's, its provider's, or both. */
interface HeldSlot {
  id: string;
  keys: readonly string[];
}

/**
 * Admission over Redis, one script per question.
 *  A1  `held` has the slots of this process that were not left. All are renewed every third of `slotMs`. Renewing adds
 *      missing ones, so slots granted while Redis was unavailable, or lost with its data, count again.
 *  A2  A script may run after its slot was left, when Redis is slow or had to be sent the text first. Therefore whatever
 *      adds a slot checks afterwards whether it is still held, and removes it if not.
 *  A3  Nothing waits longer than `answerMs`, and nothing waits at all without a connection.
 */
export function createRedisAdmission(options: RedisAdmissionOptions): Admission {
  const { redis, prefix, slotMs = DEFAULT_SLOT_MS, random = Math.random } = options;
  const limits = admissionLimits(options.caps);
  const scripts = admissionScripts();
  const ask = createAsk(options);
  const held = new Map<string, HeldSlot>();
  let renewing = false;
  let timer: NodeJS.Timeout | null = null;
  const refused = ['since', 'until'].map((time) => `{${prefix}}:refused:${time}`);

  async function enter(address: ActorAddress, provider: string): Promise<Entry> {
    const { tenantCap } = limits;
    const providerCap = limits.providerCap(provider);
    const tenantKey = `{${prefix}}:slots:tenant:${address.tenant}`;
    const providerKey = `{${prefix}}:slots:provider:${provider}`;
    const keys = [...(tenantCap === null ? [] : [tenantKey]), ...(providerCap === null ? [] : [providerKey])];
    if (keys.length === 0) return { kind: 'admitted', leave: async () => {} };
    const slot: HeldSlot = { id: slotText({ address, provider }, randomUUID()), keys };
    const places = [tenantKey, providerKey, `{${prefix}}:asking:${provider}`, ...refused];
    const asked = [tenantCap ?? 0, providerCap ?? 0, wishText({ address, provider, for: 'slot' })];
    const answer = await ask(
      () => scripts.enter.run(redis, places, [address.tenant, slot.id, slotMs, ...asked]),
      () => void removeLeft([slot]),
    );
    if (answer === 0) return { kind: 'full', retryInMs: retryInMs(random) };
    held.set(slot.id, slot);
    timer ??= setInterval(() => void renew(), slotMs / 3).unref();
    return { kind: 'admitted', leave: () => leave([slot]) };
  }

  async function renew(): Promise<void> {
    if (renewing || held.size === 0) return;
    renewing = true;
    const slots = [...held.values()];
    const places = slots.flatMap(({ id, keys }) => keys.map((key) => ({ id, key })));
    const keys = places.map(({ key }) => key);
    const ids = places.map(({ id }) => id);
    await ask(
      () => scripts.renew.run(redis, keys, [slotMs, ...ids]),
      () => void removeLeft(slots),
    );
    await removeLeft(slots);
    renewing = false;
  }

  async function leave(slots: readonly HeldSlot[]): Promise<void> {
    await removeLeft(slots.filter(({ id }) => held.delete(id)));
  }

  /** Removes the slots that are no longer held. A slot that cannot be removed now lapses. */
  async function removeLeft(slots: readonly HeldSlot[]): Promise<void> {
    const left = slots.filter(({ id }) => !held.has(id));
    if (left.length === 0) return;
    await ask(async () => {
      const removals = redis.pipeline();
      for (const { id, keys } of left) for (const key of keys) removals.zrem(key, id);
      const failed = (await removals.exec())?.find(([error]) => error);
      if (failed?.[0]) throw failed[0];
    });
  }

  async function takeCall(address: ActorAddress, provider: string): Promise<number> {
    const rate = limits.callRate(provider);
    if (!rate) return 0;
    const keys = [`{${prefix}}:calls:${provider}`, ...refused];
    const asked = [rate.callsPerMinute, rate.burst, wishText({ address, provider, for: 'call' })];
    const waitMs = await ask(() => scripts.takeCall.run(redis, keys, asked));
    return typeof waitMs === 'number' ? waitMs : 0;
  }

  async function close(): Promise<void> {
    if (timer) clearInterval(timer);
    await leave([...held.values()]);
  }

  const load = (tenant: TenantId) =>
    readLoad(options, tenant, (sets) => ask(() => scripts.load.run(redis, [...refused, ...sets], [])));
  return { enter, takeCall, load, close };
}

async function readLoad(
  { caps, prefix }: Pick<RedisAdmissionOptions, 'caps' | 'prefix'>,
  tenant: TenantId,
  read: (slotSets: string[]) => Promise<unknown>,
): Promise<AdmissionLoad> {
  const capped = Object.entries(caps.providers ?? {});
  const names = [
    ...(caps.turnsPerTenant === undefined ? [] : [`tenant:${tenant}`]),
    ...capped.filter(([, { turns }]) => turns !== undefined).map(([name]) => `provider:${name}`),
  ];
  // Without caps nobody is refused (C4).
  if (names.length === 0 && capped.length === 0) return { caps, held: [], waiting: [] };
  return { caps, ...loadOf(await read(names.map((name) => `{${prefix}}:slots:${name}`))) };
}

/** Reads the answer of the script. */
function loadOf(answer: unknown): Pick<AdmissionLoad, 'held' | 'waiting'> {
  const [wishes, slots] = (answer ?? [[], []]) as [string[], string[]];
  const waiting = wishes.flatMap((text, index) => {
    const wish = index % 2 === 0 ? parseWish(text) : null;
    return wish ? [{ ...wish, since: Number(wishes[index + 1]) }] : [];
  });
  return { held: [...new Set(slots)].flatMap((slot) => parseSlot(slot) ?? []), waiting };
}

type Ask = <T>(question: () => Promise<T>, late?: () => void) => Promise<T | null>;

/** Asks Redis within `answerMs`. Null if Redis is unavailable; after an answer that comes too late, `late` is called. */
function createAsk({ redis, answerMs = 1_000, onWarning, onFailed = () => {} }: RedisAdmissionOptions): Ask {
  const outage = createOutage(onWarning, {
    where: 'admission',
    away: 'Redis is unavailable: turns and model calls are admitted without regard to caps until it is back',
    back: 'Redis is back: caps hold again',
  });
  return async (question, late = () => {}) => {
    try {
      if (redis.status !== 'ready') throw new Error(`connection is ${redis.status}`);
      const asked = question();
      const answer = await withinMs(answerMs, asked);
      if (answer === LATE) {
        void asked.then(late, () => {});
        throw new Error(`no answer for ${answerMs} ms`);
      }
      outage.end('Redis');
      return answer;
    } catch (error) {
      onFailed(error);
      outage.begin('Redis', error);
      return null;
    }
  };
}

const LATE = Symbol('late');

async function withinMs<T>(ms: number, answer: Promise<T>): Promise<T | typeof LATE> {
  const late = Promise.withResolvers<typeof LATE>();
  const timer = setTimeout(() => late.resolve(LATE), ms);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

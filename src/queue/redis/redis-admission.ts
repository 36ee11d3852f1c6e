import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { ActorAddress, TenantId } from '../../events/index.ts';
import type { Admission, AdmissionCaps, Entry } from '../admission.ts';
import { admissionLimits, DEFAULT_SLOT_MS, retryInMs } from '../admission-rules.ts';
import { admissionScripts } from './admission-scripts.ts';
import { createOutage } from './outage.ts';

export interface RedisAdmissionOptions {
  /** Shared: `close` leaves it open. */
  redis: Redis;
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

  async function enter({ tenant }: ActorAddress, provider: string): Promise<Entry> {
    const { tenantCap } = limits;
    const providerCap = limits.providerCap(provider);
    const tenantKey = `{${prefix}}:slots:tenant:${tenant}`;
    const providerKey = `{${prefix}}:slots:provider:${provider}`;
    const keys = [...(tenantCap === null ? [] : [tenantKey]), ...(providerCap === null ? [] : [providerKey])];
    if (keys.length === 0) return { kind: 'admitted', leave: async () => {} };
    const slot: HeldSlot = { id: `${tenant}/${randomUUID()}`, keys };
    const places = [tenantKey, providerKey, `{${prefix}}:asking:${provider}`];
    const caps = [tenantCap ?? 0, providerCap ?? 0];
    const answer = await ask(
      () => scripts.enter.run(redis, places, [tenant, slot.id, slotMs, ...caps]),
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

  async function takeCall(_tenant: TenantId, provider: string): Promise<number> {
    const rate = limits.callRate(provider);
    if (!rate) return 0;
    const keys = [`{${prefix}}:calls:${provider}`];
    const waitMs = await ask(() => scripts.takeCall.run(redis, keys, [rate.callsPerMinute, rate.burst]));
    return typeof waitMs === 'number' ? waitMs : 0;
  }

  async function close(): Promise<void> {
    if (timer) clearInterval(timer);
    await leave([...held.values()]);
  }

  return { enter, takeCall, close };
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

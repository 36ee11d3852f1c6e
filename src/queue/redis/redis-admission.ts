import type { RedisClient } from './connect-redis.ts';
import { randomUUID } from 'node:crypto';
import type { ActorAddress, TenantId } from '../../events/index.ts';
import type { Admission, AdmissionCaps, AdmissionLoad, Entry } from '../admission.ts';
import { admissionLimits, DEFAULT_SLOT_MS, retryInMs } from '../admission-rules.ts';
import { parseSlot, parseWish, slotText, wishText } from '../refusals.ts';
import { admissionScripts } from './admission-scripts.ts';
import { createAskServer } from '../ask-server.ts';
import { createHeldSlots } from '../held-slots.ts';

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

/**
 * Admission over Redis, one script per question. `queue/held-slots.ts` keeps what was granted. Nothing waits longer than `answerMs`,
 * and nothing waits at all without a connection.
 */
export function createRedisAdmission(options: RedisAdmissionOptions): Admission {
  const { redis, prefix, slotMs = DEFAULT_SLOT_MS, random = Math.random } = options;
  const limits = admissionLimits(options.caps);
  const scripts = admissionScripts();
  const ask = createAskServer({
    ...options,
    server: 'Redis',
    whyNot: () => (redis.status === 'ready' ? null : `connection is ${redis.status}`),
  });
  const slots = createHeldSlots({
    places: {
      hold: (places, ms) =>
        scripts.renew.run(
          redis,
          places.map(({ scope }) => scope),
          [ms, ...places.map(({ member }) => member)],
        ),
      async remove(places) {
        const removals = redis.pipeline();
        for (const { scope, member } of places) removals.zrem(scope, member);
        const failed = (await removals.exec())?.find(([error]) => error);
        if (failed?.[0]) throw failed[0];
      },
    },
    ask,
    slotMs,
  });
  const refused = ['since', 'until'].map((time) => `{${prefix}}:refused:${time}`);

  async function enter(address: ActorAddress, provider: string): Promise<Entry> {
    const { tenantCap } = limits;
    const providerCap = limits.providerCap(provider);
    const tenantKey = `{${prefix}}:slots:tenant:${address.tenant}`;
    const providerKey = `{${prefix}}:slots:provider:${provider}`;
    const keys = [...(tenantCap === null ? [] : [tenantKey]), ...(providerCap === null ? [] : [providerKey])];
    if (keys.length === 0) return { kind: 'admitted', leave: async () => {} };
    const slot = slotText({ address, provider }, randomUUID());
    const places = [tenantKey, providerKey, `{${prefix}}:asking:${provider}`, ...refused];
    const asked = [tenantCap ?? 0, providerCap ?? 0, wishText({ address, provider, for: 'slot' })];
    const answer = await ask(
      () => scripts.enter.run(redis, places, [address.tenant, slot, slotMs, ...asked]),
      () => void slots.removeLeft(slot, keys),
    );
    if (answer === 0) return { kind: 'full', retryInMs: retryInMs(random) };
    return { kind: 'admitted', leave: slots.hold(slot, keys) };
  }

  async function takeCall(address: ActorAddress, provider: string): Promise<number> {
    const rate = limits.callRate(provider);
    if (!rate) return 0;
    const keys = [`{${prefix}}:calls:${provider}`, ...refused];
    const asked = [rate.callsPerMinute, rate.burst, wishText({ address, provider, for: 'call' })];
    const waitMs = await ask(() => scripts.takeCall.run(redis, keys, asked));
    return typeof waitMs === 'number' ? waitMs : 0;
  }

  const load = (tenant: TenantId) =>
    readLoad(options, tenant, (sets) => ask(() => scripts.load.run(redis, [...refused, ...sets], [])));
  return { enter, takeCall, load, close: () => slots.close() };
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

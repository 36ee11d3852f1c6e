import { type RedisClient, type LuaScript, luaScript } from './connect-redis.ts';
import { randomUUID } from 'node:crypto';
import type { ActorAddress, TenantId } from '../../events/index.ts';
import {
  type Admission,
  type AdmissionCaps,
  type AdmissionLoad,
  type Entry,
  FORGOTTEN_MS,
  MOST_REFUSED,
} from '../admission.ts';
import {
  admissionLimits,
  DEFAULT_SLOT_MS,
  retryInMs,
  ADMITTED_ASKS_MS,
  CALL,
  REFUSED_ASKS_MS,
  RETRY_TO_MS,
  parseSlot,
  parseWish,
  slotText,
  wishText,
  createHeldSlots,
} from '../admission-rules.ts';
import { createAskServer } from '../outage.ts';

interface RedisAdmissionOptions {
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
 * Admission over Redis, with one script per question. `queue/admission-rules.ts` keeps the granted slots. A call waits
 * at most `answerMs`; without a connection it does not wait.
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

function loadOf(answer: unknown): Pick<AdmissionLoad, 'held' | 'waiting'> {
  const [wishes, slots] = (answer ?? [[], []]) as [string[], string[]];
  const waiting = wishes.flatMap((text, index) => {
    const wish = index % 2 === 0 ? parseWish(text) : null;
    return wish ? [{ ...wish, since: Number(wishes[index + 1]) }] : [];
  });
  return { held: [...new Set(slots)].flatMap((slot) => parseSlot(slot) ?? []), waiting };
}

/**
 * The decisions of `admission-rules.ts` in Lua. Redis runs each script as one step, so all sets change together or not at
 * all. Held slots and asking tenants are sorted sets scored by their end; a bucket is a hash. Keys expire some time after
 * their contents, so unused ones disappear. Members that end too late, and invalid levels, are foreign and do not count.
 */
interface AdmissionScripts {
  /**
   * KEYS tenant slots, provider slots, asking, refused since, refused until. ARGV tenant, slot, slotMs, tenantCap,
   * providerCap (0: none), wish. Returns 1 or 0.
   */
  enter: LuaScript;
  /** KEYS sets. ARGV slotMs, then the slot to hold in each set. */
  renew: LuaScript;
  /** KEYS bucket, refused since, refused until. ARGV callsPerMinute, burst, wish. Returns ms to wait. */
  takeCall: LuaScript;
  /** KEYS refused since, refused until, slot sets. Returns wishes with their times, then the held slots. */
  load: LuaScript;
}

/** The clock of the server is the same for all processes. Rounded down to whole ms (L1). */
const SERVER_NOW = `(function()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end)()`;

const KEEP_MS = 60_000;

/** Requests are in two sorted sets: scored by the first refusal, and by the time after which they are dropped. */
const KEEP_WISHES_MS = 600_000;
const WISHES = `
local function forget(since, till)
  for _, wish in ipairs(redis.call('ZRANGEBYSCORE', till, '-inf', now, 'LIMIT', 0, 100)) do
    redis.call('ZREM', till, wish)
    redis.call('ZREM', since, wish)
  end
end
local function refuse(since, till, wish, retryMs)
  forget(since, till)
  local known = redis.call('ZSCORE', till, wish)
  if known and tonumber(known) <= now then redis.call('ZREM', since, wish) end
  redis.call('ZADD', since, 'NX', now, wish)
  redis.call('ZADD', till, now + retryMs + ${FORGOTTEN_MS}, wish)
  redis.call('PEXPIRE', since, ${KEEP_WISHES_MS})
  redis.call('PEXPIRE', till, ${KEEP_WISHES_MS})
end
local function grant(since, till, wish)
  redis.call('ZREM', since, wish)
  redis.call('ZREM', till, wish)
end
`;

const ENTER = `${WISHES}
local tenant, slot = ARGV[1], ARGV[2]
local slotMs, tenantCap, providerCap = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local tenantSlots, providerSlots, asking = KEYS[1], KEYS[2], KEYS[3]

local function mayHold()
  local held = redis.call('ZCARD', providerSlots)
  if held >= providerCap then return false end
  local others = {}
  for _, each in ipairs(redis.call('ZRANGE', asking, 0, -1)) do
    if each ~= tenant then others[#others + 1] = each end
  end
  if #others == 0 then return true end
  local share = math.ceil(providerCap / (#others + 1))
  local counts = {}
  for _, each in ipairs(redis.call('ZRANGE', providerSlots, 0, -1)) do
    local holder = string.match(each, '^[^/]*')
    counts[holder] = (counts[holder] or 0) + 1
  end
  if (counts[tenant] or 0) < share then return true end
  for _, each in ipairs(others) do
    if (counts[each] or 0) < share then return false end
  end
  return true
end

local function hold(key)
  redis.call('ZADD', key, now + slotMs, slot)
  redis.call('PEXPIRE', key, slotMs + ${KEEP_MS})
end

local function lapse(key, most)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('ZREMRANGEBYSCORE', key, now + most + ${KEEP_MS}, '+inf')
end

local function enter()
if tenantCap > 0 then
  lapse(tenantSlots, slotMs)
  if redis.call('ZCARD', tenantSlots) >= tenantCap then
    redis.call('ZREM', asking, tenant)
    return 0
  end
end
if providerCap > 0 then
  lapse(providerSlots, slotMs)
  lapse(asking, ${REFUSED_ASKS_MS})
  local admitted = mayHold()
  redis.call('ZADD', asking, now + (admitted and ${ADMITTED_ASKS_MS} or ${REFUSED_ASKS_MS}), tenant)
  redis.call('PEXPIRE', asking, ${REFUSED_ASKS_MS + KEEP_MS})
  if not admitted then return 0 end
  hold(providerSlots)
end
if tenantCap > 0 then hold(tenantSlots) end
return 1
end

local answer = enter()
if answer == 1 then grant(KEYS[4], KEYS[5], ARGV[6]) else refuse(KEYS[4], KEYS[5], ARGV[6], ${RETRY_TO_MS}) end
return answer
`;

const RENEW = `
local slotMs = tonumber(ARGV[1])
for index, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + slotMs, ARGV[index + 1])
  redis.call('PEXPIRE', key, slotMs + ${KEEP_MS})
end
`;

const TAKE_CALL = `${WISHES}
local rate, full = tonumber(ARGV[1]), tonumber(ARGV[2]) * ${CALL}
local before = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = full
local had, at = tonumber(before[1]), tonumber(before[2])
if had and at and had >= 0 then
  level = math.min(full, had + math.max(0, now - at) * rate)
end
local wait = 0
if level >= ${CALL} then
  level = level - ${CALL}
else
  wait = math.ceil((${CALL} - level) / rate)
end
redis.call('HSET', KEYS[1], 'level', string.format('%.0f', level), 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((full - level) / rate) + ${KEEP_MS})
if wait == 0 then grant(KEYS[2], KEYS[3], ARGV[3]) else refuse(KEYS[2], KEYS[3], ARGV[3], wait) end
return wait
`;

const LOAD = `${WISHES}
forget(KEYS[1], KEYS[2])
local held = {}
for index = 3, #KEYS do
  for _, slot in ipairs(redis.call('ZRANGEBYSCORE', KEYS[index], '(' .. now, '+inf')) do held[#held + 1] = slot end
end
return { redis.call('ZRANGE', KEYS[1], 0, ${MOST_REFUSED - 1}, 'WITHSCORES'), held }
`;

/** `now` is a Lua expression, so that tests can set the time. */
export function admissionScripts(now: string = SERVER_NOW): AdmissionScripts {
  const script = (body: string) => luaScript(`local now = ${now}${body}`);
  return {
    enter: script(ENTER),
    renew: script(RENEW),
    takeCall: script(TAKE_CALL),
    load: script(LOAD),
  };
}

import { ADMITTED_ASKS_MS, CALL, REFUSED_ASKS_MS } from '../admission-rules.ts';
import { type LuaScript, luaScript } from './connect-redis.ts';

/**
 * The decisions of `admission-rules.ts` in Lua. Redis runs each script as one step, so all sets change together or not at
 * all. Held slots and asking tenants are sorted sets scored by their end; a bucket is a hash. Keys expire some time after
 * their contents, so unused ones disappear. Members that end too late, and invalid levels, are foreign and do not count.
 */
export interface AdmissionScripts {
  /** KEYS tenant slots, provider slots, asking. ARGV tenant, slot, slotMs, tenantCap, providerCap (0: none). Returns 1 or 0. */
  enter: LuaScript;
  /** KEYS sets. ARGV slotMs, then the slot to hold in each set. */
  renew: LuaScript;
  /** KEYS bucket. ARGV callsPerMinute, burst. Returns ms to wait. */
  takeCall: LuaScript;
}

/** The clock of the server is the same for all processes. Rounded down to whole ms (L1). */
const SERVER_NOW = `(function()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end)()`;

const KEEP_MS = 60_000;

const ENTER = `
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
`;

const RENEW = `
local slotMs = tonumber(ARGV[1])
for index, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + slotMs, ARGV[index + 1])
  redis.call('PEXPIRE', key, slotMs + ${KEEP_MS})
end
`;

const TAKE_CALL = `
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
return wait
`;

/** `now` is a Lua expression, so that tests can set the time. */
export function admissionScripts(now: string = SERVER_NOW): AdmissionScripts {
  const script = (body: string) => luaScript(`local now = ${now}${body}`);
  return { enter: script(ENTER), renew: script(RENEW), takeCall: script(TAKE_CALL) };
}

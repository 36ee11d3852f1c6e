import { luaScript } from '../redis/connect-redis.ts';

/** The queue's keys with fixed names, by their type. Any may be missing. All but `dropped` are BullMQ's. */
const NAMES = {
  string: ['id', 'pc', 'stalled-check', 'limiter', 'dropped'],
  hash: ['meta'],
  stream: ['events'],
  zset: ['marker', 'delayed', 'prioritized', 'waiting-children', 'completed', 'failed', 'repeat'],
  list: ['wait', 'active', 'paused'],
  set: ['stalled'],
};
export const QUEUE_KEYS: readonly string[] = Object.values(NAMES).flat();
const TYPES = Object.entries(NAMES).flatMap(([type, names]) => names.map(() => type));

/** Length of BullMQ's stream of events, which Troupe does not read. */
export const EVENTS_KEPT = 1_000;

/**
 * The scripts of the queue guard. Each is one step in Redis, so any number of processes may run them at once, and between
 * the jobs of others.
 *
 * Emptying the queue leaves the keys of its jobs, and keys that merge later wakes into them. Job ids only rise, so
 * `dropped` holds the highest one at that time, and `sift` removes the keys of that job and of all earlier ones.
 */
const NOW = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
`;

/** Longest lifetime of a lock or a check. BullMQ gives all of them an expiry, so a longer one is foreign. */
const LONGEST_HELD_MS = 86_400_000;
const LONGEST_DELAY_MS = 400 * LONGEST_HELD_MS;
/** Number of the oldest active jobs whose locks are inspected. */
const LOCKS_LOOKED_AT = 200;
/** Maximum number of wakes with an impossible due time that one step removes. */
const STUCK_REMOVED = 500;
/**
 * Each add takes an id, merged or not. The ids after an emptying begin above all earlier ones: 100 per ms since July 2017.
 * BullMQ's scripts write them with 14 digits.
 */
const FRESH_ID = '(now - 1500000000000) * 100';
const MOST_IDS = 9e13;
const DROPPED_KEPT_MS = 600_000;

/**
 * KEYS those of `QUEUE_KEYS`. ARGV base of all keys, `mend` (1: repair; 0: only report), `drop` (1: empty the queue whatever
 * is found). Returns the job id up to which the queue was emptied if keys of those jobs remain, else ''; whether it was
 * emptied now; then pairs of a key and what is wrong with it. Fails if Redis accepts no writes.
 */
const INSPECT = `${NOW}
local base, mend, drop = ARGV[1], ARGV[2] == '1', ARGV[3] == '1'
local wants = {${TYPES.map((type) => `'${type}'`).join(',')}}
local found, kinds, broken = {}, {}, drop

local function report(key, what)
  found[#found + 1] = key
  found[#found + 1] = what
end
local function fail(key, what)
  report(key, what)
  broken = true
end
local function number(key, most)
  if redis.call('STRLEN', key) > 14 then return nil end
  local value = redis.call('GET', key)
  if not string.match(value, '^%d+$') or tonumber(value) > most then return nil end
  return tonumber(value)
end
local function at(part) return base .. part end

-- A full Redis, or a replica, answers reads but refuses writes.
redis.call('SET', at('check'), now, 'PX', 60000)

for index, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local part = string.sub(key, #base + 1)
  kinds[part] = kind == wants[index] and kind or 'none'
  if kind ~= 'none' and kind ~= wants[index] then
    fail(key, 'is a ' .. kind .. ' and must be a ' .. wants[index])
  end
end

local last = 0
if kinds.id == 'string' then
  last = number(at('id'), ${MOST_IDS}) or -1
  if last < 0 then
    fail(at('id'), 'is not the id of a job')
  end
end
if kinds.pc == 'string' and not number(at('pc'), 1e14) then
  fail(at('pc'), 'is not a count')
end
if kinds.events == 'stream' then
  local info = redis.pcall('XINFO', 'STREAM', at('events'))
  for index = 1, info.err and 0 or #info - 1, 2 do
    if info[index] == 'last-generated-id' then
      local newest = tonumber(string.match(info[index + 1], '^%d+')) or 0
      if newest > now + ${LONGEST_HELD_MS} then
        fail(at('events'), 'ends in the future and accepts no entries')
      end
    end
  end
end

if kinds.meta == 'hash' then
  -- Scripts that add a job fail on these after they have set its deduplication key.
  for _, field in ipairs({'concurrency', 'max', 'duration', 'opts.maxLenEvents'}) do
    local value = redis.call('HGET', at('meta'), field)
    if value and not (#value < 14 and string.match(value, '^%d+$')) then
      fail(at('meta'), 'has the field ' .. field .. ', which is not a whole number')
    end
  end
end

local cut = ''
if kinds.dropped == 'string' then
  cut = number(at('dropped'), ${MOST_IDS}) or ''
  if cut == '' then redis.call('DEL', at('dropped')) end
end

if broken then
  if not (mend or drop) then return {'', 0, unpack(found)} end
  cut = math.max(${FRESH_ID}, last)
  redis.call('UNLINK', unpack(KEYS))
  redis.call('SET', at('id'), string.format('%.0f', cut))
  redis.call('SET', at('dropped'), string.format('%.0f', cut), 'PX', ${DROPPED_KEPT_MS})
  redis.call('HSET', at('meta'), 'opts.maxLenEvents', ${EVENTS_KEPT})
  return {string.format('%.0f', cut), 1, unpack(found)}
end

if kinds.meta == 'hash' then
  for _, field in ipairs({'paused', 'concurrency', 'max', 'duration'}) do
    if redis.call('HEXISTS', at('meta'), field) == 1 then
      report(at('meta'), 'has the field ' .. field .. ', which limits or stops all work and which Troupe never sets')
      if mend then redis.call('HDEL', at('meta'), field) end
    end
  end
end
if kinds['stalled-check'] == 'string' then
  local ends = redis.call('PTTL', at('stalled-check'))
  if ends < 0 or ends > ${LONGEST_HELD_MS} then
    report(at('stalled-check'), 'never expires, so wakes of dead processes are not found')
    if mend then redis.call('DEL', at('stalled-check')) end
  end
end
if mend and kinds.delayed == 'zset' then
  local latest = string.format('%.0f', (now + ${LONGEST_DELAY_MS}) * 4096)
  for _, range in ipairs({{'-inf', '(0'}, {latest, '+inf'}}) do
    local stuck = redis.call('ZRANGEBYSCORE', at('delayed'), range[1], range[2], 'LIMIT', 0, ${STUCK_REMOVED})
    if #stuck > 0 then
      report(at('delayed'), 'has ' .. #stuck .. ' wakes that are never due')
      redis.call('ZREM', at('delayed'), unpack(stuck))
      for _, id in ipairs(stuck) do
        if not kinds[id] then redis.call('UNLINK', at(id)) end
      end
    end
  end
end
if mend and kinds.active == 'list' then
  for _, id in ipairs(redis.call('LRANGE', at('active'), -${LOCKS_LOOKED_AT}, -1)) do
    local lock = at(id) .. ':lock'
    local kind = redis.call('TYPE', lock).ok
    local ends = kind == 'string' and redis.call('PTTL', lock) or -1
    if kind ~= 'none' and (ends < 0 or ends > ${LONGEST_HELD_MS}) then
      report(lock, 'is a lock that never expires')
      redis.call('UNLINK', lock)
    end
  end
end
return {cut == '' and '' or string.format('%.0f', cut), 0, unpack(found)}
`;

/**
 * KEYS some of the troupe's keys. ARGV base of the queue's keys, base of all keys, the id up to which jobs were dropped
 * or ''. Removes keys of a wrong type and keys of dropped jobs. For keys of a wrong type, returns pairs as above.
 */
const SIFT = `
local base, own, cut = ARGV[1], ARGV[2], tonumber(ARGV[3])
local fixed = {check = true, ${QUEUE_KEYS.map((name) => `['${name}'] = true`).join(', ')}}
local found = {}

local function remove(key, what)
  redis.call('UNLINK', key)
  if what then
    found[#found + 1] = key
    found[#found + 1] = what
  end
end
local function isOld(id)
  if not cut then return false end
  return not (id and #id < 15 and string.match(id, '^%d+$') and tonumber(id) > cut)
end
local function isBadJob(key)
  for _, field in ipairs({'ats', 'atm', 'stc', 'timestamp', 'delay', 'priority', 'processedOn'}) do
    local value = redis.call('HGET', key, field)
    if value and not (#value < 16 and string.match(value, '^%-?%d+$')) then return true end
  end
  return false
end
local function text(key)
  return redis.call('STRLEN', key) < 100 and redis.call('GET', key) or nil
end
local function must(key, kind, want)
  if kind == want then return true end
  remove(key, 'is a ' .. kind .. ' and must be a ' .. want)
  return false
end
local function startsWith(name, start) return string.sub(name, 1, #start) == start end

local function inspectOfQueue(key, name, kind)
  if fixed[name] then return end
  if startsWith(name, 'de:') then
    local follower = base .. 'dn:' .. string.sub(name, 4)
    if not must(key, kind, 'string') or isOld(text(key)) then
      redis.call('UNLINK', key, follower)
    end
  elseif startsWith(name, 'dn:') then
    if not must(key, kind, 'hash') then
      redis.call('UNLINK', base .. 'de:' .. string.sub(name, 4))
    elseif isOld(redis.call('HGET', key, 'jid')) then
      remove(key)
    end
  else
    local id, tail = string.match(name, '^([^:]*)(.*)$')
    if isOld(id) then
      remove(key)
    elseif tail == '' then
      if must(key, kind, 'hash') and isBadJob(key) then remove(key, 'is not a job: it has invalid numbers') end
    elseif tail == ':lock' and must(key, kind, 'string') then
      local ends = redis.call('PTTL', key)
      if ends < 0 or ends > ${LONGEST_HELD_MS} then remove(key, 'is a lock that never expires') end
    end
  end
end

for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local name = string.sub(key, #own + 1)
  if kind == 'none' then
    -- Removed together with an earlier key.
  elseif startsWith(key, base) then
    inspectOfQueue(key, string.sub(key, #base + 1), kind)
  elseif startsWith(name, 'wake-backlog:') or startsWith(name, 'wake-front:') or startsWith(name, 'wake-family:') then
    if must(key, kind, 'set') and cut then remove(key) end
  elseif startsWith(name, 'slots:') or startsWith(name, 'asking:') then
    must(key, kind, 'zset')
  elseif startsWith(name, 'calls:') then
    must(key, kind, 'hash')
  end
end
return found
`;

/** KEYS `dropped`. ARGV the id up to which all keys are now removed. */
const FORGET = `
if redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
`;

export const guardScripts = {
  inspect: luaScript(INSPECT),
  sift: luaScript(SIFT),
  forget: luaScript(FORGET),
};

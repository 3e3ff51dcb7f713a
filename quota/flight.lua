-- flight keeps the places of calls that a Google user has in flight, what was
-- learned of how many Google allows, and the bytes of the user's last day.
--
-- KEYS[1]  places: a sorted set of calls by when each ceases to count unless it
--          is renewed, in us
-- KEYS[2]  what is known of the user: a hash of
--            cap      learned: as many calls may be in flight; none: nothing was
--            at       when it was last lowered, in us
--            since    when it last changed, or a call was refused for it, in us
--            calm     time after since until one more is tried, in us
--            tried    1: the last change was one more
--            hH       bytes of the hour H of quota time
-- KEYS[3]  the project's live settings, which begin with their revision
-- ARGV[1]  depart  take a place, or say why not
--          land    give one back, and tell how the call went
--          renew   let places count for longer
--          look    only look
-- ARGV[2]  now_us, in tests only; else 0
-- ARGV[3]  length of an hour of quota time, in us
-- ARGV[4]  life of a place that is not renewed, in us
-- and to depart
-- ARGV[5]  name of the place
-- ARGV[6]  calls in flight up to which this lane may go
-- ARGV[7]  as many learned would bind no lane
-- ARGV[8]  1: a background lane, which leaves one place of those learned
-- ARGV[9]  bytes of a day up to which this lane may go; 0: no limit
-- to land
-- ARGV[5]  name of the place
-- ARGV[6]  bytes that came
-- ARGV[7]  how many calls of Google's methods this one was, if it was refused for
--          their number; else 0
-- ARGV[8]  when it departed, in us
-- ARGV[9]  how many had a place then, this one included
-- to renew
-- ARGV[5...]  names of places
--
-- Returns
--   to depart  {1, now_us, in flight, most}; {0, now_us, in flight, most, 0,
--              revision} when too many are; {-1, now_us, bytes, most, wait_us,
--              revision} when the day's bytes are used up
--   to land    {1 if the cap was lowered, else 0}
--   to renew   {how many still had their place}
--   to look    {in flight, cap or 0, when one more is tried or 0 in us, bytes}
--#include numbers.lua
local call = redis.call
local DAY = 24                           -- hours that a byte counts after its own
local KEEP = 26 * 3600 * 1000            -- ms
local CALM, MOST_CALM = 300 * 1e6, 3600 * 1e6 -- us, not of quota time
local places, known = KEYS[1], KEYS[2]
local op, now, width, life = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local hour = math.floor(now / width)

-- bytes sums up the last day, and forgets what was before it. Limit 0 only sums;
-- else it says how long the sum stays at or above the limit.
local function bytes(limit)
  local sum, hours, old, wait = 0, {}, {}, 0
  local all = call('HGETALL', known)
  for i = 1, #all, 2 do
    local h = string.match(all[i], '^h(%d+)$')
    h = h and tonumber(h)
    if h and h < hour - DAY then
      old[#old + 1] = all[i]
    elseif h then
      hours[#hours + 1] = {h, all[i + 1] + 0}
      sum = sum + all[i + 1]
    end
  end
  if #old > 0 and op ~= 'look' then call('HDEL', known, unpack(old)) end
  if limit == 0 or sum < limit then return sum, 0 end
  table.sort(hours, function(a, b) return a[1] < b[1] end)
  local left = sum
  for _, h in ipairs(hours) do
    left = left - h[2]
    if left < limit then
      wait = (h[1] + DAY + 1) * width - now
      break
    end
  end
  return sum, wait
end

local function revision()
  local settings = call('GETRANGE', KEYS[3], 0, 3)
  if #settings < 4 then return 0 end
  return u32(settings, 0)
end

local function depart()
  local place, most, top, limit = ARGV[5], ARGV[6] + 0, ARGV[7] + 0, ARGV[9] + 0
  if limit > 0 then
    local sum, wait = bytes(limit)
    if sum >= limit then return {-1, now, sum, limit, wait, revision()} end
  end
  local state = call('HMGET', known, 'cap', 'since', 'calm')
  local cap = tonumber(state[1])
  if cap and tonumber(state[2]) > now then -- the clock stepped back
    call('HSET', known, 'since', now)
  elseif cap and now - state[2] >= tonumber(state[3]) then
    cap = cap + 1
    call('HSET', known, 'cap', cap, 'since', now, 'tried', 1)
  end
  if cap and cap >= top then -- it binds nobody any more
    call('HDEL', known, 'cap', 'at', 'since', 'calm', 'tried')
  elseif cap and ARGV[8] == '1' then
    most = math.min(most, math.max(1, cap - 1))
  elseif cap then
    most = math.min(most, cap)
  end
  call('ZREMRANGEBYSCORE', places, '-inf', now)
  local count = call('ZCARD', places)
  if count >= most then return {0, now, count, most, 0, revision()} end
  call('ZADD', places, now + life, place)
  call('PEXPIRE', places, math.ceil(life / 1000) + 1000)
  return {1, now, count + 1, most}
end

-- refused lowers the cap, unless the call departed before it was lowered last:
-- then it was too many under the older one, and tells nothing of this one.
local function refused(count, departed)
  local state = call('HMGET', known, 'cap', 'at', 'calm', 'tried')
  local cap, at = tonumber(state[1]), tonumber(state[2])
  local calm = tonumber(state[3]) or CALM
  call('HSET', known, 'since', now)
  if cap and at and departed <= at and at <= now then return 0 end -- at is later than now if the clock stepped back
  if state[4] == '1' then calm = math.min(2 * calm, MOST_CALM) end
  local lower = math.max(1, math.min(cap or count, count) - 1)
  call('HSET', known, 'cap', lower, 'at', now, 'calm', calm, 'tried', 0)
  return lower == cap and 0 or 1
end

local function land()
  local got, count = ARGV[6] + 0, ARGV[7] + 0
  if count > 0 then
    -- One that departed early may reach Google after those that departed later: it
    -- was too many among all of them.
    local there = call('ZCOUNT', places, string.format('(%.0f', now), '+inf')
    count = count - 1 + math.max(ARGV[9] + 0, there)
  end
  call('ZREM', places, ARGV[5])
  local lowered = 0
  if got > 0 then call('HINCRBY', known, 'h' .. hour, got) end
  if count > 0 then lowered = refused(count, ARGV[8] + 0) end
  if got > 0 or count > 0 then call('PEXPIRE', known, KEEP) end
  return {lowered}
end

-- A place that was given back meanwhile is not there any more, and stays so.
local function renew()
  local renewed = 0
  for i = 5, #ARGV do
    if call('ZSCORE', places, ARGV[i]) then
      call('ZADD', places, now + life, ARGV[i])
      renewed = renewed + 1
    end
  end
  if renewed > 0 then call('PEXPIRE', places, math.ceil(life / 1000) + 1000) end
  return {renewed}
end

local function look()
  local state = call('HMGET', known, 'cap', 'since', 'calm')
  local sum = bytes(0)
  local calm = state[1] and state[2] + state[3] or 0
  return {call('ZCOUNT', places, string.format('(%.0f', now), '+inf'), tonumber(state[1]) or 0, calm, sum}
end

if op == 'depart' then return depart() end
if op == 'land' then return land() end
if op == 'renew' then return renew() end
return look()

-- hold closes a scope for everybody: a cool-down. It never shortens one. When it
-- learns from a refusal of Google's, the share of the limits that the scope may
-- use is halved, once for all refusals until a call has gone ahead again. Where that
-- leaves little, Google refuses again and again after the moments that it names, and
-- the scope is closed for a while whatever this one is: 12 s of quota time at a
-- quarter, 30 s at a tenth.
--
-- KEYS[1]  the scope's windows, as take.lua keeps them
-- KEYS[2]  the scope's cool-down, for processes whose keys have another shape, also
--          those that start later: u48 until when, in ms; u48 told when, in ms; u8 share
-- ARGV[1]  duration, in ms
-- ARGV[2]  width of a bucket, in us
-- ARGV[3]  bytes of the key's value
-- ARGV[4]  life of the key, in s, after the hold; 0: for ever
-- ARGV[5]  1: learn
-- ARGV[6]  now_us, in tests only
--
-- Returns {until when the scope is closed, in ms}.
--#include numbers.lua
local call, sub, rep = redis.call, string.sub, string.rep
local RAMP, LEAST = 120, 26   -- as in take.lua; the smallest share, in 1/255
local LITTLE, CALM = 64, 3    -- a share that is little, in 1/255; buckets over the share to be closed then
local now = ARGV[6]
if now then
  now = now + 0
else
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local width, ttl = ARGV[2] + 0, ARGV[4] + 0
local hold = math.ceil(now / 1000 + ARGV[1])
local state = call('GET', KEYS[1])
if not state then
  -- An empty scope whose newest bucket is the one before this: take looks at it
  -- again, and finds out whether it was empty or lost.
  local bucket = (now - now % width) / width
  state = rep('\0', 6) .. pack((bucket - 1) % U32) .. '\1'
  state = state .. rep('\0', ARGV[3] - #state)
end
local share, since = string.byte(state, 18), u48(state, 18)
if ARGV[5] == '1' and (share == 0 or since > 0) then
  if share == 0 then share = 255 end
  if now > since * 1000 and since > 0 then
    share = math.min(255, share + 255 * (now - since * 1000) / (RAMP * width))
  end
  share, since = math.max(LEAST, math.floor(share / 2)), 0
  if share <= LITTLE then hold = math.max(hold, math.ceil((now + CALM * width * 255 / share) / 1000)) end
end
hold = math.max(hold, u48(state, 0))
local told = call('GET', KEYS[2])
if told and u48(told, 6) * 1000 <= now then hold = math.max(hold, u48(told, 0)) end
state = pack48(hold) .. sub(state, 7, 17) .. string.char(share) .. pack48(since) .. sub(state, 25)
if ttl > 0 then
  call('SET', KEYS[1], state, 'EX', ttl + math.ceil((hold * 1000 - now) / 1000000))
else
  call('SET', KEYS[1], state)
end
if hold * 1000 > now then
  call('SET', KEYS[2], pack48(hold) .. pack48(math.floor(now / 1000)) .. string.char(share), 'EX', math.ceil((hold * 1000 - now) / 1000000))
end
return {hold}

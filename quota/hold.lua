-- hold closes a scope for everybody: a cool-down. It never shortens one.
--
-- KEYS[1]  the scope's windows, as take.lua keeps them
-- ARGV[1]  duration, in ms
-- ARGV[2]  width of a bucket, in us
-- ARGV[3]  bytes of the key's value
-- ARGV[4]  life of the key, in s, after the hold; 0: for ever
-- ARGV[5]  now_us, in tests only
--
-- Returns {until when the scope is closed, in ms}.
--#include numbers.lua
local call, sub, rep = redis.call, string.sub, string.rep
local now = ARGV[5]
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
local old = u48(state, 0)
if old > hold then hold = old end
state = pack48(hold) .. sub(state, 7)
if ttl > 0 then
  call('SET', KEYS[1], state, 'EX', ttl + math.ceil((hold * 1000 - now) / 1000000))
else
  call('SET', KEYS[1], state)
end
return {hold}

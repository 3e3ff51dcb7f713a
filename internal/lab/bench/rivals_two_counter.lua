-- two_counter estimates a sliding window from two fixed ones, as Cloudflare
-- does: what was spent in the last one counts in proportion to how much of it
-- the sliding window still covers.
--
-- KEYS[1]  units in the fixed window that now falls in
-- KEYS[2]  units in the one before
-- ARGV[1]  now, in ms
-- ARGV[2]  length of a window, in ms
-- ARGV[3]  limit, in units
-- ARGV[4]  cost, in units
--
-- Returns 1 if the call was admitted, 0 if not.
local now, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local current = tonumber(redis.call('GET', KEYS[1]) or 0)
local before = tonumber(redis.call('GET', KEYS[2]) or 0)
if before * (1 - now % window / window) + current + ARGV[4] > tonumber(ARGV[3]) then
  return 0
end
redis.call('INCRBY', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[1], 2 * window)
return 1

-- plain is the sliding window that is written first: a log of all calls.
--
-- KEYS[1]  sorted set of COST:ID members, by when the call was made, in ms
-- ARGV[1]  now, in ms, by the clock of the caller
-- ARGV[2]  length of the window, in ms
-- ARGV[3]  limit, in units
-- ARGV[4]  cost, in units
-- ARGV[5]  id of the call
--
-- Returns 1 if the call was admitted, 0 if not.
local now, window = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  used = used + tonumber(string.match(member, '^(%d+):'))
end
if used + tonumber(ARGV[4]) > tonumber(ARGV[3]) then
  return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[4] .. ':' .. ARGV[5])
redis.call('PEXPIRE', KEYS[1], window)
return 1

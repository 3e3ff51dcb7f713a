-- look says what is known of a user's calls in flight, and changes nothing.
--
-- KEYS[1]  the user's slots
-- KEYS[2]  what is known of the user: see inflight.lua
-- ARGV[1]  length of an hour of quota time, in us
-- ARGV[2]  now_us, in tests only; else 0
--
-- Returns {in flight, cap or 0, when one more is tried or 0 in us, bytes of the day}.
local call = redis.call
--#include inflight.lua
local now = ARGV[2] + 0
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local state = call('HMGET', KEYS[2], 'cap', 'since', 'calm')
local calm = state[1] and state[2] + state[3] or 0
local bytes = bytes_of_day(KEYS[2], math.floor(now / ARGV[1]), 0, false)
return {call('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf'), tonumber(state[1]) or 0, calm, bytes}

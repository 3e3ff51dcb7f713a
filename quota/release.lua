-- release gives a slot in flight back, and counts what the call brought.
--
-- KEYS[1]  the user's slots
-- KEYS[2]  what is known of the user: see inflight.lua
-- ARGV[1]  name of the slot
-- ARGV[2]  bytes that came
-- ARGV[3]  length of an hour of quota time, in us
-- and if Google refused the call for the number of calls in flight, or in tests
-- KEYS[3]  the user's windows
-- ARGV[4]  how many calls of Google's methods this one was; 0: it was not refused
-- ARGV[5]  when it got its slot, in us
-- ARGV[6]  how many had one then, this one included
-- ARGV[7]  now_us, in tests only; else 0
--
-- Returns {1} if what was learned of the number of calls has become less, else {0}.
local call = redis.call
local KEPT = 26 * 3600 * 1000   -- ms that bytes and what was learned are kept
local slots, known, bytes, now = KEYS[1], KEYS[2], ARGV[2] + 0, 0
if ARGV[7] and ARGV[7] ~= '0' then
  now = ARGV[7] + 0
elseif bytes > 0 or ARGV[4] then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local lowered = 0
if ARGV[4] and ARGV[4] ~= '0' then
  --#include crowded.lua
  lowered = crowded(ARGV[4] + 0, ARGV[5] + 0, ARGV[6] + 0)
end
if bytes > 0 then
  local width = ARGV[3] + 0
  local of_hour = call('HINCRBY', known, 'h' .. (now - now % width) / width, ARGV[2])
  if of_hour == bytes then call('PEXPIRE', known, KEPT) end
end
call('ZREM', slots, ARGV[1])
return {lowered}

-- renew lets slots in flight count for longer. One that was given back meanwhile is not
-- there any more, and stays so.
--
-- KEYS[1]  the user's slots, as acquire.lua keeps them
-- ARGV[1]  now_us, in tests only; else 0
-- ARGV[2...]  names of slots
--
-- Returns how many were there still.
local call = redis.call
local now = ARGV[1] + 0
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local renewed = 0
for i = 2, #ARGV do
  if call('ZSCORE', KEYS[1], ARGV[i]) then
    call('ZADD', KEYS[1], now + SLOT.LIFE, ARGV[i])
    renewed = renewed + 1
  end
end
if renewed > 0 then call('PEXPIRE', KEYS[1], 'SLOT.KEPT') end
return {renewed}

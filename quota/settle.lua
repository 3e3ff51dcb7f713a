-- settle corrects a charge: it adds units to the very bucket that was charged, or
-- takes them back from it. A bucket that has left its window changes nothing.
--
-- KEYS     as for take.lua
-- ARGV[1]  a request as for take.lua; its cost is the units to add or take back,
--          its want 0 to add, 1 to take back
-- ARGV[2]  when the units were charged, in us: the now_us that take returned
--
-- Returns the units added or taken back, per window.
--#include numbers.lua
local call, byte, sub = redis.call, string.byte, string.sub
local PREAMBLE, HEADER, FIRST, ENTRY = 48, 16, 34, 29   -- bytes, as in take.lua
local CARRY = 5   -- buckets, as in take.lua
local request, at = ARGV[1], ARGV[2] + 0
local delta, back, width = u32(request, 0), u32(request, 4) == 1, u32(request, 8)
local bucket = (at - at % width) / width
local p, reply = FIRST, {}

-- correct changes the number behind the first i bytes of s and says by how much.
local function correct(s, i)
  local v, by = u32(s, i), delta
  if back then
    by = math.min(delta, v)
    v = v - by
  else
    v = v + by
  end
  return sub(s, 1, i) .. pack(v) .. sub(s, i + 5), by
end

for k = 1, 2 do
  local windows = byte(request, p + 1)
  p = p + 5
  local state = call('GET', KEYS[k])
  local stop, changed = PREAMBLE + HEADER * windows, false
  local ring = k == 1 and stop + 8 or stop   -- behind the project's day
  for header = PREAMBLE, stop - 1, HEADER do
    local n, by = byte(request, p + 13), 0
    local entry = p
    p = p + ENTRY
    if state then
      local ahead = (bucket - u32(state, 6)) % U32
      if ahead >= U32 / 2 then ahead = ahead - U32 end
      if ahead == 0 then
        state, by = correct(state, header + 12)
      elseif ahead < 0 and -ahead <= n then
        state, by = correct(state, ring + 4 * (bucket % (n + 1)))
        local rest = u32(state, header) + (back and -by or by)
        state = sub(state, 1, header) .. pack(rest) .. sub(state, header + 5)
      end
      for lane = 0, 1 do
        -- What is taken back is no longer owed.
        local interval, i = u32(request, entry + 4 + 4 * lane), header + 4 + 4 * lane
        if by > 0 and interval > 0 then
          local paid = u32(state, i) + math.floor((back and -by or by) * interval / 256)
          -- Nobody owes for longer than a unit counts.
          state = sub(state, 1, i) .. pack(paid > 0 and math.min(paid, (CARRY + n + 2) * width) or 0) .. sub(state, i + 5)
        end
      end
      changed = changed or by > 0
    end
    reply[#reply + 1] = by
    ring = ring + 4 * (n + 1)
  end
  -- The day that was charged is the first in the request that ends after it. If
  -- the key has gone on to another day, its units are no longer counted.
  if k == 1 and state then
    local day
    for x = 18, 26, 4 do
      day = u32(request, x)
      if day * 1000000 > at then break end
    end
    if day == u32(state, stop) then
      local by
      state, by = correct(state, stop + 4)
      changed = changed or by > 0
    end
  end
  if changed then call('SET', KEYS[k], state, 'KEEPTTL') end
end
return reply

-- What the scripts know of a user's calls in flight, besides the slots themselves: a
-- hash with
--   cap     learned: as many calls may be in flight; none: nothing was learned
--   at      when the cap was last lowered, in us
--   since   when it last changed, or a call was refused for it, in us
--   calm    time after since until one more is tried, in us
--   tried   1: the last change was one more
--   hH      bytes of the hour H of quota time
-- The slots are a sorted set of calls by when each ceases to count unless it is
-- renewed, in us.

-- bytes_of_day sums up the bytes of the hour and the 24 before it. When the sum is not
-- below the limit, it also returns the hour at whose beginning it is. If tidy, older
-- hours are thrown away.
local function bytes_of_day(known, hour, limit, tidy)
  local sum, hours, old = 0, {}, {}
  local all = call('HGETALL', known)
  for i = 1, #all, 2 do
    local h = string.match(all[i], '^h(%d+)$')
    h = h and tonumber(h)
    if h and h < hour - 24 then
      old[#old + 1] = all[i]
    elseif h then
      hours[#hours + 1] = {h, all[i + 1] + 0}
      sum = sum + all[i + 1]
    end
  end
  if tidy and #old > 0 then call('HDEL', known, unpack(old)) end
  if sum < limit then return sum end
  table.sort(hours, function(a, b) return a[1] < b[1] end)
  local left = sum
  for _, h in ipairs(hours) do
    left = left - h[2]
    if left < limit then return sum, h[1] + 25 end
  end
  return sum, hour
end

-- in_flight_cap is how many calls may be in flight for one more of a lane that may go
-- up to most, and whether refusals taught that: of what they taught, the background
-- leaves one. A cap of as many as top binds no lane and is forgotten. After a calm one
-- more is tried.
local function in_flight_cap(known, now, most, top, background)
  local state = call('HMGET', known, 'cap', 'since', 'calm')
  local cap = tonumber(state[1])
  if not cap then return most, false end
  if tonumber(state[2]) > now then -- the clock stepped back
    call('HSET', known, 'since', now)
  elseif now - state[2] >= tonumber(state[3]) then
    cap = cap + 1
    call('HSET', known, 'cap', cap, 'since', now, 'tried', 1)
  end
  if cap >= top then
    call('HDEL', known, 'cap', 'at', 'since', 'calm', 'tried')
    return most, false
  end
  return math.min(most, background and math.max(1, cap - 1) or cap), true
end

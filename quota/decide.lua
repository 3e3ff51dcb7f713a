-- What acquire.lua leaves to be decided at length: the first call in a bucket, a call
-- that something stands in the way of, a look, a scope about which there is something
-- special.
--#include scope.lua
local LENT = 1.5               -- how much of the largest burst is kept free when lending
local look = cost == 0 and slot == ''
local shapes, unknown, lost = 1, 0, 0   -- of the project; lost: the bucket in which its windows were lost
local refusal                  -- the longest wait that something asks for: {wait, window, part, most}

-- refuse notes that something asks for a wait of so long. Never: no wait would help.
local function refuse(wait, window, part, most, never)
  if refusal and refusal.never then
    return
  elseif never then
    refusal = {wait = -1, window = window, part = part, most = most, never = true}
  elseif wait > (refusal and refusal.wait or 0) then
    refusal = {wait = wait, window = window, part = part, most = most}
  end
end

-- prepare finds out what holds for a scope now: what share of the limits it may use,
-- and how long it is closed.
local function prepare(s)
  if not s.known or s.newest ~= bucket then advance(s) end
  if s.moved or shapes > 1 or s.project and s.shapes > 1 then listen(s) end
  s.closed = s.cooldown * 1000 - now
  s.usable, s.lent = 1, 0
  if s.share > 0 then
    s.usable = s.share / 255
    if s.since > 0 and now > s.since * 1000 then s.usable = math.min(1, s.usable + (now - s.since * 1000) / (SHARE.RAMP * width)) end
  end
  s.now = now - (s.newest - PACE.CARRY) * width   -- as the windows' pace counts
  if s.project then
    unknown, shapes = s.unknown * 1000 - now, s.shapes
    lost = math.floor((unknown + now - lasting(s)) / width)
  end
end

-- adjust finds the ceiling and the prices of a window that are in force.
local function adjust(s, w)
  local kept = 1
  w.whole = w.ceiling
  if lending > 0 and s.peak > 0 then
    -- What interactive calls may want next is kept free: all background ceilings
    -- shrink as much as that of lane backfill, and so do their paces.
    kept = math.max(w.least, math.min(w.most, w.limit - LENT * s.peak)) / w.most
    w.sync, w.backfill = w.sync / kept, w.backfill / kept
    if lane > 0 then w.ceiling = w.ceiling * kept end
    s.lent = math.max(s.lent, math.floor((1 - kept) * w.most / w.limit * 1000))
  end
  if shapes > 1 or s.usable < 1 or kept < 1 then
    w.ceiling = math.floor(w.ceiling * s.usable / shapes)
    w.sync, w.backfill = w.sync * shapes / s.usable, w.backfill * shapes / s.usable
  end
  w.used = w.rest + w.current
end

-- reserve is what of a window's reserve is left while it is unknown what was spent:
-- what was spent since must fit into it.
local function reserve(s, w)
  local left = math.floor(w.reserve / shapes) - w.current
  for x = math.max(lost, s.newest - w.buckets), s.newest - 1 do left = left - in_bucket(w, x) end
  return left
end

-- leaves is how long it takes until so many units of a window, or all, have left it.
local function leaves(s, w, units)
  local x = s.newest - w.buckets
  while units > 0 and x < s.newest do
    units, x = units - in_bucket(w, x), x + 1
  end
  if units > 0 then x = x + 1 end
  return (x + w.buckets) * width - now
end

-- check asks a window, the number-th, for the longest wait of the call.
local function check(s, w, number)
  local wait, part = s.closed, 3
  if unknown > 0 and unknown > wait and cost > reserve(s, w) then wait, part = unknown, 4 end
  local missing = w.used + cost - w.ceiling
  if missing > 0 then
    if cost > w.whole then refuse(0, number, 1, w.whole, true) end
    local left = leaves(s, w, missing)
    if left > wait then wait, part = left, 1 end
  end
  local paid = lane == 1 and w.sync > 0 and w.sync_paid or lane == 2 and w.backfill > 0 and w.backfill_paid or 0
  if paid > 0 and paid - s.now > wait then wait, part = paid - s.now, 2 end
  if wait > 0 then refuse(wait, number, part, w.ceiling) end
end

-- today returns the units of the project's day and when it ends. If the day that units
-- were spent in is over, they count no longer, and the day is the first whose end is
-- still to come. A clock that stepped back stays in the later day.
local function today(s)
  local ends, units = u32(s.day, DAY.ENDS), u32(s.day, DAY.UNITS)
  if ends * 1000000 > now then return units, ends end
  for at = REQUEST.YESTERDAY, REQUEST.TOMORROW, 4 do
    ends = u32(request, at)
    if ends * 1000000 > now then break end
  end
  return 0, ends
end

-- check_day asks the project's day, which is the window after all others.
local function check_day(units, ends, number)
  if cost <= budget - units then return end
  if cost > budget then refuse(0, number, 1, budget, true) end
  refuse(ends * 1000000 - now, number, 1, budget)
end

-- charge adds the cost to a scope.
local function charge(s)
  for _, w in ipairs(s.windows) do
    local idle, longest = s.now - PACE.CARRY * width, s.now + (w.buckets + 1) * width
    w.sync_paid = owed(w.sync_paid, cost * w.sync / 256, s.now, idle, longest)
    w.backfill_paid = owed(w.backfill_paid, cost * w.backfill / 256, s.now, idle, longest)
    w.current = w.current + cost
  end
  -- Google refused. When the cool-down is over one call goes ahead; if Google does not
  -- refuse that either, the share grows from then on. What is charged because it was
  -- spent already is no such call.
  if s.share > 0 and s.since == 0 and spent == 0 and s.closed <= 0 then
    s.since = math.ceil((now + SHARE.PROBE * width) / 1000)
    s.cooldown = s.since
  end
  if lending > 0 and lane == 0 then
    s.burst = s.burst + cost
    s.peak = math.max(s.peak, s.burst)
  end
end

-- seen adds to the reply what a look sees.
local function seen(scopes)
  for _, s in ipairs(scopes) do
    for _, w in ipairs(s.windows) do
      local ceiling = w.ceiling
      local left = unknown > 0 and reserve(s, w)
      if left and w.used + left < ceiling then ceiling = w.used + math.max(0, left) end
      reply[#reply + 1] = ceiling
    end
  end
  for _, s in ipairs(scopes) do
    reply[#reply + 1] = s.closed > 0 and s.cooldown or 0
    reply[#reply + 1] = s.unknown * 1000 > now and s.unknown or 0
    reply[#reply + 1] = math.floor(s.usable * 1000)
    reply[#reply + 1] = s.lent
  end
end

--#include inflight.lua

-- take_slot takes a slot in flight, or refuses the call. It marks the user when the next
-- calls of the bucket must come here too: when something was learned, or the bytes of
-- the day come near the limit.
local function take_slot(s)
  local width, limit, near = u32(request, REQUEST.HOUR), u32(request, REQUEST.BYTES), false
  if limit > 0 then
    local sum, hour = bytes_of_day(KEYS[4], math.floor(now / width), limit, true)
    if sum >= limit then
      refuse(hour * width - now, 0, 6, limit)
      reply[3] = sum
      return
    end
    near = sum >= 0.9 * limit
  end
  local most, learned = in_flight_cap(KEYS[4], now, most_in_flight, u32(request, REQUEST.LEARNED), lane > 0)
  s.shapes = (near or learned) and 2 or 1
  call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  local count = call('ZCARD', KEYS[3])
  reply[3] = count
  if count >= most then
    refusal = {wait = 0, window = 0, part = 5, most = most}   -- nobody knows when one is free
    return
  end
  call('ZADD', KEYS[3], now + SLOT.LIFE, slot)
  call('PEXPIRE', KEYS[3], 'SLOT.KEPT')
  reply[3] = count + 1
end

local function decide()
  local project, next_at = read(1, REQUEST.SIZE)
  local scopes = {project, (read(2, next_at))}
  prepare(project)
  if project.revision ~= sub(request, REQUEST.REVISION + 1, REQUEST.YESTERDAY) then return {-2, u32(project.revision, 0)} end
  prepare(scopes[2])
  local units, ends = today(project)
  reply = {cost, now, 0, units}
  local number = 0
  for _, s in ipairs(scopes) do
    for _, w in ipairs(s.windows) do
      number = number + 1
      adjust(s, w)
      reply[4 + number] = w.used
      if cost > 0 and spent == 0 then check(s, w, number) end
    end
  end
  if cost > 0 and spent == 0 then check_day(units, ends, number + 1) end
  if look then seen(scopes) end
  if slot ~= '' and not refusal then take_slot(scopes[2]) end
  local admitted = not refusal
  if refusal then
    reply[1] = -1
    for _, v in ipairs({refusal.wait, refusal.window, refusal.part, refusal.most}) do reply[#reply + 1] = v end
  elseif cost > 0 then
    charge(project)
    charge(scopes[2])
    project.day = pack(ends) .. pack(math.min(units + cost, U32 - 1))
  end
  -- Also without a charge, what was found out about the server, the shapes and a
  -- cool-down holds for all callers, and units that became young again must begin to
  -- age.
  local charged = admitted and cost > 0
  if charged or project.moved then write(project) end
  if charged or scopes[2].moved and (scopes[2].news or project.news) then write(scopes[2]) end
  return reply
end

return decide()

-- A scope, the project or the user, as the scripts take it apart: what stands in its
-- key, and the windows that the request names. Part of acquire.lua.
--#include wide.lua

-- Of the project's keys: what their names begin with, and the user at the end of the
-- user's.
local base = string.match(KEYS[1], '^(.*:)[^:]*:project$')
local user = sub(string.match(KEYS[2], ':user:.*$', #base), 7)

-- read takes scope k apart, whose SCOPE stands behind the first at bytes of the
-- request.
local function read(k, at)
  local state, count = call('GET', KEYS[k]), byte(request, at + 1)
  local s = {key = KEYS[k], project = k == 1, known = state and true, life = u32(request, at + SCOPE.LIFE), windows = {},
    newest = bucket, cooldown = 0, shapes = 1, unknown = 0, share = 0, since = 0, burst = 0, peak = 0,
    revision = sub(request, REQUEST.REVISION + 1, REQUEST.YESTERDAY), server = rep('\0', 12), day = rep('\0', DAY.SIZE)}
  if state then
    local ahead = (bucket - u32(state, PREAMBLE.NEWEST)) % U32
    if ahead >= U32 / 2 then ahead = ahead - U32 end
    s.newest = bucket - ahead
    s.cooldown, s.shapes, s.unknown = u48(state, PREAMBLE.COOLDOWN), byte(state, PREAMBLE.SHAPES + 1), u48(state, PREAMBLE.UNKNOWN)
    s.share, s.since = byte(state, PREAMBLE.SHARE + 1), u48(state, PREAMBLE.SINCE)
    s.revision, s.server = sub(state, PREAMBLE.REVISION + 1, PREAMBLE.SERVER), sub(state, PREAMBLE.SERVER + 1, PREAMBLE.BURST)
    s.burst, s.peak = u32(state, PREAMBLE.BURST), u32(state, PREAMBLE.PEAK)
  end
  local ring = PREAMBLE.SIZE + HEADER.SIZE * count
  if s.project then
    if state then s.day = sub(state, ring + 1, ring + DAY.SIZE) end
    ring = ring + DAY.SIZE
  end
  at = at + SCOPE.SIZE
  for i = 1, count do
    local w = {rest = 0, sync_paid = 0, backfill_paid = 0, current = 0}
    w.ceiling, w.sync, w.backfill, w.buckets = four(request, at)
    w.reserve, w.limit, w.least, w.most = four(request, at + WINDOW.RESERVE)
    w.ring = rep('\0', 4 * (w.buckets + 1))
    if state then
      w.rest, w.sync_paid, w.backfill_paid, w.current = four(state, PREAMBLE.SIZE + HEADER.SIZE * (i - 1))
      w.ring = sub(state, ring + 1, ring + #w.ring)
    end
    ring, at = ring + #w.ring, at + WINDOW.SIZE
    s.windows[i] = w
  end
  return s, at
end

-- write stores a scope.
local function write(s)
  local parts = {pack48(s.cooldown), pack(s.newest % U32), char(s.shapes), pack48(s.unknown), char(s.share), pack48(s.since),
    s.revision, s.server, pack(s.burst), pack(s.peak)}
  for _, w in ipairs(s.windows) do
    parts[#parts + 1] = pack(w.rest) .. three(w.sync_paid, w.backfill_paid, w.current)
  end
  if s.project then parts[#parts + 1] = s.day end
  for _, w in ipairs(s.windows) do parts[#parts + 1] = w.ring end
  local state = table.concat(parts)
  if s.life == 0 then
    call('SET', s.key, state)
  else
    call('SET', s.key, state, 'EX', s.life + math.max(0, math.ceil((s.cooldown * 1000 - now) / 1000000)))
  end
end

-- in_bucket is what a window counted in a bucket that is not its newest.
local function in_bucket(w, number) return u32(w.ring, 4 * (number % (w.buckets + 1))) end

-- lasting is how long a unit counts at most in the windows of a scope, in us.
local function lasting(s)
  local longest = 0
  for _, w in ipairs(s.windows) do longest = math.max(longest, w.buckets) end
  return (longest + 1) * width
end

-- server names the process that counts, and how many keys it has thrown away: when
-- either changes, windows may have been lost. A server that does not say might lose
-- them unnoticed. Only the embedded one, which keeps nothing, may.
local function server()
  local info, stats = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'stats')
  if type(info) ~= 'string' and not string.find(info.err or '', 'is not supported', 1, true) then
    error('this Redis does not let us run INFO, by which a restart is noticed: ' .. (info.err or 'no text'))
  end
  local id = type(info) == 'string' and string.match(info, 'run_id:(%x%x%x%x%x%x%x%x)') or 'embedded'
  local evicted = type(stats) == 'string' and string.match(stats, 'evicted_keys:(%d+)') or 0
  return id .. pack(evicted % U32)
end

-- shift moves a window's units to their places in the ring when its newest bucket is
-- so many before this one.
local function shift(w, last, ahead)
  local n, slots, ring = w.buckets, w.buckets + 1, w.ring
  local empty = rep('\0', 4 * slots)
  if ahead > n then
    w.rest, w.ring = 0, empty   -- all of it is old
  else
    local old = w.rest          -- may hold units that left by now
    w.rest = w.rest + w.current
    for x = last + 1, bucket do
      if old == 0 then break end
      local units = in_bucket(w, x)
      old, w.rest = old - units, w.rest - units
    end
    -- The newest bucket's units go to their slot; the slots behind it, up to this
    -- bucket's, are empty.
    local x, z = last % slots, bucket % slots
    if x < z then
      w.ring = sub(ring, 1, 4 * x) .. pack(w.current) .. sub(empty, 1, 4 * (z - x)) .. sub(ring, 4 * z + 5)
    else
      w.ring = sub(empty, 1, 4 * z + 4) .. sub(ring, 4 * z + 5, 4 * x) .. pack(w.current) .. sub(empty, 1, 4 * (n - x))
    end
  end
  w.current = 0
  w.sync_paid = math.max(0, w.sync_paid - ahead * width)
  w.backfill_paid = math.max(0, w.backfill_paid - ahead * width)
end

-- rejuvenate lets all units of a window count as spent just now: the clock is far
-- behind what it was, and nothing is known of their ages.
local function rejuvenate(w)
  w.current, w.rest, w.sync_paid, w.backfill_paid = w.current + w.rest, 0, 0, 0
  w.ring = rep('\0', #w.ring)
end

-- look_around finds out what may have happened to the project since its last bucket.
local function look_around(s)
  local ago, id = lasting(s), server()
  if id ~= s.server and (s.known or byte(request, REQUEST.FRESH + 1) == 0) then
    s.unknown = math.ceil((now + ago) / 1000)
  end
  s.server = id
  s.revision = call('GETRANGE', base .. 'settings', '0', '3')
  if s.revision == '' then s.revision = '\0\0\0\0' end
  -- Processes with keys of another shape do not see these windows: as long as there
  -- are some, each shape keeps to its part of the limits.
  call('ZADD', base .. 'shapes', now, s.key)
  s.shapes = math.min(255, call('ZCOUNT', base .. 'shapes', now - ago, '+inf'))
  if s.shapes > 1 then call('ZREMRANGEBYSCORE', base .. 'shapes', '-inf', '(' .. string.format('%.0f', now - ago)) end
end

-- advance brings a scope up to date whose newest bucket is not this one.
local function advance(s)
  local ahead = bucket - s.newest
  s.moved = true
  if s.known and ahead < 0 and -ahead * width < lasting(s) then return end -- the clock stepped back a little: keep counting in the newest bucket
  for _, w in ipairs(s.windows) do
    if ahead > 0 then shift(w, s.newest, ahead) end
    if ahead < 0 then rejuvenate(w) end
  end
  s.newest, s.news = bucket, ahead < 0
  if s.since > 0 and s.share + 255 * (now - s.since * 1000) / (SHARE.RAMP * width) >= 255 then s.share, s.since = 0, 0 end
  if ahead > 0 then   -- what interactive calls asked for is forgotten little by little
    s.burst, s.peak = math.floor(s.burst * (1 - 1 / LENDING.BURST) ^ ahead), math.floor(s.peak * (1 - 1 / LENDING.PEAK) ^ ahead)
  end
  local back = ahead < 0 and math.floor(ahead * width / 1000) or 0   -- what is left of a wait stays as long
  if s.cooldown > 0 then s.cooldown = s.cooldown + back end
  if s.unknown > 0 then s.unknown = s.unknown + back end
  if s.since > 0 then s.since = math.max(1, s.since + back) end
  if s.cooldown * 1000 <= now then s.cooldown = 0 end
  if s.unknown * 1000 <= now then s.unknown = 0 end
  s.revision = sub(request, REQUEST.REVISION + 1, REQUEST.YESTERDAY)
  if s.project then look_around(s) end
end

-- listen adopts the cool-down that a process may have told of whose keys have another
-- shape. One that was told of later than now is as old as the clock's step back.
local function listen(s)
  local told = call('GET', base .. 'hold' .. (s.project and '' or ':' .. user))
  if not told or u48(told, TOLD.AT) * 1000 > now then return end
  local till, share = u48(told, TOLD.UNTIL), byte(told, TOLD.SHARE + 1)
  if till * 1000 <= now or till <= s.cooldown then return end
  if s.share > 0 and (share == 0 or s.share < share) then share = s.share end
  s.cooldown, s.share, s.since, s.moved, s.news = till, share, 0, true, true
end

-- take checks a cost against several sliding windows and charges all of them,
-- or none. One round trip; the clock is Redis' own.
--
-- KEYS[1]  the project's windows. It never expires: where it is missing, nobody
--          knows what was spent
-- KEYS[2]  the user's windows
-- KEYS[3]  which shapes of keys are in use for the project: a sorted set of the
--          projects' keys, by when each was used last
-- When a bucket ends it reads three more, whose names it makes, since each key costs
-- every call; all have the same hash tag:
--   settings   the project's live settings: u32 revision, and what is not for here
--   hold       the project's cool-down, and
--   hold:USER  the user's, as hold.lua tells them to keys of every shape
-- ARGV[1]  the request, little-endian and packed:
--            u32 cost      units to charge; 0 only looks, whatever is wanted
--            u32 want      grant up to this many, at least cost; 0: charge the cost
--                          whatever stands in its way, since it is spent
--            u32 width_us  of a bucket
--            u8  lane      0 interactive, 1 sync, 2 backfill: whose pace is checked;
--                          4 more when lending: when the background's ceilings
--                          follow what people ask for
--            u8  fresh     1: a missing project means that nothing was spent
--            u32 budget    units that this lane may bring the project's day to
--            u32 x 3       ends of yesterday, today and tomorrow, in s
--            u32 revision  of the live settings that the request was made by
--          then for the project, then for the user
--            u8  windows
--            u32 ttl_s     life of the key; 0: for ever
--          then per window
--            u32 ceiling   units up to which this lane may fill the window
--            u32 x 2       time that sync and backfill pay for a unit, whoever
--                          spends it, in 1/256 us; 0: no pace
--            u8  n         a unit counts in its own bucket and n more
--            u32 reserve   the ceiling while the windows are unknown
--            u32 x 3       limit, and when lending least and most that lane backfill
--                          may fill the window to
-- ARGV[2]  now_us, in tests only
--
-- Returns {granted, now_us, day, used...} when admitted, and when not
-- {-1, now_us, day, used..., wait_us, window, part, ceiling}. A look is never
-- refused; it returns {0, now_us, day, used..., ceiling..., then for the project
-- and for the user hold, unknown, share, lent}. A request that was made by
-- settings of another revision than the project's gets {-2, revision}.
--   day      units that the project has used of its day, before the decision
--   used     units in each window, before the decision
--   wait_us  until the cost fits if nobody else spends; -1: never
--   window   which one asked for the longest wait, counted over both keys; the
--            day comes after them
--   part     1 ceiling, 2 pace, 3 hold, 4 unknown windows
--   ceiling  as it is in force, of the window that bound, or of each: while the
--            windows are unknown, what is used and what the reserve leaves beside it
--   hold, unknown  until when, in ms; 0: not
--   share    of each limit that may be used since Google refused, in 1/1000
--   lent     how much the background's ceilings gave way, in 1/1000 of the limit
--
-- The value of a key is a preamble, a header per window, for the project its day,
-- and a ring per window. Preamble, 48 bytes:
--   u48 hold     until when the scope is closed, in ms; 0: open
--   u32 last     low bits of the number of the newest bucket, now_us / width_us
--   u8  shapes   how many shapes of keys share the project's limits
--   u48 unknown  until when the project's windows are unknown, in ms; 0: known
--   u8  share    of the limits that may be used since Google refused a call, in
--                1/255; 0: all
--   u48 since    when the share began to grow again, in ms; 0: it waits for a probe
--   u32 revision of the project's live settings; of a user's, as it was lately
--   12 bytes     the server that counted last: its run id and evictions
--   u32 burst    when lending: units that people spent in the last seconds
--   u32 peak     when lending: the largest burst of the last minutes
-- Header of a window, 16 bytes:
--   u32 rest     units in the older live buckets
--   u32 paid 2x  for sync and backfill: when its pace is paid off, in us since
--                CARRY buckets before the newest one began; 0: long ago
--   u32 cur      units in the newest bucket; they move to the ring when it ends
-- Day, 8 bytes:
--   u32 ends     when the day ends in which the units were spent, in s
--   u32 units
-- Ring of a window: n+1 x u32, bucket i at place i % (n+1).
--
-- A bucket leaves a window only when all of it is n buckets old, whatever the
-- alignment. An admission in a bucket that is open already, by far the commonest
-- case, writes nothing but paid and cur, and on its path numbers are taken apart
-- in line: a call costs more than the sums.

local call, byte, char, sub, rep = redis.call, string.byte, string.char, string.sub, string.rep
local PREAMBLE, HEADER, CUR = 48, 16, 12   -- bytes; of a header, where cur stands
local PAID_AT = '52'   -- where the first paid stands in a key, as text: Redis prints Lua numbers slowly
local FIRST, ENTRY, DAY = 34, 29, 8   -- bytes of the request before its first key and of a window; of a day
local CARRY = 5   -- buckets for which unused pace may be made up
local PROBE = 2   -- buckets that a call after a cool-down goes ahead of the others
local RAMP = 120  -- buckets in which a share grows from nothing to all
local BURST, PEAK = 10, 300   -- buckets in which people's demand is forgotten
local LENT = 1.5  -- how much of the largest burst is kept free when lending

local request, now = ARGV[1], ARGV[2]
if now then
  now = now + 0
else
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local a, b, c, d, e, f, g, h, i, j, k, l, lane = byte(request, 1, 13)
local cost, want = a + b * 256 + c * 65536 + d * 16777216, e + f * 256 + g * 65536 + h * 16777216
local width = i + j * 256 + k * 65536 + l * 16777216
local bucket = (now - now % width) / width
d = bucket % 4294967296
a = d % 256 d = (d - a) / 256
b = d % 256 d = (d - b) / 256
c = d % 256
local tag = char(a, b, c, (d - c) / 256)   -- how the newest bucket stands in a key when it is this one

local news   -- what holds for all although nothing is charged: a clock that is far behind made
             -- units young again, or keys of another shape were told of a cool-down

-- How a key begins about which there is nothing special.
local plain = '\0\0\0\0\0\0' .. tag .. '\1\0\0\0\0\0\0\0\0\0\0\0\0\0' .. sub(request, 31, 34)
local lending = lane > 3
if lending then lane = lane - 4 end
local reply = {cost, now, 0, 0, 0, 0}
-- For each key: its state, whether it moved on, what to write from the first paid on, ttl,
-- and its preamble if charging changes that too.
local state1, moved1, bytes1, ttl1, front1, state2, moved2, bytes2, ttl2, front2
local seen   -- what a look has seen
local admitted, charge = true, cost

-- Check all windows, and prepare what charging them would write. A lease goes
-- through them again with all that it can be granted.
while true do
  local p, w, wait, window, part, never, room, unknown, lost, shapes = FIRST, 3, 0, 0, 0, false, want, 0, 0, 1
  local most = 0   -- the ceiling of the window that bound
  if charge == 0 then seen = {} end
  for k = 1, 2 do
    local windows, ttl = byte(request, p + 1), p + 1   -- ttl: where it stands in the request
    p = p + 5
    -- Mostly, preamble and headers are all that is needed: here, of up to three windows.
    local state, complete, newest, moved, held = call('GETRANGE', KEYS[k], '0', '103'), false, bucket, false, 0
    local known, peak, front = 1, 0, nil   -- known: the share
    if unknown > 0 or shapes > 1 or windows > 3 or lending or charge == 0 or sub(state, 1, 28) ~= plain then
      state, complete = call('GET', KEYS[k]), true
      -- Not the common case: a bucket has ended, or there is something special. Its
      -- functions are made here because making them takes as long as a common call.
      --#include numbers.lua
      local base = sub(KEYS[3], 1, -7)   -- without "shapes"

      -- life is how long a unit counts at most in the windows of the key.
      local function life()
        local longest = 0
        for j = 1, windows do
          local n = byte(request, p + ENTRY * (j - 1) + 13)
          if n > longest then longest = n end
        end
        return (longest + 1) * width
      end

      -- server names the process that counts, and how many keys it has thrown away:
      -- when either changes, windows may have been lost. A server that does not say
      -- might lose them unnoticed. Only the embedded one, which keeps nothing, may.
      local function server()
        local info, stats = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'stats')
        if type(info) ~= 'string' and not string.find(info.err or '', 'is not supported', 1, true) then
          error('this Redis does not let us run INFO, by which a restart is noticed: ' .. (info.err or 'no text'))
        end
        local id = type(info) == 'string' and string.match(info, 'run_id:(%x%x%x%x%x%x%x%x)') or 'embedded'
        local evicted = type(stats) == 'string' and string.match(stats, 'evicted_keys:(%d+)') or 0
        return id .. pack(evicted % U32)
      end

      -- advance brings the state, whose newest bucket is not this one, up to date. It
      -- returns the state and the number of its newest bucket.
      local function advance(project)
        local headers, rings, ahead = '', '', 0
        if state then
          ahead = (bucket - u32(state, 6)) % U32
          if ahead >= U32 / 2 then ahead = ahead - U32 end
        end
        local last, ring = bucket - ahead, PREAMBLE + HEADER * windows + (project and DAY or 0)
        for j = 1, windows do
          local at, n = PREAMBLE + HEADER * (j - 1), byte(request, p + ENTRY * (j - 1) + 13)
          local slots = n + 1
          local empty = rep('\0', 4 * slots)
          if not state then
            headers, rings = headers .. rep('\0', HEADER), rings .. empty
          elseif ahead < 0 and -ahead <= n then
            return state, last   -- the clock stepped back a little: keep counting in the newest bucket
          elseif ahead < 0 then
            -- The clock is far behind what it was. Nothing is known of the ages, so all
            -- units count as spent just now.
            news = true
            headers, rings = headers .. rep('\0', CUR) .. pack(u32(state, at) + u32(state, at + CUR)), rings .. empty
          else
            local old, cur = u32(state, at), u32(state, at + CUR)   -- old: may hold units that left by now
            local rest = old + cur
            if ahead > n then
              rest, rings = 0, rings .. empty   -- all of it is old
            else
              for x = last + 1, bucket do
                if old == 0 then break end
                local v = u32(state, ring + 4 * (x % slots))
                old, rest = old - v, rest - v
              end
              -- cur goes to its place; those from there to the new bucket's are empty.
              local x, z = last % slots, bucket % slots
              if x < z then
                rings = rings .. sub(state, ring + 1, ring + 4 * x) .. pack(cur) .. sub(empty, 1, 4 * (z - x)) ..
                  sub(state, ring + 4 * z + 5, ring + 4 * slots)
              else
                rings = rings .. sub(empty, 1, 4 * z + 4) .. sub(state, ring + 4 * z + 5, ring + 4 * x) .. pack(cur) ..
                  sub(empty, 1, 4 * (n - x))
              end
            end
            headers = headers .. pack(rest)
            for paid = at + 4, at + 8, 4 do
              local left = u32(state, paid) - ahead * width
              headers = headers .. pack(left > 0 and left or 0)
            end
            headers = headers .. '\0\0\0\0'
          end
          ring = ring + 4 * slots
        end

        local day = project and (state and sub(state, PREAMBLE + HEADER * windows + 1, PREAMBLE + HEADER * windows + DAY) or rep('\0', DAY)) or ''
        local hold, unknown, shapes, mark = 0, 0, 1, rep('\0', 12)
        local share, since, revision, burst, peak = 0, 0, sub(request, 31, 34), 0, 0
        if state then
          hold, unknown, mark = u48(state, 0), u48(state, 11), sub(state, 29, 40)
          share, since, burst, peak = byte(state, 18), u48(state, 18), u32(state, 40), u32(state, 44)
          if since > 0 and share + 255 * (now - since * 1000) / (RAMP * width) >= 255 then share, since = 0, 0 end
          if ahead > 0 then   -- what people asked for is forgotten little by little
            burst, peak = math.floor(burst * (1 - 1 / BURST) ^ ahead), math.floor(peak * (1 - 1 / PEAK) ^ ahead)
          end
          local back = ahead < 0 and math.floor(ahead * width / 1000) or 0   -- what is left of a wait stays as long
          hold, unknown = hold > 0 and hold + back or 0, unknown > 0 and unknown + back or 0
          if since > 0 then since = math.max(1, since + back) end
          if hold * 1000 <= now then hold = 0 end
          if unknown * 1000 <= now then unknown = 0 end
        end
        if project then
          local ago, id = life(), server()
          if id ~= mark and (state or byte(request, 14) == 0) then
            unknown = math.ceil((now + ago) / 1000)
          end
          mark = id
          revision = call('GETRANGE', base .. 'settings', '0', '3')
          if revision == '' then revision = '\0\0\0\0' end
          -- Processes with keys of another shape do not see these windows: as long as
          -- there are some, each shape keeps to its part of the limits.
          call('ZADD', KEYS[3], now, KEYS[1])
          shapes = call('ZCOUNT', KEYS[3], now - ago, '+inf')
          if shapes > 1 then call('ZREMRANGEBYSCORE', KEYS[3], '-inf', '(' .. string.format('%.0f', now - ago)) end
        end
        return pack48(hold) .. tag .. char(shapes < 255 and shapes or 255) .. pack48(unknown) .. char(share) .. pack48(since) ..
          revision .. mark .. pack(burst) .. pack(peak) .. headers .. day .. rings, bucket
      end

      if not state or sub(state, 7, 10) ~= tag then
        state, newest = advance(k == 1)
        moved = true
      end
      if moved or shapes > 1 or k == 1 and byte(state, 11) > 1 then
        -- Whoever told of a cool-down may have had keys of another shape. One that
        -- was told of later than now is as old as the clock's step back.
        local told = call('GET', k == 1 and base .. 'hold' or base .. 'hold:' .. string.match(KEYS[2], ':user:(.*)', #base))
        if told and u48(told, 6) * 1000 <= now and u48(told, 0) * 1000 > now and u48(told, 0) > u48(state, 0) then
          local share, known = byte(told, 13), byte(state, 18)
          if known > 0 and (share == 0 or known < share) then share = known end
          state = sub(told, 1, 6) .. sub(state, 7, 17) .. char(share) .. '\0\0\0\0\0\0' .. sub(state, 25)
          moved, news = true, true
        end
      end
      held = u48(state, 0) * 1000 - now
      local share, since = byte(state, 18), u48(state, 18)
      if share > 0 then
        -- Google refused. When the cool-down is over one call goes ahead; if Google
        -- does not refuse that either, the share grows from then on. What is charged
        -- because it was spent already is no such call.
        known = share / 255
        if since > 0 and now > since * 1000 then known = math.min(1, known + (now - since * 1000) / (RAMP * width)) end
        if since == 0 and charge > 0 and want > 0 and held <= 0 then
          since = math.ceil((now + PROBE * width) / 1000)
          front = pack48(since) .. sub(state, 7, 18) .. pack48(since) .. sub(state, 25, PREAMBLE)
        end
      end
      if lending then
        local burst = u32(state, 40)
        peak = u32(state, 44)
        if lane == 0 and charge > 0 then
          front = front or sub(state, 1, PREAMBLE)
          front = sub(front, 1, 40) .. pack(burst + charge) .. pack(math.max(peak, burst + charge))
        end
      end
      if charge == 0 then
        seen[k] = {held > 0 and u48(state, 0) or 0, u48(state, 11) * 1000 > now and u48(state, 11) or 0, math.floor(known * 1000), 0}
      end
      if k == 1 and sub(state, 25, 28) ~= sub(request, 31, 34) then return {-2, u32(state, 24)} end
      if k == 1 then
        unknown, shapes = u48(state, 11) * 1000 - now, byte(state, 11)
        lost = math.floor((unknown + now - life()) / width)
      end
    end
    local bytes, stop = nil, PREAMBLE + HEADER * windows
    local ring = k == 1 and stop + DAY or stop
    local due = now - (newest - CARRY) * width   -- now, as paid counts
    local idle = due - CARRY * width
    for at = PREAMBLE, stop - 1, HEADER do
      local a, b, c, d, e, f, g, h, i, j, l, m, n = byte(request, p + 1, p + 13)
      local ceiling = a + b * 256 + c * 65536 + d * 16777216
      local sync, backfill = (e + f * 256 + g * 65536 + h * 16777216) / 256, (i + j * 256 + l * 65536 + m * 16777216) / 256
      local whole, kept = ceiling, 1
      if peak > 0 then
        -- What people may want next is kept free: all background ceilings shrink as
        -- much as that of lane backfill, and so do their paces.
        local a, b, c, d, e, f, g, h, i, j, l, m = byte(request, p + 18, p + ENTRY)
        local limit, least = a + b * 256 + c * 65536 + d * 16777216, e + f * 256 + g * 65536 + h * 16777216
        local top = i + j * 256 + l * 65536 + m * 16777216
        kept = math.max(least, math.min(top, limit - LENT * peak)) / top
        sync, backfill = sync / kept, backfill / kept
        if lane > 0 then ceiling = ceiling * kept end
        if seen then seen[k][4] = math.max(seen[k][4], math.floor((1 - kept) * top / limit * 1000)) end
      end
      if shapes > 1 or known < 1 or kept < 1 then
        ceiling, sync, backfill = math.floor(ceiling * known / shapes), sync * shapes / known, backfill * shapes / known
      end
      p, w = p + ENTRY, w + 1
      if seen then seen[w] = ceiling end
      local o, q, r, s
      a, b, c, d, e, f, g, h, i, j, l, m, o, q, r, s = byte(state, at + 1, at + 16)
      local cur = o + q * 256 + r * 65536 + s * 16777216
      local total = a + b * 256 + c * 65536 + d * 16777216 + cur
      local this, why, free = held, 3, ceiling - total
      reply[w] = total
      if unknown > 0 then
        -- What was spent since then must fit into the reserve.
        local a, b, c, d = byte(request, p - ENTRY + 14, p - ENTRY + 17)
        local reserve = math.floor((a + b * 256 + c * 65536 + d * 16777216) / shapes) - cur
        for x = lost > newest - n and lost or newest - n, newest - 1 do
          local a, b, c, d = byte(state, ring + 4 * (x % (n + 1)) + 1, ring + 4 * (x % (n + 1)) + 4)
          reserve = reserve - (a + b * 256 + c * 65536 + d * 16777216)
        end
        if charge > reserve and charge > 0 and unknown > this then this, why = unknown, 4 end
        if reserve < room then room = reserve end
        -- A look sees as the ceiling what decides: what is used, and what may come.
        if seen and total + reserve < seen[w] then seen[w] = total + (reserve > 0 and reserve or 0) end
      end
      if free < room then room = free end
      if charge > free and charge > 0 then
        if charge > whole and not never then never, window, part, most = true, w, 1, whole end
        -- Wait until enough of the oldest buckets have left.
        if not complete then state, complete = call('GET', KEYS[k]), true end
        local missing, x = charge - free, newest - n
        while missing > 0 and x < newest do
          local a, b, c, d = byte(state, ring + 4 * (x % (n + 1)) + 1, ring + 4 * (x % (n + 1)) + 4)
          missing, x = missing - (a + b * 256 + c * 65536 + d * 16777216), x + 1
        end
        if missing > 0 then x = x + 1 end
        local left = (x + n) * width - now
        if left > this then this, why = left, 1 end
      end

      -- A lane's pace is a debt that is paid off with time: a call is let in when
      -- nothing is owed, and what anybody spends adds to it, as it adds to the
      -- window. Who comes up to CARRY buckets late makes up for them, so that no cost
      -- loses to its own coarseness; who comes later has been idle, and begins anew.
      -- Nobody owes for longer than a unit counts, however much others spend.
      local paid1, paid2 = e + f * 256 + g * 65536 + h * 16777216, i + j * 256 + l * 65536 + m * 16777216
      if lane > 0 then
        local paid, interval = paid1, sync
        if lane == 2 then paid, interval = paid2, backfill end
        if interval > 0 then
          if paid > 0 and paid - due > this and charge > 0 then this, why = paid - due, 2 end
          if want > charge then   -- a lease takes no more than a bucket's worth
            local share = width / interval
            if share < room then room = share - share % 1 end
          end
        end
      end
      if this > wait then
        wait = this
        if not never then window, part, most = w, why, ceiling end
      end

      -- The end of the header as it is to be if the cost is charged.
      cur = cur + charge
      o = cur % 256 cur = (cur - o) / 256
      q = cur % 256 cur = (cur - q) / 256
      r = cur % 256
      if sync > 0 then
        if paid1 == 0 or paid1 < idle then paid1 = due > 0 and due or 0 end
        paid1 = paid1 + charge * sync
        if paid1 > due + (n + 1) * width then paid1 = due + (n + 1) * width end
        paid1 = paid1 - paid1 % 1
        e = paid1 % 256 paid1 = (paid1 - e) / 256
        f = paid1 % 256 paid1 = (paid1 - f) / 256
        g = paid1 % 256
        h = (paid1 - g) / 256
      end
      if backfill > 0 then
        if paid2 == 0 or paid2 < idle then paid2 = due > 0 and due or 0 end
        paid2 = paid2 + charge * backfill
        if paid2 > due + (n + 1) * width then paid2 = due + (n + 1) * width end
        paid2 = paid2 - paid2 % 1
        i = paid2 % 256 paid2 = (paid2 - i) / 256
        j = paid2 % 256 paid2 = (paid2 - j) / 256
        l = paid2 % 256
        m = (paid2 - l) / 256
      end
      local tail = char(e, f, g, h, i, j, l, m, o, q, r, (cur - r) / 256)
      bytes = bytes and bytes .. char(a, b, c, d) .. tail or tail
      ring = ring + 4 * (n + 1)
    end
    if k == 1 then
      -- The day: if the one that units were spent in is over, they count no longer,
      -- and the day is the first whose end is still to come. A clock that stepped
      -- back stays in the later day.
      local a, b, c, d, e, f, g, h = byte(state, stop + 1, stop + DAY)
      local day, spent = a + b * 256 + c * 65536 + d * 16777216, e + f * 256 + g * 65536 + h * 16777216
      if day * 1000000 <= now then
        spent = 0
        for x = 19, 27, 4 do
          a, b, c, d = byte(request, x, x + 3)
          day = a + b * 256 + c * 65536 + d * 16777216
          if day * 1000000 > now then break end
        end
      end
      e, f, g, h = byte(request, 15, 18)
      local budget = e + f * 256 + g * 65536 + h * 16777216
      reply[3] = spent
      if budget - spent < room then room = budget - spent end
      if charge > budget - spent and charge > 0 then
        local left = day * 1000000 - now
        if charge > budget and not never then never, window, part, most = true, -1, 1, budget end
        if left > wait then
          wait = left
          if not never then window, part, most = -1, 1, budget end
        end
      end
      spent = spent + charge
      if spent > 4294967295 then spent = 4294967295 end
      e = spent % 256 spent = (spent - e) / 256
      f = spent % 256 spent = (spent - f) / 256
      g = spent % 256
      bytes = bytes .. char(a, b, c, d, e, f, g, (spent - g) / 256)
    end
    if moved or front then
      local a, b, c, d = byte(request, ttl + 1, ttl + 4)
      ttl = a + b * 256 + c * 65536 + d * 16777216
      if ttl > 0 and held > 0 then ttl = ttl + math.ceil(held / 1000000) end
    end
    if k == 1 then
      state1, moved1, bytes1, ttl1, front1 = state, moved, bytes, ttl, front
    else
      state2, moved2, bytes2, ttl2, front2 = state, moved, bytes, ttl, front
    end
  end

  reply[1] = charge
  if charge == 0 then
    local n = w
    for x = 4, w do
      n = n + 1
      reply[n] = seen[x]
    end
    for k = 1, 2 do
      for x = 1, 4 do reply[n + x] = seen[k][x] end
      n = n + 4
    end
    break
  end
  if (never or wait > 0) and want > 0 then
    admitted, reply[1] = false, -1
    reply[w + 1], reply[w + 2], reply[w + 3], reply[w + 4] = never and -1 or wait, window < 0 and w - 2 or window - 3, part, most
    break
  end
  if want <= charge or room <= charge then break end
  want, charge = room, room
end

for k = 1, 2 do
  local state, moved, bytes, ttl, front = state1, moved1, bytes1, ttl1, front1
  if k == 2 then state, moved, bytes, ttl, front = state2, moved2, bytes2, ttl2, front2 end
  local charged = admitted and charge > 0
  if charged and not moved and not front then
    call('SETRANGE', KEYS[k], PAID_AT, bytes)
  elseif charged or moved and (news or k == 1) then
    -- Also without a charge, what was found out about the server, the shapes and a
    -- cool-down holds for all callers, and units that became young again must begin
    -- to age.
    if charged then
      state = (front or sub(state, 1, PREAMBLE)) .. sub(state, PREAMBLE + 1, PREAMBLE + 4) .. bytes .. sub(state, PREAMBLE + 5 + #bytes)
    end
    if ttl > 0 then
      call('SET', KEYS[k], state, 'EX', ttl)
    else
      call('SET', KEYS[k], state)
    end
  end
end
return reply

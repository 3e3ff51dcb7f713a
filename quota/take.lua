-- take checks a cost against several sliding windows and charges all of them,
-- or none. One round trip; the clock is Redis' own.
--
-- KEYS[k]  one string per scope (a user, a project), with the state of its
--          windows: a preamble, then a header per window, then a ring per window.
-- ARGV[1]  the request, little-endian and packed:
--            u32 cost      units to charge; 0 only looks, whatever is wanted
--            u32 want      grant up to this many, at least cost
--            u32 width_us  of a bucket
--            u8  lane      0, 1 or 2: whose pace is checked
--          then per key
--            u8  windows
--            u32 ttl_s     life of the key; longer than its longest window
--          then per window of that key
--            u32 ceiling   units up to which this lane may fill the window
--            u32 interval  time that the lane pays for a unit, in 1/256 us; 0: no pace
--            u8  n         a unit counts in its own bucket and n more
-- ARGV[2]  now_us, in tests only
--
-- Returns {admitted 0|1, granted, wait_us, window, part, now_us, used...}.
--   window  which window asked for the longest wait, counted over all keys
--   part    1 ceiling, 2 pace, 3 hold; wait_us -1: the cost can never fit
--   used    units in each window before the decision
--
-- Preamble, 10 bytes:
--   u48 hold     until when the scope is closed, in ms; 0: open
--   u32 last     low bits of the number of the newest bucket, now_us / width_us
-- Header of a window, 20 bytes:
--   u32 rest     units in the older live buckets
--   u32 paid 3x  per lane: when its pace is paid off, in us since 3 buckets
--                before the newest one began; 0: long ago
--   u32 cur      units in the newest bucket; they move to the ring when it ends
-- Ring of a window: n+1 x u32, bucket i at place i % (n+1).
--
-- A bucket leaves a window only when all of it is n buckets old, whatever the
-- alignment. Numbers are taken apart by hand because the embedded Redis has no
-- struct library; in line on the path of an admission in a bucket that is open
-- already, by far the commonest case, which writes nothing but paid and cur.
local call, byte, char, sub, rep = redis.call, string.byte, string.char, string.sub, string.rep

local PREAMBLE, HEADER, U32 = 10, 20, 4294967296

-- u32 reads the number that stands behind the first i bytes of s.
local function u32(s, i)
  local a, b, c, d = byte(s, i + 1, i + 4)
  return a + b * 256 + c * 65536 + d * 16777216
end

local function pack(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256
  return char(a, b, c, (v - c) / 256)
end

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
local tag = pack(bucket % U32)
-- Where the lane's pace stands in a header; and as text, with that of cur, where
-- they stand in a key: Redis prints Lua numbers slowly.
local PAID, PAID_AT, CUR, CUR_AT = 4 + 4 * lane, lane == 2 and '22' or lane == 1 and '18' or '14', 16, '26'

local restamped   -- a clock that is far behind made units young again

-- advance brings the state of a key, whose newest bucket is not this one, up to
-- date; p is where its windows stand in the request. It returns the state and
-- the number of its newest bucket.
local function advance(state, p, windows)
  local headers, rings = '', ''
  local ahead, hold = 0, state and sub(state, 1, 6) or '\0\0\0\0\0\0'
  if state then
    ahead = (bucket - u32(state, 6)) % U32
    if ahead >= U32 / 2 then ahead = ahead - U32 end
  end
  local last, ring = bucket - ahead, PREAMBLE + HEADER * windows
  for j = 1, windows do
    local at, n = PREAMBLE + HEADER * (j - 1), byte(request, p + 9 * j)
    local slots = n + 1
    local empty = rep('\0', 4 * slots)
    if not state then
      headers, rings = headers .. rep('\0', HEADER), rings .. empty
    elseif ahead < 0 and -ahead <= n then
      return state, last   -- the clock stepped back a little: keep counting in the newest bucket
    elseif ahead < 0 then
      -- The clock is far behind what it was. Nothing is known of the ages, so all
      -- units count as spent just now.
      restamped = true
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
      for paid = at + 4, at + 12, 4 do
        local left = u32(state, paid) - ahead * width
        headers = headers .. pack(left > 0 and left or 0)
      end
      headers = headers .. '\0\0\0\0'
    end
    ring = ring + 4 * slots
  end
  return hold .. tag .. headers .. rings, bucket
end

local open = '\0\0\0\0\0\0' .. tag   -- the preamble of a key without a hold, when its newest bucket is this one
local reply = {1, 0, 0, 0, 0, now, 0, 0}
local writes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}   -- per key: state, whether it moved, from where to write, what, ttl
local admitted, charge = true, cost

-- Check all windows, and prepare what charging them would write. A lease goes
-- through them again with all that it can be granted.
while true do
  local p, w, wait, never, room = 13, 0, 0, false, want
  for k = 1, #KEYS do
    local windows, t0, t1, t2, t3 = byte(request, p + 1, p + 5)
    p = p + 5
    local state, newest, moved, held = call('GET', KEYS[k]), bucket, false, 0
    if not state or sub(state, 1, 10) ~= open then
      if not state or sub(state, 7, 10) ~= tag then
        state, newest = advance(state, p, windows)
        moved = true
      end
      held = u32(state, 0) + (byte(state, 5) + byte(state, 6) * 256) * U32
      if held > 0 then held = held * 1000 - now end
    end
    local from, bytes, ring = nil, nil, PREAMBLE + HEADER * windows
    for at = PREAMBLE, ring - 1, HEADER do
      local a, b, c, d, e, f, g, h, n = byte(request, p + 1, p + 9)
      local ceiling, interval = a + b * 256 + c * 65536 + d * 16777216, e + f * 256 + g * 65536 + h * 16777216
      p, w = p + 9, w + 1
      a, b, c, d = byte(state, at + 1, at + 4)
      local total = a + b * 256 + c * 65536 + d * 16777216
      a, b, c, d = byte(state, at + 17, at + 20)
      local cur = a + b * 256 + c * 65536 + d * 16777216
      total = total + cur
      local free, this, part = ceiling - total, held, 3
      reply[6 + w] = total
      if free < room then room = free end

      if charge > free and charge > 0 then
        if charge > ceiling and not never then
          never, reply[4], reply[5] = true, w, 1
        end
        -- Wait until enough of the oldest buckets have left.
        local missing, x = charge - free, newest - n
        while missing > 0 and x < newest do
          missing, x = missing - u32(state, ring + 4 * (x % (n + 1))), x + 1
        end
        if missing > 0 then x = x + 1 end
        local left = (x + n) * width - now
        if left > this then this, part = left, 1 end
      end

      cur = cur + charge
      a = cur % 256 cur = (cur - a) / 256
      b = cur % 256 cur = (cur - b) / 256
      c = cur % 256
      local tail, cut   -- the end of the header as it is to be, and how much before it stays
      if interval == 0 then
        tail, cut = char(a, b, c, (cur - c) / 256), CUR
      else
        -- The lane's pace is a debt that is paid off with time: a call is let in
        -- when nothing is owed, and then adds what it costs. Time left unused is
        -- made up for within three buckets, so that no cost loses to its own
        -- coarseness, nor a caller that comes a little late.
        local e, f, g, h = byte(state, at + PAID + 1, at + PAID + 4)
        local paid, due = e + f * 256 + g * 65536 + h * 16777216, now - (newest - 3) * width
        if paid > 0 and paid - due > this and charge > 0 then this, part = paid - due, 2 end
        if paid < due - 3 * width then paid = due - 3 * width end
        paid = paid + charge * interval / 256
        paid = paid - paid % 1
        e = paid % 256 paid = (paid - e) / 256
        f = paid % 256 paid = (paid - f) / 256
        g = paid % 256
        if lane == 2 then
          tail = char(e, f, g, (paid - g) / 256, a, b, c, (cur - c) / 256)
        else
          tail = char(e, f, g, (paid - g) / 256) .. sub(state, at + PAID + 5, at + CUR) .. char(a, b, c, (cur - c) / 256)
        end
        cut = PAID
        local share = 256 * width / interval   -- a lease takes no more than a bucket's worth
        if share < room then room = share - share % 1 end
      end
      if this > wait then
        wait = this
        if not never then reply[4], reply[5] = w, part end
      end
      if from then
        bytes = bytes .. sub(state, at + 1, at + cut) .. tail
      else
        from, bytes = cut == CUR and CUR_AT or PAID_AT, tail
      end
      ring = ring + 4 * (n + 1)
    end
    local i = 5 * k - 5
    writes[i + 1], writes[i + 2], writes[i + 3], writes[i + 4] = state, moved, from, bytes
    if moved then writes[i + 5] = t0 + t1 * 256 + t2 * 65536 + t3 * 16777216 end
  end

  if never or wait > 0 then
    admitted, reply[1], reply[3] = false, 0, never and -1 or wait
    break
  end
  reply[2] = charge
  if charge == 0 or want <= charge or room <= charge then break end
  want, charge = room, room
end

for k = 1, #KEYS do
  local i = 5 * k - 5
  local state, moved, from, bytes = writes[i + 1], writes[i + 2], writes[i + 3], writes[i + 4]
  if admitted and charge > 0 then
    if moved then
      from = from + 0
      call('SET', KEYS[k], sub(state, 1, from) .. bytes .. sub(state, from + #bytes + 1), 'EX', writes[i + 5])
    else
      call('SETRANGE', KEYS[k], from, bytes)
    end
  elseif restamped and moved then
    call('SET', KEYS[k], state, 'EX', writes[i + 5])   -- units that became young again must begin to age
  end
end
return reply

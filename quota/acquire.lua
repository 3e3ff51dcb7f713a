-- acquire admits a call or refuses it: it checks the cost against all windows of the
-- project and the user, against the project's day, and against the calls that the
-- user has in flight, and then charges all of them and takes a slot in flight, or
-- changes nothing. One round trip; the clock is Redis' own.
--
-- KEYS[1]  the project's windows. The key never expires: where it is missing, nobody
--          knows what was spent
-- KEYS[2]  the user's windows
-- KEYS[3]  the user's slots in flight, and
-- KEYS[4]  what was learned of them, and the bytes of the user's day: see inflight.lua
-- Each key costs every call, so the names of four more are made where they are needed
-- (all have the same hash tag): shapes, settings, hold and hold:USER; see scope.lua.
-- ARGV[1]  the request, packed: REQUEST, SCOPE and WINDOW of layout.go
-- ARGV[2]  name of the slot; empty: the call needs none
-- ARGV[3]  now_us, in tests only
--
-- Returns, when the call is admitted,
--   {cost, now_us, in flight, day, used...}
-- when it is refused,
--   {-1, now_us, in flight, day, used..., wait_us, window, part, most}
-- to a look, which is never refused,
--   {0, now_us, 0, day, used..., ceiling..., then for the project and for the user
--   cooldown, unknown, share, lent}
-- and to a request that was made by settings of another revision than the project's
--   {-2, revision}
--   in flight  calls of the user, this one included if it is admitted; bytes of the
--            day if those refused it
--   day      units that the project has used of its day, before the decision
--   used     units in each window, before the decision
--   wait_us  until the cost fits if nobody else spends; -1: never; 0: nobody knows
--   window   which one asked for the longest wait, counted over both keys; the day
--            comes after them; 0: none
--   part     1 ceiling, 2 pace, 3 cool-down, 4 unknown windows, 5 calls in flight,
--            6 bytes
--   most     the ceiling as it is in force, of what refused. While the windows are
--            unknown a look sees what is used and what the reserve leaves beside it
--   cooldown, unknown  until when, in ms; 0: not
--   share    of each limit that may be used since Google refused, in 1/1000
--   lent     how much the background's ceilings gave way, in 1/1000 of the limit
--
-- What comes next in this file admits the common call: one that fits, in a bucket
-- that is open already, of scopes about which there is nothing special. It reads the
-- beginning of both scopes and overwrites twelve bytes of each window. Everything
-- else is for decide.lua, whose functions are made only there, since making them takes
-- as long as a common call. Both decide alike; the model test holds them to it.
--
-- Offsets that redis.call gets are texts, since it prints numbers slowly.

local call, byte, char, sub, rep = redis.call, string.byte, string.char, string.sub, string.rep
--#include numbers.lua

-- four reads the four numbers that stand behind the first i bytes of s.
local function four(s, i)
  local a, b, c, d, e, f, g, h, j, k, l, m, n, o, p, q = byte(s, i + 1, i + 16)
  return a + b * 256 + c * 65536 + d * 16777216, e + f * 256 + g * 65536 + h * 16777216,
    j + k * 256 + l * 65536 + m * 16777216, n + o * 256 + p * 65536 + q * 16777216
end

-- three writes three numbers.
local function three(x, y, z)
  local a, e, j = x % 256, y % 256, z % 256
  x, y, z = (x - a) / 256, (y - e) / 256, (z - j) / 256
  local b, f, k = x % 256, y % 256, z % 256
  x, y, z = (x - b) / 256, (y - f) / 256, (z - k) / 256
  local c, g, l = x % 256, y % 256, z % 256
  return char(a, b, c, (x - c) / 256, e, f, g, (y - g) / 256, j, k, l, (z - l) / 256)
end

-- owed adds a cost to the debt of a lane's pace, which is paid off with time: paid is
-- when, and due is now, on the same scale. A call is let in when nothing is owed, and
-- what anybody spends adds to it, as it adds to the window. Who comes up to
-- PACE.CARRY buckets late makes up for them, so that no cost loses to its own
-- coarseness; who comes later, since idle, has been idle and begins anew. Nobody owes
-- for longer than a unit counts, however much others spend.
local function owed(paid, price, due, idle, longest)
  if price == 0 then return paid end
  if paid == 0 or paid < idle then paid = due > 0 and due or 0 end
  paid = paid + price
  if paid > longest then paid = longest end
  return paid - paid % 1
end

local request, slot, now = ARGV[1], ARGV[2], ARGV[3]
if now then
  now = now + 0
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local cost, budget, width, most_in_flight = four(request, REQUEST.COST)
local lane, lending, _, spent = byte(request, REQUEST.LANE + 1, REQUEST.SPENT + 1)
local bucket = (now - now % width) / width
local reply = {cost, now, 0, 0, 0, 0}

-- charged returns the headers of a scope, from the first SYNC_PAID on, as they are
-- when the cost is charged to its windows; nil if it does not fit. The scope's
-- windows stand behind the first at bytes of the request, and what they have used
-- comes into the reply behind its first n numbers.
local function charged(state, at, windows, cost, lane, due, width, n)
  local headers
  for i = 1, windows do
    local ceiling, sync, backfill, buckets = four(request, at)
    local header = PREAMBLE.SIZE - HEADER.SIZE + HEADER.SIZE * i
    local rest, sync_paid, backfill_paid, current = four(state, header)
    local used = rest + current
    reply[n + i] = used
    if used + cost > ceiling or lane == 1 and sync > 0 and sync_paid > due or lane == 2 and backfill > 0 and backfill_paid > due then
      return nil
    end
    local idle, longest = due - PACE.CARRY * width, due + (buckets + 1) * width
    local charge = three(owed(sync_paid, cost * sync / 256, due, idle, longest),
      owed(backfill_paid, cost * backfill / 256, due, idle, longest), current + cost)
    headers = headers and headers .. sub(state, header + 1, header + HEADER.SYNC_PAID) .. charge or charge
    at = at + WINDOW.SIZE
  end
  return headers
end

-- How a scope begins about which there is nothing special.
local plain = '\0\0\0\0\0\0' .. pack(bucket % U32) .. '\1\0\0\0\0\0\0\0\0\0\0\0\0\0' ..
  sub(request, REQUEST.REVISION + 1, REQUEST.YESTERDAY)
local project, user = call('GETRANGE', KEYS[1], '0', 'COMMON.LAST'), call('GETRANGE', KEYS[2], '0', 'COMMON.LAST')
if sub(project, 1, PREAMBLE.SERVER) == plain and sub(user, 1, PREAMBLE.SERVER) == plain and
    cost > 0 and lending == 0 and spent == 0 then
  local due = now - (bucket - PACE.CARRY) * width
  local windows = byte(request, REQUEST.SIZE + 1)
  local user_at = REQUEST.SIZE + SCOPE.SIZE + WINDOW.SIZE * windows
  local day = PREAMBLE.SIZE + HEADER.SIZE * windows
  local day_ends, day_units = four(project, day)
  local fits = day_ends * 1000000 > now and day_units + cost <= budget
  local project_headers = fits and charged(project, REQUEST.SIZE + SCOPE.SIZE, windows, cost, lane, due, width, 4)
  local user_headers = project_headers and charged(user, user_at + SCOPE.SIZE, byte(request, user_at + 1), cost, lane, due, width, 4 + windows)
  if user_headers and slot ~= '' then
    local count = call('ZCARD', KEYS[3])
    if count < most_in_flight then
      call('ZADD', KEYS[3], now + SLOT.LIFE, slot)
      if count == 0 then call('PEXPIRE', KEYS[3], 'SLOT.KEPT') end
      reply[3] = count + 1
    else
      user_headers = nil
    end
  end
  if user_headers then
    call('SETRANGE', KEYS[1], 'COMMON.PAID', project_headers .. sub(project, day + 1, day + DAY.UNITS) .. pack(day_units + cost))
    call('SETRANGE', KEYS[2], 'COMMON.PAID', user_headers)
    reply[4] = day_units
    return reply
  end
end
--#include decide.lua

-- cooldown closes a scope for everybody until a moment. It never shortens an earlier
-- cool-down. When it is told of a refusal of Google's, the share of the limits that the
-- scope may use is halved, once for all refusals until a call has gone ahead again.
-- Where that leaves little, Google refuses again and again after the moments that it
-- names, and the scope is closed for a while whatever this one is: 12 s of quota time
-- at a quarter, 30 s at a tenth.
--
-- An isolated refusal, which names no moment while next to nothing was spent, is
-- likely no limit of ours: it closes the scope for two seconds and takes next to
-- nothing of the share. If the call that goes ahead then is refused as well, the
-- share is halved, and the scope closed for longer each time: 8 s, 32 s, and then
-- for as long as any other refusal.
--
-- KEYS[1]  the scope's windows: see layout.go
-- KEYS[2]  what is told of the cool-down to processes whose keys have another shape,
--          also those that start later: TOLD, then what is known of it, as text
-- ARGV[1]  duration, in ms
-- ARGV[2]  width of a bucket, in us
-- ARGV[3]  bytes of the key's value
-- ARGV[4]  life of the key, in s, after the cool-down; 0: for ever
-- ARGV[5]  0: learn nothing; 1: learn; 2: learn of an isolated refusal
-- ARGV[6]  what is known of it, as text
-- ARGV[7]  now_us, in tests only
--
-- Returns {until when the scope is closed, until when it was before or 0, now}, in ms.
--#include numbers.lua
--#include wide.lua
local call, sub, rep = redis.call, string.sub, string.rep
local ALL, LEAST = 255, 26    -- shares are in 1/255; the smallest
local LITTLE, CALM = 64, 3    -- a share that is little; buckets over the share to be closed then
local FIRST = 250             -- the share after an isolated refusal: whole again two buckets later
local SHORT = {{128, 8}, {64, 32}}   -- shares down to which an isolated refusal closes for so many buckets
local now = ARGV[7]
if now then
  now = now + 0
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local duration, width, size, life = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local learn, isolated, about = ARGV[5] ~= '0', ARGV[5] == '2', ARGV[6]

-- fresh is an empty scope whose newest bucket is the one before this: acquire.lua looks
-- at it again, and finds out whether it was empty or lost.
local function fresh()
  local bucket = (now - now % width) / width
  local state = rep('\0', PREAMBLE.NEWEST) .. pack((bucket - 1) % U32) .. '\1'
  return state .. rep('\0', size - #state)
end

-- after is the moment so many buckets from now, in ms.
local function after(buckets) return math.ceil((now + buckets * width) / 1000) end

-- grown is a share that has grown since a moment, in ms; 0: not yet.
local function grown(share, since)
  if since == 0 or now <= since * 1000 then return share end
  return math.min(ALL, share + ALL * (now - since * 1000) / (SHARE.RAMP * width))
end

-- lesson is what a refusal that closes the scope until a moment makes of its share:
-- until when it is closed, the share, and since when that grows; 0: when a call has
-- gone ahead.
local function lesson(till, share, since)
  if isolated and share > 0 and since == 0 then
    return 0, share, since   -- it was on its way with one that is known, which closed the scope already
  end
  if isolated and (share == 0 or now >= since * 1000) then
    -- Nothing was refused lately, or the call that went ahead after it was not.
    if share == 0 then share = FIRST end
    return math.min(till, after(2)), math.min(FIRST, math.floor(grown(share, since))), 0
  end
  if learn and (share == 0 or since > 0) then
    if share == 0 then share = ALL end
    share = math.max(LEAST, math.floor(grown(share, since) / 2))
    if isolated then
      for _, step in ipairs(SHORT) do
        if share >= step[1] - 8 then
          till = math.min(till, after(step[2]))
          break
        end
      end
    end
    if share <= LITTLE then till = math.max(till, after(CALM * ALL / share)) end
    return till, share, 0
  end
  return till, share, since
end

local state, told = call('GET', KEYS[1]) or fresh(), call('GET', KEYS[2])
local till, share, since = lesson(math.ceil(now / 1000 + duration), string.byte(state, PREAMBLE.SHARE + 1), u48(state, PREAMBLE.SINCE))
local before = u48(state, PREAMBLE.COOLDOWN)
if told and u48(told, TOLD.AT) * 1000 <= now then before = math.max(before, u48(told, TOLD.UNTIL)) end
if before * 1000 <= now then before = 0 end
if before > till then till, about = before, told and sub(told, TOLD.SIZE + 1) or '' end

local left = math.ceil((till * 1000 - now) / 1000000)   -- in s
state = pack48(till) .. sub(state, PREAMBLE.NEWEST + 1, PREAMBLE.SHARE) .. string.char(share) .. pack48(since) .. sub(state, PREAMBLE.REVISION + 1)
if life > 0 then
  call('SET', KEYS[1], state, 'EX', life + left)
else
  call('SET', KEYS[1], state)
end
if till * 1000 > now then
  call('SET', KEYS[2], pack48(till) .. pack48(math.floor(now / 1000)) .. string.char(share) .. about, 'EX', left)
end
return {till, before, math.floor(now / 1000)}

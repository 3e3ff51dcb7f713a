-- hold closes a scope for everybody: a cool-down. It never shortens one. When it
-- learns from a refusal of Google's, the share of the limits that the scope may
-- use is halved, once for all refusals until a call has gone ahead again. Where that
-- leaves little, Google refuses again and again after the moments that it names, and
-- the scope is closed for a while whatever this one is: 12 s of quota time at a
-- quarter, 30 s at a tenth.
--
-- An isolated refusal, which names no moment while next to nothing was spent, is
-- likely no limit of ours: it closes the scope for two seconds and takes next to
-- nothing of the share. If the call that goes ahead then is refused as well, the
-- share is halved, and the scope closed for longer each time: 8 s, 32 s, and then
-- for as long as any other refusal.
--
-- KEYS[1]  the scope's windows, as take.lua keeps them
-- KEYS[2]  the scope's cool-down, for processes whose keys have another shape, also
--          those that start later: u48 until when, in ms; u48 told when, in ms; u8 share;
--          then what is known of it, as text, for people
-- ARGV[1]  duration, in ms
-- ARGV[2]  width of a bucket, in us
-- ARGV[3]  bytes of the key's value
-- ARGV[4]  life of the key, in s, after the hold; 0: for ever
-- ARGV[5]  1: learn; 2: learn of an isolated refusal
-- ARGV[6]  what is known of it, as text
-- ARGV[7]  now_us, in tests only
--
-- Returns {until when the scope is closed, until when it was before or 0, now}, in ms.
--#include numbers.lua
local call, sub, rep = redis.call, string.sub, string.rep
local RAMP, LEAST = 120, 26   -- as in take.lua; the smallest share, in 1/255
local LITTLE, CALM = 64, 3    -- a share that is little, in 1/255; buckets over the share to be closed then
local FIRST = 250             -- the share after an isolated refusal, in 1/255: whole again two buckets later
local SHORT = {{128, 8}, {64, 32}}   -- shares down to which an isolated refusal closes for so many buckets
local now = ARGV[7]
if now then
  now = now + 0
else
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local width, ttl = ARGV[2] + 0, ARGV[4] + 0
local isolated = ARGV[5] == '2'
local hold = math.ceil(now / 1000 + ARGV[1])
local state = call('GET', KEYS[1])
if not state then
  -- An empty scope whose newest bucket is the one before this: take looks at it
  -- again, and finds out whether it was empty or lost.
  local bucket = (now - now % width) / width
  state = rep('\0', 6) .. pack((bucket - 1) % U32) .. '\1'
  state = state .. rep('\0', ARGV[3] - #state)
end
local share, since = string.byte(state, 18), u48(state, 18)
if isolated and share > 0 and since == 0 then
  hold = 0   -- it was on its way with one that is known, which closed the scope already
elseif isolated and (share == 0 or now >= since * 1000) then
  -- Nothing was refused lately, or the call that went ahead after it was not.
  if share == 0 then share = FIRST end
  share = math.min(FIRST, math.floor(share + math.max(0, 255 * (now - since * 1000) / (RAMP * width))))
  since = 0
  hold = math.min(hold, math.ceil((now + 2 * width) / 1000))
elseif ARGV[5] ~= '0' and (share == 0 or since > 0) then
  if share == 0 then share = 255 end
  if now > since * 1000 and since > 0 then
    share = math.min(255, share + 255 * (now - since * 1000) / (RAMP * width))
  end
  share, since = math.max(LEAST, math.floor(share / 2)), 0
  if isolated then
    for _, step in ipairs(SHORT) do
      if share >= step[1] - 8 then
        hold = math.min(hold, math.ceil((now + step[2] * width) / 1000))
        break
      end
    end
  end
  if share <= LITTLE then hold = math.max(hold, math.ceil((now + CALM * width * 255 / share) / 1000)) end
end
local before, text = u48(state, 0), ARGV[6]
local told = call('GET', KEYS[2])
if told and u48(told, 6) * 1000 <= now then before = math.max(before, u48(told, 0)) end
if before * 1000 <= now then before = 0 end
if before > hold then hold, text = before, told and sub(told, 14) or '' end
state = pack48(hold) .. sub(state, 7, 17) .. string.char(share) .. pack48(since) .. sub(state, 25)
if ttl > 0 then
  call('SET', KEYS[1], state, 'EX', ttl + math.ceil((hold * 1000 - now) / 1000000))
else
  call('SET', KEYS[1], state)
end
if hold * 1000 > now then
  call('SET', KEYS[2], pack48(hold) .. pack48(math.floor(now / 1000)) .. string.char(share) .. text, 'EX', math.ceil((hold * 1000 - now) / 1000000))
end
return {hold, before, math.floor(now / 1000)}

-- What all scripts of the ledger begin with: numbers in strings, little-endian.
-- The embedded Redis has no struct library.
local call, byte, char, sub, rep = redis.call, string.byte, string.char, string.sub, string.rep

local U32 = 4294967296
local PREAMBLE, HEADER = 29, 16   -- bytes; take.lua says what they hold

-- u32 reads the number that stands behind the first i bytes of s; u48 likewise.
local function u32(s, i)
  local a, b, c, d = byte(s, i + 1, i + 4)
  return a + b * 256 + c * 65536 + d * 16777216
end

local function u48(s, i)
  local a, b = byte(s, i + 5, i + 6)
  return u32(s, i) + (a + b * 256) * U32
end

local function pack(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256
  return char(a, b, c, (v - c) / 256)
end

local function pack48(v)
  local low = v % U32
  local high = (v - low) / U32
  local a = high % 256
  return pack(low) .. char(a, (high - a) / 256)
end

-- Numbers in strings, little-endian: the embedded Redis has no struct library.
-- The scripts include this where it says so.
local U32 = 4294967296

-- u32 reads the number that stands behind the first i bytes of s; u48 likewise.
local function u32(s, i)
  local a, b, c, d = string.byte(s, i + 1, i + 4)
  return a + b * 256 + c * 65536 + d * 16777216
end

local function u48(s, i)
  local a, b = string.byte(s, i + 5, i + 6)
  return u32(s, i) + (a + b * 256) * U32
end

local function pack(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256
  return string.char(a, b, c, (v - c) / 256)
end

local function pack48(v)
  local low = v % U32
  local high = (v - low) / U32
  local a = high % 256
  return pack(low) .. string.char(a, (high - a) / 256)
end

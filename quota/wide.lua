-- u32 reads the number that stands behind the first i bytes of s; u48 likewise.
local function u32(s, i)
  local a, b, c, d = string.byte(s, i + 1, i + 4)
  return a + b * 256 + c * 65536 + d * 16777216
end

local function u48(s, i)
  local a, b = string.byte(s, i + 5, i + 6)
  return u32(s, i) + (a + b * 256) * U32
end

-- pack48 writes a number of six bytes.
local function pack48(v)
  local low = v % U32
  local high = (v - low) / U32
  local a = high % 256
  return pack(low) .. string.char(a, (high - a) / 256)
end

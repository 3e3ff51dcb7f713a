-- Numbers in strings, little-endian: the embedded Redis has no struct library.
local U32 = 4294967296

-- pack writes a number of four bytes.
local function pack(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256
  return string.char(a, b, c, (v - c) / 256)
end

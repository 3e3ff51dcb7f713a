-- publish puts live settings in force, unless newer ones are.
--
-- KEYS[1]   the project's live settings: u32 revision, then text
-- KEYS[2..] the project's windows, of every shape, see layout.go
-- ARGV[1]   revision, as u32
-- ARGV[2]   text
-- ARGV[3]   what the names of keys with our layout have in them
--
-- Returns {1 if they were put in force, else 0}.
--#include numbers.lua
--#include wide.lua
local old = redis.call('GETRANGE', KEYS[1], '0', '3')
local newer = #old < 4 or u32(ARGV[1], 0) > u32(old, 0)
if newer then
  redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2])
  old = ARGV[1]
end
for k = 2, #KEYS do
  if string.find(KEYS[k], ARGV[3], 1, true) and redis.call('STRLEN', KEYS[k]) >= PREAMBLE.SERVER then
    redis.call('SETRANGE', KEYS[k], 'PREAMBLE.REVISION', old)
  end
end
return {newer and 1 or 0}

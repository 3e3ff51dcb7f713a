-- claim makes a store the owner of the queues, unless another is.
--
-- KEYS[1]  the owner {id, path, host, file, seen}
-- ARGV[1..4]  id, path, host and file of the store
-- ARGV[5]  1: a process of the store runs
-- ARGV[6,7]  id and file of an owner that the store may take the queues from
--
-- Returns {1} when the store is the owner, and otherwise {0, id, path, host, file,
-- seen_ms, age_ms} of the owner, -1 twice if none of its processes was seen.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owner = redis.call('HMGET', KEYS[1], 'id', 'path', 'host', 'file', 'seen')
local function is(id, file) return owner[1] == id and owner[4] == file end
if owner[1] and not is(ARGV[1], ARGV[4]) and not is(ARGV[6], ARGV[7]) then
  local seen = tonumber(owner[5] or -1)
  return {0, owner[1], owner[2], owner[3], owner[4], seen, seen < 0 and -1 or now - seen}
end
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'path', ARGV[2], 'host', ARGV[3], 'file', ARGV[4])
if ARGV[5] == '1' then
  redis.call('HSET', KEYS[1], 'seen', now)
elseif not is(ARGV[1], ARGV[4]) then
  redis.call('HDEL', KEYS[1], 'seen')
end
return {1}

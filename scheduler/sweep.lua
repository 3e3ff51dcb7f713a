-- sweep lists tasks of an Asynq queue, a page of each state, and removes those
-- whose message is gone: nothing can run them, and one of them is enough for
-- Asynq's inspector and web UI to show no queue at all.
--
-- KEYS[1]  list of pending tasks
-- KEYS[2]  list of active tasks
-- KEYS[3]  sorted set of the leases of active tasks
-- KEYS[4]  sorted set of tasks ...; one key for each state that has one
-- ARGV[1]  what the keys of tasks begin with
-- ARGV[2]  where the page begins
-- ARGV[3]  where it ends
--
-- Returns {removed, {id ...} ...}: how many were removed, the ids on the page of
-- active tasks that no worker has a lease of, and the ids that are left on the page
-- of each sorted set from KEYS[4] on. Asynq itself looks for dead workers by their
-- leases, and never at an active task without one.
local removed = 0
local function ghost(id)
  if redis.call("HEXISTS", ARGV[1] .. id, "msg") == 1 then
    return false
  end
  redis.call("DEL", ARGV[1] .. id)
  removed = removed + 1
  return true
end

local unleased = {}
for i = 1, 2 do
  for _, id in ipairs(redis.call("LRANGE", KEYS[i], ARGV[2], ARGV[3])) do
    if ghost(id) then
      redis.call("LREM", KEYS[i], 0, id)
      redis.call("ZREM", KEYS[3], id)
    elseif i == 2 and not redis.call("ZSCORE", KEYS[3], id) then
      unleased[#unleased + 1] = id
    end
  end
end
local reply = {0, unleased}
for i = 4, #KEYS do
  local ids = {}
  for _, id in ipairs(redis.call("ZRANGE", KEYS[i], ARGV[2], ARGV[3])) do
    if ghost(id) then
      redis.call("ZREM", KEYS[i], id)
    else
      ids[#ids + 1] = id
    end
  end
  reply[#reply + 1] = ids
end
reply[1] = removed
return reply

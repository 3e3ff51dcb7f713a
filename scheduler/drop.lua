-- drop deletes a task of Asynq's that stands in one place, and no other: one that
-- has become pending or active meanwhile stays, and so does one that a worker has.
--
-- KEYS[1]  hash of the task
-- KEYS[2]  the sorted set or, of active tasks, the list
-- KEYS[3]  sorted set of the leases of active tasks
-- ARGV[1]  id of the task
-- ARGV[2]  state of the tasks in KEYS[2], as Asynq names it
--
-- Returns 1 when it was deleted, else 0.
if ARGV[2] ~= "active" then
  if redis.call("ZREM", KEYS[2], ARGV[1]) == 0 then
    return 0
  end
  return redis.call("DEL", KEYS[1])
end
if redis.call("ZSCORE", KEYS[3], ARGV[1]) or redis.call("LREM", KEYS[2], 0, ARGV[1]) == 0 then
  return 0
end
if redis.call("HGET", KEYS[1], "state") == "active" then
  redis.call("DEL", KEYS[1])
end
return 1

-- drop deletes a task of Asynq's that stands in a sorted set, and no other: one
-- that has become pending or active meanwhile stays.
--
-- KEYS[1]  hash of the task
-- KEYS[2]  the sorted set
-- ARGV[1]  id of the task
--
-- Returns 1 when it was deleted, else 0.
if redis.call("ZREM", KEYS[2], ARGV[1]) == 0 then
  return 0
end
return redis.call("DEL", KEYS[1])

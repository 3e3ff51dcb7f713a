-- look says where in its queue a task of Asynq's is.
--
-- KEYS[1]  hash of the task
-- KEYS[2]  list of pending tasks
-- KEYS[3]  sorted set of tasks in the state ARGV[3] ...; one key for each such state
-- ARGV[1]  id of the task
-- ARGV[2]  1: a pending task must stand in its list; 0: it is taken for granted
-- ARGV[3]  state whose tasks are in KEYS[3]; and so on
--
-- Returns {state, due}: the state as Asynq names it, or "" when there is no such
-- task or nothing will ever find it, because its message or its place is gone; and
-- its score, the second in which it is due, "0" where it has none.
local task = redis.call("HMGET", KEYS[1], "state", "msg")
local state = task[1]
if not state or not task[2] then
  return {"", "0"}
end
if state == "pending" and ARGV[2] == "1" and not redis.call("LPOS", KEYS[2], ARGV[1]) then
  return {"", "0"}
end
for i = 3, #ARGV do
  if state == ARGV[i] then
    local score = redis.call("ZSCORE", KEYS[i], ARGV[1])
    if not score then
      return {"", "0"}
    end
    return {state, score}
  end
end
return {state, "0"}

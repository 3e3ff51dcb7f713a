  -- Part of release.lua, for the call that Google refused because too many were in
  -- flight.
  local CALM, MOST_CALM = 300 * 1e6, 3600 * 1e6   -- us, not of quota time

  -- crowded lowers the cap, unless the call got its slot before the cap was lowered
  -- last: then it was one too many under the older cap, and tells nothing of this one.
  -- It returns 1 if the cap is lower now.
  local function crowded(calls, acquired, in_flight)
    -- A call that got its slot early may reach Google after others that got theirs
    -- later: it was too many among all of them.
    local count = calls - 1 + math.max(in_flight, call('ZCOUNT', slots, string.format('(%.0f', now), '+inf'))
    local state = call('HMGET', known, 'cap', 'at', 'calm', 'tried')
    local cap, at, calm = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]) or CALM
    call('HSET', known, 'since', now)
    if cap and at and acquired <= at and at <= now then return 0 end   -- at is later than now if the clock stepped back
    if state[4] == '1' then calm = math.min(2 * calm, MOST_CALM) end
    local lower = math.max(1, math.min(cap or count, count) - 1)
    call('HSET', known, 'cap', lower, 'at', now, 'calm', calm, 'tried', 0)
    call('PEXPIRE', known, KEPT)
    -- The next call of the bucket that is open looks at what was learned.
    if call('STRLEN', KEYS[3]) > PREAMBLE.SIZE then call('SETRANGE', KEYS[3], PREAMBLE.SHAPES, '\2') end
    return lower == cap and 0 or 1
  end

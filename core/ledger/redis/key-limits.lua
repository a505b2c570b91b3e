#!lua library
-- The limits of a key beside its total limit: spending per day and month (UTC), and calls and tokens per minute. The key's hash
-- has the field `caps` while it has any of them. Times are those of Redis.
--
-- Days are counted since 1970, and months as year * 12 + month. Spending is counted only while there is a limit.
--
-- A per-minute limit is a bucket of that size that refills evenly. `calls_at` and `tokens_at` are the times when it is full
-- again, in microseconds. Nothing else must be known of it (the generic cell rate algorithm).

local MINUTE = 60000000

local function integer(number) return string.format('%.0f', number + 0) end

local function month_of(day)
  local shifted = day + 719468
  local era = math.floor(shifted / 146097)
  local of_era = shifted - era * 146097
  local leaps = math.floor(of_era / 1460) - math.floor(of_era / 36524) + math.floor(of_era / 146096)
  local year = math.floor((of_era - leaps) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local march = math.floor((5 * of_year + 2) / 153)
  local month = march < 10 and march + 3 or march - 9
  return (year + era * 400 + (month <= 2 and 1 or 0)) * 12 + month
end

local function windows_of(name)
  local day = math.floor(redis.call('TIME')[1] / 86400)
  local there = redis.call('HMGET', name, 'day_limit', 'day', 'day_spent', 'month_limit', 'month', 'month_spent')
  return {
    { limit = there[1], spent = tonumber(there[2]) == day and there[3] or 0, at = day, field = 'day' },
    { limit = there[4], spent = tonumber(there[5]) == month_of(day) and there[6] or 0, at = month_of(day), field = 'month' },
  }
end

-- Returns how much the limits leave, negative if one was lowered; `key` is limit, spent, held and caps.
local function room_of(name, key)
  local room = key[1] and key[1] - key[2] - key[3] or math.huge
  if not key[4] then return room end
  for _, window in ipairs(windows_of(name)) do
    if window.limit then room = math.min(room, window.limit - window.spent - key[3]) end
  end
  return room
end

local function spend(name, amount, caps)
  redis.call('HINCRBY', name, 'spent', amount)
  if not caps then return end
  for _, window in ipairs(windows_of(name)) do
    if window.limit then
      local spent = integer(window.spent + amount)
      redis.call('HSET', name, window.field, integer(window.at), window.field .. '_spent', spent)
    end
  end
end

-- Returns when the bucket is full again after `count` is taken, and how many microseconds too late that is. A count above the
-- limit takes the whole bucket.
local function take(limit, full_at, count, now)
  local after = math.max(now, tonumber(full_at or 0)) + math.floor(math.min(count, limit) * MINUTE / limit)
  return after, math.max(0, after - now - MINUTE)
end

-- Gives what an ended call was expected to use and did not use back to the bucket.
local function correct_tokens(name, expected, used)
  if not expected or used == '' then return end
  local key = redis.call('HMGET', name, 'tokens', 'tokens_at')
  if not key[1] or not key[2] then return end
  local limit = tonumber(key[1])
  local less = math.min(expected, limit) - math.min(used, limit)
  redis.call('HSET', name, 'tokens_at', integer(key[2] - math.floor(less * MINUTE / limit)))
end

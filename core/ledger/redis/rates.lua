#!lua library
-- The limits of an API key per minute: calls, tokens, and requests beside calls. Times are those of Redis.
--
-- A per-minute limit is a bucket of that size that refills evenly. `calls_at` and `tokens_at` are the times when it is full
-- again, in microseconds. Nothing else must be known of it (the generic cell rate algorithm).

local MINUTE = 60000000

local function integer(number) return string.format('%.0f', number + 0) end

-- Returns when the bucket is full again after `count` is taken, and how many microseconds too late that is. A count above the
-- limit takes the whole bucket.
local function take(limit, full_at, count, now)
  local after = math.max(now, tonumber(full_at or 0)) + math.floor(math.min(count, limit) * MINUTE / limit)
  return after, math.max(0, after - now - MINUTE)
end

-- Returns when the bucket of calls or requests is full again. No accepted one leaves it full more than a minute ahead, so a later
-- time says that Redis's clock was set back, and the bucket is full.
local function believed(full_at, now)
  full_at = tonumber(full_at or 0)
  return full_at > now + MINUTE and 0 or full_at
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

#!lua flags=allow-oom
-- Counts a call that was refused without a hold against the key's per-minute limit of calls. A call that comes too early is not
-- counted, because a caller that keeps asking would otherwise never be admitted again.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:k:<key>
-- ARGV[1] account
--
-- answers
--   counted                     also for a key without such a limit
--   not_ready                   the shard has not been filled from Postgres
--   unknown_key
--   rate_limited, milliseconds  how long it takes until the next call is admitted

-- include key-limits

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local key = redis.call('HMGET', KEYS[2], 'account', 'calls', 'calls_at')
if key[1] ~= ARGV[1] then return 'unknown_key' end
if not key[2] then return 'counted' end

local time = redis.call('TIME')
local calls_at, late = take(tonumber(key[2]), key[3], 1, time[1] * 1000000 + time[2])
if late > 0 then return { 'rate_limited', integer(math.ceil(late / 1000)) } end
redis.call('HSET', KEYS[2], 'calls_at', integer(calls_at))
return 'counted'

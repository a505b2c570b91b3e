#!lua flags=allow-oom
-- Counts a call that was refused without a hold against the key's per-minute limit of calls, or a request to our own API against
-- its own limit. What comes too early is not counted, because a caller that keeps asking would otherwise never be admitted again.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:k:<key>
-- ARGV[1] account
-- ARGV[2] requests to our own API per minute; empty for a refused call
--
-- answers
--   counted                     also for a key without such a limit
--   not_ready                   the shard has not been filled from Postgres
--   unknown_key
--   rate_limited, milliseconds  how long it takes until the next one is admitted

-- include rates

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local bucket = ARGV[2] == '' and 'calls_at' or 'requests_at'
local key = redis.call('HMGET', KEYS[2], 'account', 'calls', bucket)
if key[1] ~= ARGV[1] then return 'unknown_key' end
local limit = tonumber(ARGV[2]) or tonumber(key[2])
if not limit then return 'counted' end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full_at, late = take(limit, believed(key[3], now), 1, now)
if late > 0 then return { 'rate_limited', integer(math.ceil(late / 1000)) } end
redis.call('HSET', KEYS[2], bucket, integer(full_at))
return 'counted'

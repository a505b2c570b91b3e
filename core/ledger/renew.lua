#!lua flags=allow-oom
-- Moves the deadline of an open reservation. A hold without a deadline keeps having none.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:r:<rid>
-- KEYS[3] {sNNN}:exp
-- ARGV[1] rid
-- ARGV[2] lease in milliseconds, from now
-- ARGV[3] account
-- ARGV[4] key
--
-- answers
--   renewed
--   not_open      unknown or closed
--   not_ready     the shard has not been filled from Postgres
--   other_payer   the id belongs to another account or key: a defect of the caller

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local reservation = redis.call('HMGET', KEYS[2], 'state', 'account', 'key')
if not reservation[1] then return 'not_open' end
if reservation[2] ~= ARGV[3] or reservation[3] ~= ARGV[4] then return 'other_payer' end
if reservation[1] ~= 'open' then return 'not_open' end

local time = redis.call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2])
redis.call('ZADD', KEYS[3], 'XX', string.format('%.0f', deadline), ARGV[1])
return 'renewed'

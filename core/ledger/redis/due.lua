#!lua flags=no-writes
-- Finds the reservations of a shard whose lease has ended by the clock of Redis, oldest first.
--
-- KEYS[1] {sNNN}:exp
-- ARGV[1] the most reservations to return
--
-- answers
--   due, rid, rid, ...

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return { 'due', unpack(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', '0', ARGV[1])) }

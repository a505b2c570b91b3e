#!lua flags=allow-oom
-- Creates an empty account, or changes the status of an existing one.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- ARGV[1] status
--
-- answers
--   set, count   how many allowances were recalled: nodes admit calls from them until they have given them back
--   not_ready   the shard has not been filled from Postgres

-- include scopes
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('HSET', KEYS[2], 'available', '0', 'held', '0', 'posted', '0', 'seq', '0')
end
local before = redis.call('HGET', KEYS[2], 'status')
redis.call('HSET', KEYS[2], 'status', ARGV[1])
local now = clock()
if before == ARGV[1] and not is_recalling(KEYS[2], now, KEYS[2]) then return 'set' end
return { 'set', integer_of((recall_all(KEYS[2], now, KEYS[2]))) }

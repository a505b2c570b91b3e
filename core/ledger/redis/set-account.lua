#!lua flags=allow-oom
-- Makes an account with nothing in it, or changes the status of one that is there.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- ARGV[1] status
--
-- answers
--   set
--   not_ready   the shard has not been filled from Postgres

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('HSET', KEYS[2], 'available', '0', 'held', '0', 'posted', '0', 'seq', '0')
end
redis.call('HSET', KEYS[2], 'status', ARGV[1])
return 'set'

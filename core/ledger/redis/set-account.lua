#!lua flags=allow-oom
-- Makes an account with nothing in it, or changes the status of one that is there.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- ARGV[1] status
--
-- answers
--   set, count   with how many allowances were recalled: calls are admitted from them until nodes have given them back
--   not_ready   the shard has not been filled from Postgres

-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('HSET', KEYS[2], 'available', '0', 'held', '0', 'posted', '0', 'seq', '0')
end
local before = redis.call('HGET', KEYS[2], 'status')
redis.call('HSET', KEYS[2], 'status', ARGV[1])
local now = clock()
-- While a recall goes on, a repetition of what caused it waits for it, too.
if before == ARGV[1] and tonumber(redis.call('HGET', KEYS[2], 'recall_until') or 0) <= now then return 'set' end
local live = take_back(KEYS[2], now)
if live > 0 then mark_recall(KEYS[2], now) end
return { 'set', integer_of(live) }

#!lua flags=allow-oom
-- Gives back a hold whose lease has ended, and writes the facts that reserve has kept.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:k:<key>
-- KEYS[4] {sNNN}:r:<rid>
-- KEYS[5] {sNNN}:exp
-- KEYS[6] {sNNN}:ob
-- ARGV[1] rid
-- ARGV[2] account
-- ARGV[3] key
--
-- answers
--   expired       now or before
--   not_due       unknown, closed otherwise, without a deadline, or its lease has not ended
--   not_ready     the shard has not been filled from Postgres
--   other_payer   the id belongs to another account or key: a defect of the caller

-- include scopes

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local reservation = redis.call('HMGET', KEYS[4], 'state', 'amount', 'account', 'key', 'facts', 'scopes')
if not reservation[1] then return 'not_due' end
if reservation[3] ~= ARGV[2] or reservation[4] ~= ARGV[3] then return 'other_payer' end
if reservation[1] == 'expired' then return 'expired' end
if reservation[1] ~= 'open' then return 'not_due' end

local deadline = redis.call('ZSCORE', KEYS[5], ARGV[1])
local time = redis.call('TIME')
if tonumber(deadline) > time[1] * 1000 + math.floor(time[2] / 1000) then return 'not_due' end

local hold = tonumber(reservation[2])
local chain = chain_of(KEYS[2], reservation[6], KEYS[3])
read_scopes(chain)
redis.call('HINCRBY', KEYS[2], 'available', reservation[2])
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
book(chain, nil, 0 - hold, 0)
-- Changed in place, not deleted and made anew: while a Cluster moves the slot, Redis refuses to make a missing key, and the script would fail
-- half-way.
redis.call('HDEL', KEYS[4], 'amount', 'facts', 'tokens', 'scopes')
redis.call('HSET', KEYS[4], 'state', 'expired', 'account', ARGV[2], 'key', ARGV[3])
redis.call('ZREM', KEYS[5], ARGV[1])
local entry = redis.call('XADD', KEYS[6], '*', 'kind', 'expire', 'account', ARGV[2], 'key', ARGV[3], 'rid', ARGV[1],
  'seq', integer(seq), 'amount', '0', 'posted', redis.call('HGET', KEYS[2], 'posted'), 'shortfall', '0',
  'record', reservation[5])
end_tags(chain, entry)
return 'expired'

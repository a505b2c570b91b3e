#!lua flags=allow-oom
-- Gives a hold back and charges nothing. For an unknown id it leaves a tombstone, because a late reserve would otherwise hold
-- money that is never given back.
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
-- ARGV[4] JSON of the finished usage record, empty for none
-- ARGV[5] milliseconds a tombstone stays
--
-- answers
--   released      now or before
--   tombstoned    the id was unknown, now or when it was released first
--   settled       closed before, nothing changes
--   expired       closed before, nothing changes
--   not_ready     the shard has not been filled from Postgres
--   other_payer   the id belongs to another account or key: a defect of the caller

-- include scopes
-- include rates

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local reservation = redis.call('HMGET', KEYS[4], 'state', 'amount', 'account', 'key', 'tokens', 'scopes')
local state = reservation[1]
if not state then
  redis.call('HSET', KEYS[4], 'state', 'tombstoned', 'account', ARGV[2], 'key', ARGV[3])
  redis.call('PEXPIRE', KEYS[4], ARGV[5])
  return 'tombstoned'
end
if reservation[3] ~= ARGV[2] or reservation[4] ~= ARGV[3] then return 'other_payer' end
if state == 'tombstoned' then return 'tombstoned' end
if state == 'settled' then return 'settled' end
if state == 'expired' then return 'expired' end
if state == 'released' then return 'released' end

local hold = tonumber(reservation[2])
local chain = chain_of(KEYS[2], reservation[6], KEYS[3])
read_scopes(chain)
redis.call('HINCRBY', KEYS[2], 'available', reservation[2])
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
book(chain, nil, 0 - hold, 0)
correct_tokens(KEYS[3], reservation[5], 0)
-- Changed in place, not deleted and made anew: while a Cluster moves the slot, Redis refuses to make a missing key, and the script would fail
-- half-way.
redis.call('HDEL', KEYS[4], 'amount', 'facts', 'tokens', 'scopes')
redis.call('HSET', KEYS[4], 'state', 'released', 'account', ARGV[2], 'key', ARGV[3])
redis.call('ZREM', KEYS[5], ARGV[1])
local entry = redis.call('XADD', KEYS[6], '*', 'kind', 'release', 'account', ARGV[2], 'key', ARGV[3], 'rid', ARGV[1],
  'seq', integer(seq), 'amount', '0', 'posted', redis.call('HGET', KEYS[2], 'posted'), 'shortfall', '0',
  'record', ARGV[4])
end_tags(chain, entry)
return 'released'

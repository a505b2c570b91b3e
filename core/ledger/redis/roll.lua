#!lua flags=allow-oom
-- Settles one hold and takes the next in one step, so that what runs is always covered. The next hold is checked as if the first
-- one were settled. If it cannot be taken, nothing is written. A revoked key does not prevent a roll, because a revocation stops
-- new calls and not what already runs.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:k:<key>
-- KEYS[4] {sNNN}:r:<rid>
-- KEYS[5] {sNNN}:exp
-- KEYS[6] {sNNN}:ob
-- KEYS[7] {sNNN}:r:<rid of the next hold>
-- ARGV[1] rid
-- ARGV[2] cost of the first hold in E8
-- ARGV[3] account
-- ARGV[4] key
-- ARGV[5] JSON of the finished usage record, empty for none
-- ARGV[6] rid of the next hold
-- ARGV[7] amount of the next hold in E8
--
-- answers
--   rolled, charged, shortfall    now or before
--   settled, charged, shortfall   the first hold was settled without a next one: nothing is taken
--   not_ready                     the shard has not been filled from Postgres
--   unknown_reservation
--   released                      the first hold was released; nothing changes
--   expired                       the first hold has expired; nothing changes
--   exists_with_different_amount  the next id is open with another amount
--   released_before               the next id was released, perhaps before this roll arrived
--   frozen
--   recalling, milliseconds       nodes may have what is missing: they give it back within this time, and the caller asks again
--   insufficient_balance, E8      with what the next hold could have
--   key_limit_exceeded, E8        with what the key's limits would leave for the next hold
--   other_payer                   an id belongs to another account or key: a defect of the caller

-- include key-limits
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local first = redis.call('HMGET', KEYS[4], 'state', 'amount', 'account', 'key', 'charged', 'shortfall')
local following = redis.call('HMGET', KEYS[7], 'state', 'amount', 'account', 'key')
if first[1] and (first[3] ~= ARGV[3] or first[4] ~= ARGV[4]) then return 'other_payer' end
if following[1] and (following[3] ~= ARGV[3] or following[4] ~= ARGV[4]) then return 'other_payer' end
if not first[1] then return 'unknown_reservation' end
if first[1] == 'expired' then return 'expired' end
if first[1] ~= 'open' and first[1] ~= 'settled' then return 'released' end
if following[1] == 'tombstoned' then return 'released_before' end
if first[1] == 'settled' then
  if not following[1] then return { 'settled', first[5], first[6] } end
  if following[1] == 'open' and following[2] ~= ARGV[7] then return 'exists_with_different_amount' end
  return { 'rolled', first[5], first[6] }
end
if following[1] and following[1] ~= 'open' then return 'released_before' end
if following[1] and following[2] ~= ARGV[7] then return 'exists_with_different_amount' end

local hold = tonumber(first[2])
local cost = tonumber(ARGV[2])
local more = following[1] and 0 or tonumber(ARGV[7])
if not following[1] and redis.call('HGET', KEYS[2], 'status') ~= 'active' then return 'frozen' end
local left, room, key
local function measure()
  left = tonumber(redis.call('HGET', KEYS[2], 'available')) + hold - cost
  key = redis.call('HMGET', KEYS[3], 'limit', 'spent', 'held', 'caps')
  room = room_of(KEYS[3], key) + hold - cost
end
measure()
if more > left or more > room then
  local kept = recall_for(KEYS[2], more > left, ARGV[4])
  if kept > 0 then return { 'recalling', integer(kept) } end
  measure()
end
if more > left then return { 'insufficient_balance', integer(math.max(0, left)) } end
if more > room then return { 'key_limit_exceeded', integer(math.max(0, room)) } end

redis.call('HINCRBY', KEYS[2], 'available', integer(hold - cost - more))
redis.call('HINCRBY', KEYS[2], 'held', integer(more - hold))
local posted = redis.call('HINCRBY', KEYS[2], 'posted', integer(0 - cost))
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
redis.call('HINCRBY', KEYS[3], 'held', integer(more - hold))
spend(KEYS[3], ARGV[2], key[4])
-- Changed in place, not deleted and made anew: while a Cluster moves the slot, Redis refuses to make a missing key, and the script would fail
-- half-way.
redis.call('HDEL', KEYS[4], 'amount', 'facts', 'tokens')
redis.call('HSET', KEYS[4], 'state', 'settled', 'charged', ARGV[2], 'shortfall', '0', 'account', ARGV[3], 'key', ARGV[4])
if not following[1] then
  redis.call('HSET', KEYS[7], 'state', 'open', 'amount', ARGV[7], 'account', ARGV[3], 'key', ARGV[4], 'facts', '')
  redis.call('ZADD', KEYS[5], '+inf', ARGV[6])
end
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('XADD', KEYS[6], '*', 'kind', 'charge', 'account', ARGV[3], 'key', ARGV[4], 'rid', ARGV[1],
  'seq', integer(seq), 'amount', integer(0 - cost), 'posted', integer(posted), 'shortfall', '0', 'record', ARGV[5])
return { 'rolled', ARGV[2], '0' }

#!lua flags=allow-oom
-- Moves the deadline of an open reservation, and enlarges its hold if more is wanted. A hold without a deadline never gets one,
-- and a hold that is large enough stays as it is. A revoked key does not prevent a renewal, because a revocation stops new calls
-- and not what already runs.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:k:<key>
-- KEYS[4] {sNNN}:r:<rid>
-- KEYS[5] {sNNN}:exp
-- ARGV[1] rid
-- ARGV[2] lease in milliseconds from now, empty to leave the deadline
-- ARGV[3] account
-- ARGV[4] key
-- ARGV[5] what the hold must be at least, in E8
--
-- answers
--   renewed
--   not_open                  unknown or closed
--   not_ready                 the shard has not been filled from Postgres
--   frozen                    the account is frozen, so its holds do not grow; nothing changes
--   recalling, milliseconds   nodes may have what is missing: they give it back within this time, and the caller asks again
--   insufficient_balance, E8  with what the account has available beside the hold; nothing changes
--   key_limit_exceeded, E8    with what the key's limits leave beside the hold; nothing changes
--   other_payer               the id belongs to another account or key: a defect of the caller

-- include key-limits
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local reservation = redis.call('HMGET', KEYS[4], 'state', 'account', 'key', 'amount')
if not reservation[1] then return 'not_open' end
if reservation[2] ~= ARGV[3] or reservation[3] ~= ARGV[4] then return 'other_payer' end
if reservation[1] ~= 'open' then return 'not_open' end

local more = tonumber(ARGV[5]) - tonumber(reservation[4])
if more > 0 then
  local account = redis.call('HMGET', KEYS[2], 'status', 'available')
  if account[1] ~= 'active' then return 'frozen' end
  local room = room_of(KEYS[3], redis.call('HMGET', KEYS[3], 'limit', 'spent', 'held', 'caps'))
  if more > tonumber(account[2]) or more > room then
    local left = recall_for(KEYS[2], more > tonumber(account[2]), ARGV[4])
    if left > 0 then return { 'recalling', integer(left) } end
    account = redis.call('HMGET', KEYS[2], 'status', 'available')
    room = room_of(KEYS[3], redis.call('HMGET', KEYS[3], 'limit', 'spent', 'held', 'caps'))
  end
  if more > tonumber(account[2]) then return { 'insufficient_balance', account[2] } end
  if more > room then return { 'key_limit_exceeded', integer(math.max(0, room)) } end
  redis.call('HINCRBY', KEYS[2], 'available', integer(0 - more))
  redis.call('HINCRBY', KEYS[2], 'held', integer(more))
  redis.call('HINCRBY', KEYS[3], 'held', integer(more))
  redis.call('HSET', KEYS[4], 'amount', ARGV[5])
end
if ARGV[2] ~= '' and redis.call('ZSCORE', KEYS[5], ARGV[1]) ~= 'inf' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[5], integer(time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2])), ARGV[1])
end
return 'renewed'

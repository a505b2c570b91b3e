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
--   recalling, milliseconds, scope   nodes may have what is missing: those of this scope give it back within this time, and the
--                                 caller asks again
--   insufficient_balance, E8  with what the account has available beside the hold; nothing changes
--   limit_exceeded, E8, scope, window, limit, spent, held, day, name   the limit that leaves least beside the hold; nothing changes
--   other_payer               the id belongs to another account or key: a defect of the caller

-- include scopes
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local reservation = redis.call('HMGET', KEYS[4], 'state', 'account', 'key', 'amount', 'scopes')
if not reservation[1] then return 'not_open' end
if reservation[2] ~= ARGV[3] or reservation[3] ~= ARGV[4] then return 'other_payer' end
if reservation[1] ~= 'open' then return 'not_open' end

local more = tonumber(ARGV[5]) - tonumber(reservation[4])
if more > 0 then
  local account = redis.call('HMGET', KEYS[2], 'status', 'available')
  if account[1] ~= 'active' then return 'frozen' end
  local chain = chain_of(KEYS[2], reservation[5], KEYS[3])
  local available, rooms = tonumber(account[2]), rooms_of(read_scopes(chain))
  if more > math.min(available, least_of(rooms)) then
    local left, scope = recall_for(KEYS[2], short_of(available, chain, rooms, more))
    if left > 0 then return { 'recalling', integer(left), scope } end
    available, rooms = tonumber(redis.call('HGET', KEYS[2], 'available')), rooms_of(read_scopes(chain))
  end
  if more > math.min(available, least_of(rooms)) then
    local limit = reached(available, chain, rooms, more)
    if not limit then return { 'insufficient_balance', integer(available) } end
    return { 'limit_exceeded', unpack(limit) }
  end
  redis.call('HINCRBY', KEYS[2], 'available', integer(0 - more))
  book(chain, nil, more, 0)
  redis.call('HSET', KEYS[4], 'amount', ARGV[5])
end
if ARGV[2] ~= '' and redis.call('ZSCORE', KEYS[5], ARGV[1]) ~= 'inf' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[5], integer(time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2])), ARGV[1])
end
return 'renewed'

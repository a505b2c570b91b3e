#!lua flags=allow-oom
-- Replaces a hold by the cost: charges it, gives the rest back and writes the entry, in one step. If the cost exceeds the hold,
-- the excess is charged only as far as the account and the limits of its scopes have it. The rest is the shortfall.
--
-- A late settle is one whose hold was lost with its ledger. It finds nothing held. It charges nothing if another call now owns
-- its Idempotency-Key. Otherwise it takes that key: it writes {sNNN}:i:<account> and {sNNN}:io:<account>, which are not among its
-- KEYS.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:k:<key>
-- KEYS[4] {sNNN}:r:<rid>
-- KEYS[5] {sNNN}:exp
-- KEYS[6] {sNNN}:ob
-- ARGV[1] rid
-- ARGV[2] cost in E8
-- ARGV[3] account
-- ARGV[4] key
-- ARGV[5] JSON of the finished usage record, empty for none
-- ARGV[6] late, if even an unknown id is charged; empty otherwise
-- ARGV[7] tokens the call has used, for the per-minute limit; empty if unknown
--
-- answers
--   settled, charged, shortfall   now or before; only the first settle counts
--   recalling, milliseconds, scope   nodes may have what is missing: those of this scope give it back within this time, and the
--                                 caller asks again
--   not_ready                     the shard has not been filled from Postgres
--   unknown_reservation           the id is unknown; for a late settle, its account or key
--   released                      nothing is charged
--   expired                       nothing is charged
--   other_payer                   the id belongs to another account or key: a defect of the caller

-- include scopes
-- include rates
-- include allowances
-- include intents

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local reservation = redis.call('HMGET', KEYS[4], 'state', 'amount', 'account', 'key', 'charged', 'shortfall', 'tokens',
  'scopes')
local state = reservation[1]
local key = redis.call('HMGET', KEYS[3], 'limits', 'held', 'spent', 'windows', 'account', 'scopes')
if not state then
  if ARGV[6] ~= 'late' or key[5] ~= ARGV[3] or redis.call('EXISTS', KEYS[2]) == 0 then return 'unknown_reservation' end
else
  if reservation[3] ~= ARGV[3] or reservation[4] ~= ARGV[4] then return 'other_payer' end
  if state == 'settled' then return { 'settled', reservation[5], reservation[6] } end
  if state == 'expired' then return 'expired' end
  if state ~= 'open' then return 'released' end
end

local scopes = state and reservation[8] or key[6] or ''
local chain = chain_of(KEYS[2], scopes, KEYS[3])
local read = read_scopes(chain, nil, key)
local hold = tonumber(reservation[2] or 0)
local cost = tonumber(ARGV[2])
local charge = cost
if not state and not claim_intent(KEYS[2], ARGV[1], ARGV[5]) then
  charge = 0
elseif cost > hold then
  local available, rooms = tonumber(redis.call('HGET', KEYS[2], 'available')), rooms_of(read)
  if cost - hold > math.min(available, least_of(rooms)) then
    local left, scope = recall_for(KEYS[2], short_of(available, chain, rooms, cost - hold))
    if left > 0 then return { 'recalling', integer(left), scope } end
    read = read_scopes(chain)
    available, rooms = tonumber(redis.call('HGET', KEYS[2], 'available')), rooms_of(read)
  end
  charge = hold + math.max(0, math.min(cost - hold, available, least_of(rooms)))
end
local charged = integer(charge)
local shortfall = integer(cost - charge)

redis.call('HINCRBY', KEYS[2], 'available', integer(hold - charge))
local posted = redis.call('HINCRBY', KEYS[2], 'posted', integer(0 - charge))
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
local day = book(chain, read, 0 - hold, charge)
correct_tokens(KEYS[3], reservation[7], ARGV[7])
-- Changed in place, not deleted and made anew: while a Cluster moves the slot, Redis refuses to make a missing key, and the script would fail
-- half-way.
redis.call('HDEL', KEYS[4], 'amount', 'facts', 'tokens', 'scopes')
redis.call('HSET', KEYS[4], 'state', 'settled', 'charged', charged, 'shortfall', shortfall,
  'account', ARGV[3], 'key', ARGV[4])
redis.call('ZREM', KEYS[5], ARGV[1])
local entry = redis.call('XADD', KEYS[6], '*', 'kind', 'charge', 'account', ARGV[3], 'key', ARGV[4], 'rid', ARGV[1],
  'seq', integer(seq), 'amount', integer(0 - charge), 'posted', integer(posted), 'shortfall', shortfall,
  'record', ARGV[5], 'scopes', scopes, 'day', day)
end_tags(chain, entry)
return { 'settled', charged, shortfall }

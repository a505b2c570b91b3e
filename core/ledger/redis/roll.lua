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
--   recalling, milliseconds, scope   nodes may have what is missing: those of this scope give it back within this time, and the
--                                 caller asks again
--   insufficient_balance, E8      with what the next hold could have
--   limit_exceeded, E8, scope, window, limit, spent, held, day, name   the limit that leaves least for the next hold
--   other_payer                   an id belongs to another account or key: a defect of the caller

-- include scopes
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local first = redis.call('HMGET', KEYS[4], 'state', 'amount', 'account', 'key', 'charged', 'shortfall', 'scopes')
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
local scopes = first[7] or ''
local chain = chain_of(KEYS[2], scopes, KEYS[3])
-- The next hold counts in what the key names now, and in the tags of the first one.
local next_scopes = redis.call('HGET', KEYS[3], 'scopes') or ''
for tag in string.gmatch(scopes, 'g:%S+') do next_scopes = (next_scopes == '' and '' or next_scopes .. ' ') .. tag end
local next_chain = chain_of(KEYS[2], next_scopes, KEYS[3])
-- The first hold and its cost count in the scopes that it names, which the key may have left meanwhile.
local is_settled = {}
for _, name in ipairs(chain) do is_settled[name] = true end
read_scopes(chain)
local available, rooms
local function measure()
  available, rooms = tonumber(redis.call('HGET', KEYS[2], 'available')) + hold - cost, rooms_of(read_scopes(next_chain))
  for _, room in ipairs(rooms) do
    if is_settled[next_chain[room.place]] then room.left = room.left + hold - cost end
  end
end
measure()
if more > math.min(available, least_of(rooms)) then
  local kept, scope = recall_for(KEYS[2], short_of(available, next_chain, rooms, more))
  if kept > 0 then return { 'recalling', integer(kept), scope } end
  measure()
end
if more > math.min(available, least_of(rooms)) then
  local limit = reached(available, next_chain, rooms, more)
  if not limit then return { 'insufficient_balance', integer(math.max(0, available)) } end
  return { 'limit_exceeded', unpack(limit) }
end

redis.call('HINCRBY', KEYS[2], 'available', integer(hold - cost - more))
local posted = redis.call('HINCRBY', KEYS[2], 'posted', integer(0 - cost))
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
local day = book(chain, read_scopes(chain), 0 - hold, cost)
book(next_chain, nil, more, 0)
-- Changed in place, not deleted and made anew: while a Cluster moves the slot, Redis refuses to make a missing key, and the script would fail
-- half-way.
redis.call('HDEL', KEYS[4], 'amount', 'facts', 'tokens', 'scopes')
redis.call('HSET', KEYS[4], 'state', 'settled', 'charged', ARGV[2], 'shortfall', '0', 'account', ARGV[3], 'key', ARGV[4])
if not following[1] then
  redis.call('HSET', KEYS[7], 'state', 'open', 'amount', ARGV[7], 'account', ARGV[3], 'key', ARGV[4], 'facts', '',
    'scopes', next_scopes)
  redis.call('ZADD', KEYS[5], '+inf', ARGV[6])
end
redis.call('ZREM', KEYS[5], ARGV[1])
local entry = redis.call('XADD', KEYS[6], '*', 'kind', 'charge', 'account', ARGV[3], 'key', ARGV[4], 'rid', ARGV[1],
  'seq', integer(seq), 'amount', integer(0 - cost), 'posted', integer(posted), 'shortfall', '0', 'record', ARGV[5],
  'scopes', scopes, 'day', day)
end_tags(chain, entry)
if not following[1] then use_tags(next_chain, 1, string.match(entry, '^%d+')) end
return { 'rolled', ARGV[2], '0' }

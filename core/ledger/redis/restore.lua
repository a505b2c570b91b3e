#!lua
-- Writes back what Postgres knows of one account. If the ledger has as many of its entries, its money stays as it is. The status
-- and the settings of scopes have no entries, so those of Postgres are written, and missing scopes, too. An account that is behind
-- loses its open holds, because nothing tells which of them were closed meanwhile. Only those remain that Postgres knows to be
-- open.
--
-- The account's reservations and scopes are not among its KEYS; all are in the account's slot.
--
-- KEYS[1] {sNNN}:a:<account>
-- KEYS[2] {sNNN}:exp
-- ARGV[1] account
-- ARGV[2] {sNNN}:
-- ARGV[3] JSON: status, available, held, posted, seq, scopes (name, rev, held, and settings and counters as fields of their
--         hashes; the account among them), closed (rid, state, key, charged, shortfall, and for a charged call with an Idempotency-Key intent: key,
--         body, request), open (rid, key, scopes, amount), tags (name, rev, limits of each name of tags as the account's field has them), values
--         (name, rev and settings of tags' values with own limits); amounts are strings, null is the empty string
-- ARGV[4] milliseconds the closed reservations stay
--
-- answers
--   restored
--   untouched   the account is not behind: its money and its holds stay

-- include intents
-- include scopes
-- include tags
-- include allowances
-- include set-fields

local snapshot = cjson.decode(ARGV[3])
local seq = redis.call('HGET', KEYS[1], 'seq')
local behind = not seq or tonumber(seq) < tonumber(snapshot.seq)

for _, scope in ipairs(snapshot.scopes) do
  local name = ARGV[2] .. scope.name
  local is_account = name == KEYS[1]
  local rev = redis.call('HGET', name, 'rev')
  if behind or not rev and not is_account then
    if not is_account then redis.call('DEL', name) end
    redis.call('HSET', name, 'account', ARGV[1], 'held', behind and scope.held or '0', unpack(scope.counters))
  end
  if behind or not rev or tonumber(rev) < tonumber(scope.rev) then
    set_fields(name, scope.settings)
  end
end
-- The scopes of tags come back with their next calls.
if behind then
  for _, scope in ipairs(redis.call('ZRANGE', uses_of(KEYS[1]), 0, -1)) do redis.call('DEL', ARGV[2] .. scope) end
  redis.call('DEL', uses_of(KEYS[1]))
  redis.call('ZREM', KEYS[2], 'g ' .. ARGV[1])
  redis.call('HDEL', KEYS[1], 'tags')
  redis.call('HINCRBY', KEYS[1], 'tags_rev', 1)
end
for _, tag in ipairs(snapshot.tags) do set_name(KEYS[1], tag.name, tag.rev, tag.limits) end
for _, value in ipairs(snapshot.values) do
  local rev = redis.call('HGET', ARGV[2] .. value.name, 'rev')
  if rev and tonumber(rev) < tonumber(value.rev) then set_fields(ARGV[2] .. value.name, value.settings) end
end
-- Lost allowances may still have leases, so operations that stop calls wait until these have ended.
redis.call('HSET', KEYS[1], 'lost_until', integer_of(clock() + LEASE_MS))
if not behind then
  redis.call('HSET', KEYS[1], 'status', snapshot.status)
  -- What an operator has changed meanwhile must reach live allowances, too.
  if tonumber(redis.call('HGET', KEYS[1], 'al_live') or 0) > 0 then mark_recall({ KEYS[1] }, clock()) end
  return 'untouched'
end

for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 3) == 'al:' then redis.call('HDEL', KEYS[1], field) end
end
redis.call('HDEL', KEYS[1], 'al_live', 'free', 'recall_until')
redis.call('ZREM', KEYS[2], 'a ' .. ARGV[1])
for _, rid in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local name = ARGV[2] .. 'r:' .. rid
  if redis.call('HGET', name, 'account') == ARGV[1] then
    redis.call('DEL', name)
    redis.call('ZREM', KEYS[2], rid)
  end
end
for _, closed in ipairs(snapshot.closed) do
  local name = ARGV[2] .. 'r:' .. closed.rid
  redis.call('DEL', name)
  redis.call('HSET', name, 'state', closed.state, 'account', ARGV[1])
  if closed.key ~= '' then redis.call('HSET', name, 'key', closed.key) end
  if closed.state == 'settled' then redis.call('HSET', name, 'charged', closed.charged, 'shortfall', closed.shortfall) end
  redis.call('PEXPIRE', name, ARGV[4])
  if closed.intent then restore_intent(KEYS[1], closed.rid, closed.intent) end
end
for _, open in ipairs(snapshot.open) do
  local name = ARGV[2] .. 'r:' .. open.rid
  redis.call('DEL', name)
  redis.call('HSET', name, 'state', 'open', 'amount', open.amount, 'account', ARGV[1], 'key', open.key, 'facts', '',
    'scopes', open.scopes)
  redis.call('ZADD', KEYS[2], '+inf', open.rid)
end
redis.call('HSET', KEYS[1], 'status', snapshot.status, 'available', snapshot.available, 'held', snapshot.held,
  'posted', snapshot.posted, 'seq', snapshot.seq)
return 'restored'

#!lua
-- Holds an amount of an account's money, and of the limits of all scopes of a call, for one call: at most half of what all have
-- left, but the least amount where that is more. A call that takes only the whole amount has it as its least one. Every check comes before the first write, because
-- Redis keeps what a failing script has written.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:k:<key>
-- KEYS[4] {sNNN}:r:<rid>
-- KEYS[5] {sNNN}:exp
-- KEYS[6] {sNNN}:i:<account>, only with an Idempotency-Key, like KEYS[7] and ARGV[13] to ARGV[15]
-- KEYS[7] {sNNN}:io:<account>
-- ARGV[1] rid
-- ARGV[2] amount in E8
-- ARGV[3] lease in milliseconds, empty for a hold without a deadline
-- ARGV[4] revision of the key's settings that the node has used
-- ARGV[5] account
-- ARGV[6] key
-- ARGV[7] JSON of what is known of the call, for the entry of an expiry; empty for a sandbox
-- ARGV[8] tokens the call may use, for the per-minute limits; empty if they do not count
-- ARGV[9] least amount in E8
-- ARGV[10] the call's tags as `name=value`, separated by spaces; empty for none
-- ARGV[11] how many scopes of tags an account may have in Redis
-- ARGV[12] JSON of what Postgres has of unknown tags: moment, and for each scope limits, rev, spent, windows; empty before it was read
-- ARGV[13] hash of the Idempotency-Key
-- ARGV[14] hash of the body
-- ARGV[15] request id
--
-- answers
--   reserved, E8                  holds this much, now or before by the same request
--   not_ready                     the shard has not been filled from Postgres
--   released_before               released, perhaps before this reserve arrived
--   closed_before                 settled or expired
--   exists_with_different_amount  the id is open with an amount that is not within the request's
--   other_payer                   the id belongs to another account or key: a defect of the caller
--   unknown_account
--   frozen
--   unknown_key
--   revoked
--   stale_key, rev, settings      the node's copy of the settings is older
--   intent_conflict, request id          the first call with this Idempotency-Key had another body
--   intent_open, request id, rid         the first call is open
--   intent_charged, request id, rid, E8  the first call was charged this much
--   too_many_intents              the account has the most keys that are kept, and the oldest belong to open calls
--   too_many_limited_tags         the call has more tags with a limit than a call may have
--   too_many_tags                 the account has the most scopes of tags in Redis
--   unknown_tags, moment, scopes  the scopes of these tags are not in Redis; the caller reads them from Postgres and asks again
--   rate_limited, milliseconds    how long it takes until this call may be repeated
--   recalling, milliseconds, scope   nodes may have what is missing: those of this scope give it back within this time, and the
--                                 caller asks again
--   insufficient_balance, E8      with what the account has available
--   limit_exceeded, E8, scope, window, limit, spent, held, day, name   the limit that leaves least, and what it leaves

-- include scopes
-- include tags
-- include rates
-- include allowances
-- include intents

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local reservation = redis.call('HMGET', KEYS[4], 'state', 'amount', 'account', 'key')
local state = reservation[1]
if state then
  if reservation[3] ~= ARGV[5] or reservation[4] ~= ARGV[6] then return 'other_payer' end
  if state == 'released' or state == 'tombstoned' then return 'released_before' end
  if state ~= 'open' then return 'closed_before' end
  local held = tonumber(reservation[2])
  if held < tonumber(ARGV[9]) or held > tonumber(ARGV[2]) then return 'exists_with_different_amount' end
  return { 'reserved', reservation[2] }
end

local account = redis.call('HMGET', KEYS[2], 'limits', 'held', 'spent', 'windows', 'status', 'available', 'tags')
if not account[5] then return 'unknown_account' end

local key = redis.call('HMGET', KEYS[3], 'limits', 'held', 'spent', 'windows', 'account', 'status', 'rev', 'scopes', 'calls',
  'calls_at', 'tokens', 'tokens_at')
if key[5] ~= ARGV[5] then return 'unknown_key' end
if key[6] ~= 'active' then return 'revoked' end
if account[5] ~= 'active' then return 'frozen' end
if tonumber(key[7]) > tonumber(ARGV[4]) then
  return { 'stale_key', key[7], redis.call('HGET', KEYS[3], 'settings') }
end

local room_for_intent
if ARGV[13] then
  local rid, body, request = intent_of(KEYS[6], ARGV[13])
  local first, charged = call_of(KEYS[4], rid)
  if first and body ~= ARGV[14] then return { 'intent_conflict', request } end
  if first == 'open' then return { 'intent_open', request, rid } end
  if is_charged(first, charged) then return { 'intent_charged', request, rid, charged } end
  room_for_intent = find_room(KEYS[6], KEYS[7], ARGV[13])
  if not room_for_intent then return 'too_many_intents' end
end

local time = redis.call('TIME')
local calls_at, tokens_at
if ARGV[8] ~= '' and (key[9] or key[11]) then
  local now = time[1] * 1000000 + time[2]
  local calls_late, tokens_late = 0, 0
  if key[9] then calls_at, calls_late = take(tonumber(key[9]), believed(key[10], now), 1, now) end
  if key[11] then tokens_at, tokens_late = take(tonumber(key[11]), key[12], tonumber(ARGV[8]), now) end
  local late = math.max(calls_late, tokens_late)
  if late > 0 then return { 'rate_limited', integer(math.ceil(late / 1000)) } end
end

local scopes = key[8] or ''
if account[7] and ARGV[10] ~= '' then
  local tags = limited_tags(account[7], ARGV[5], ARGV[10])
  if not tags then return 'too_many_limited_tags' end
  if #tags > 0 then scopes = (scopes == '' and '' or scopes .. ' ') .. table.concat(tags, ' ') end
end
local least = tonumber(ARGV[9])
local chain = chain_of(KEYS[2], scopes, KEYS[3])
local read = read_scopes(chain, account, key)
local unknown, known = unknown_tags(chain, read), {}
if #unknown > 0 then
  if redis.call('ZCARD', uses_of(KEYS[2])) + #unknown > tonumber(ARGV[11]) then return 'too_many_tags' end
  local moment, names = moment_of(KEYS[1], KEYS[2]), {}
  for _, place in ipairs(unknown) do names[#names + 1] = (string.gsub(chain[place], '^{.-}:', '')) end
  known = ARGV[12] ~= '' and cjson.decode(ARGV[12]) or known
  if known.moment ~= moment then return { 'unknown_tags', moment, table.concat(names, ' ') } end
  complete(chain, read, unknown, known)
end
local available, rooms = tonumber(account[6]), rooms_of(read)
if least > math.min(available, least_of(rooms)) then
  local left, scope = recall_for(KEYS[2], short_of(available, chain, rooms, least))
  if left > 0 then return { 'recalling', integer(left), scope } end
  read = read_scopes(chain)
  complete(chain, read, unknown, known)
  available, rooms = tonumber(redis.call('HGET', KEYS[2], 'available')), rooms_of(read)
end
local room = math.min(available, least_of(rooms))
local amount = math.min(tonumber(ARGV[2]), math.max(least, math.floor(room / 2)))
if amount > room then
  local limit = reached(available, chain, rooms, amount)
  if not limit then return { 'insufficient_balance', integer(available) } end
  return { 'limit_exceeded', unpack(limit) }
end

local ms = integer(time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HINCRBY', KEYS[2], 'available', integer(0 - amount))
make_tags(chain, unknown, known, KEYS[5], ARGV[5], ms)
book(chain, nil, amount, 0)
use_tags(chain, 1, ms)
redis.call('HSET', KEYS[4], 'state', 'open', 'amount', integer(amount), 'account', ARGV[5], 'key', ARGV[6], 'facts', ARGV[7],
  'scopes', scopes)
if calls_at then redis.call('HSET', KEYS[3], 'calls_at', integer(calls_at)) end
if tokens_at then
  redis.call('HSET', KEYS[3], 'tokens_at', integer(tokens_at))
  redis.call('HSET', KEYS[4], 'tokens', ARGV[8])
end
local deadline = '+inf'
if ARGV[3] ~= '' then
  deadline = integer(ms + tonumber(ARGV[3]))
end
redis.call('ZADD', KEYS[5], deadline, ARGV[1])
if ARGV[13] then note_intent(KEYS[6], KEYS[7], room_for_intent, ARGV[13], { ARGV[1], ARGV[14], ARGV[15] }) end
return { 'reserved', integer(amount) }

#!lua
-- Grants a node money in advance: opens an allowance of one key, at most as large as the node wants.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:k:<key>
-- KEYS[4] {sNNN}:exp
-- ARGV[1] generation
-- ARGV[2] account
-- ARGV[3] key
-- ARGV[4] revision of the key's settings that the node uses
-- ARGV[5] what the node wants, in E8
-- ARGV[6] what must stay available on account and key, in E8
-- ARGV[7] the smallest amount worth granting, in E8
-- ARGV[8] lease in milliseconds
--
-- answers
--   granted, E8       now, or before by the same request; with what is free
--   not_ready         the shard has not been filled from Postgres
--   unknown_account
--   unknown_key
--   revoked
--   frozen
--   stale_key         the node's copy of the settings is older
--   limited           the key has a per-minute limit, so each of its calls is counted in the shared ledger
--   recalled          an operation lacked money a moment ago
--   too_little        account or key cannot spare the smallest amount
--   closed_before     the generation was opened before and its lease has ended

-- include key-limits
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local known = read_allowance(KEYS[2], ARGV[1])
if known and known.state == 'live' and known.sequence == 0 then return { 'granted', integer(free_of(known)) } end
if known then return 'closed_before' end

local account = redis.call('HMGET', KEYS[2], 'status', 'available', 'recall_until', 'al_live')
if not account[1] then return 'unknown_account' end
local key = redis.call('HMGET', KEYS[3], 'account', 'status', 'rev', 'limit', 'spent', 'held', 'caps', 'calls', 'tokens')
if key[1] ~= ARGV[2] then return 'unknown_key' end
if key[2] ~= 'active' then return 'revoked' end
if account[1] ~= 'active' then return 'frozen' end
if tonumber(key[3]) > tonumber(ARGV[4]) then return 'stale_key' end
if key[8] or key[9] then return 'limited' end
local now = clock()
if tonumber(account[3] or 0) > now then return 'recalled' end

local room = room_of(KEYS[3], { key[4], key[5], key[6], key[7] })
local granted = grantable(tonumber(account[2]), room, tonumber(account[4] or 0) + 1, tonumber(ARGV[5]), tonumber(ARGV[6]), 0)
if granted < tonumber(ARGV[7]) then return 'too_little' end

local until_ms = now + tonumber(ARGV[8])
change_allowance(KEYS[2], ARGV[1], nil, { key = ARGV[3], state = 'live', sequence = 0, digest = '-', total = granted, open = 0,
  until_ms = until_ms, entry = '-' })
redis.call('ZADD', KEYS[4], 'LT', integer(until_ms), 'a ' .. ARGV[2])
return { 'granted', integer(granted) }

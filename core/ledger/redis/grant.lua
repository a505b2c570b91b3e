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
-- ARGV[6] what must stay available on the account and within each limit, in E8
-- ARGV[7] the smallest amount worth granting, in E8
-- ARGV[8] lease in milliseconds
--
-- answers
--   granted, E8, tags   now, or before by the same request; with what is free, and the names of tags that have a limit
--   not_ready         the shard has not been filled from Postgres
--   unknown_account
--   unknown_key
--   revoked
--   frozen
--   stale_key         the node's copy of the settings is older
--   limited           the key has a per-minute limit, so each of its calls is counted in the shared ledger
--   recalled          an operation lacked money a moment ago
--   too_little        the account or a limit cannot spare the smallest amount
--   closed_before     the generation was opened before and its lease has ended

-- include scopes
-- include tags
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local known = read_allowance(KEYS[2], ARGV[1])
local tags = names_of(redis.call('HGET', KEYS[2], 'tags'))
if known and known.state == 'live' and known.sequence == 0 then return { 'granted', integer(free_of(known)), tags } end
if known then return 'closed_before' end

local account = redis.call('HMGET', KEYS[2], 'status', 'available')
if not account[1] then return 'unknown_account' end
local key = redis.call('HMGET', KEYS[3], 'account', 'status', 'rev', 'calls', 'tokens', 'scopes')
if key[1] ~= ARGV[2] then return 'unknown_key' end
if key[2] ~= 'active' then return 'revoked' end
if account[1] ~= 'active' then return 'frozen' end
if tonumber(key[3]) > tonumber(ARGV[4]) then return 'stale_key' end
if key[4] or key[5] then return 'limited' end
local now = clock()
local chain = chain_of(KEYS[2], key[6], KEYS[3])
if is_recalled(chain, now) then return 'recalled' end

local granted = grantable(tonumber(account[2]), chain, rooms_of(read_scopes(chain)), 0, 1, tonumber(ARGV[5]), tonumber(ARGV[6]), 0)
if granted < tonumber(ARGV[7]) then return 'too_little' end

local until_ms = now + tonumber(ARGV[8])
change_allowance(KEYS[2], ARGV[1], nil, { key = ARGV[3], state = 'live', sequence = 0, digest = '-', total = granted, open = 0,
  until_ms = until_ms, entry = '-', scopes = key[6] or '' })
redis.call('ZADD', KEYS[4], 'LT', integer(until_ms), 'a ' .. ARGV[2])
return { 'granted', integer(granted), tags }

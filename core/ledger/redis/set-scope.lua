#!lua flags=allow-oom
-- Creates a scope (an API key, a team or a member), or changes the limits and settings of an existing one or of an account. Its
-- counters stay.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:<scope>
-- KEYS[3] {sNNN}:a:<account>
-- ARGV[1] account
-- ARGV[2] revision of the settings
-- ARGV[3] JSON: revision, limits, and for a key its status and settings, as fields of the scope's hash (field, value, field, value);
--         an empty value means no field
--
-- answers
--   set, count, settings  how many allowances were recalled: nodes admit calls from them until they have given them back; and the
--                 settings before
--   older         the stored revision is higher; nothing changes
--   not_ready     the shard has not been filled from Postgres
--   unknown_account
--   other_payer   the scope belongs to another account: a defect of the caller

-- include scopes
-- include allowances
-- include set-fields

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end
if KEYS[2] == KEYS[3] and redis.call('EXISTS', KEYS[3]) == 0 then return 'unknown_account' end

local scope = redis.call('HMGET', KEYS[2], 'account', 'rev', 'settings')
if scope[1] and scope[1] ~= ARGV[1] then return 'other_payer' end
if tonumber(scope[2] or 0) > tonumber(ARGV[2]) then return 'older' end
if not scope[1] then
  redis.call('HSET', KEYS[2], 'account', ARGV[1])
  redis.call('HSETNX', KEYS[2], 'spent', '0')
  redis.call('HSETNX', KEYS[2], 'held', '0')
end
local is_other = set_fields(KEYS[2], cjson.decode(ARGV[3]))
local now = clock()
if not is_other and not is_recalling(KEYS[3], now, KEYS[2]) then return { 'set', '0', scope[3] or '' } end
return { 'set', integer_of((recall_all(KEYS[3], now, KEYS[2]))), scope[3] or '' }

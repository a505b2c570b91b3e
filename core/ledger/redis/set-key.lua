#!lua flags=allow-oom
-- Creates a key, or changes the status, limits and settings of an existing one. Its counters stay.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:k:<key>
-- KEYS[3] {sNNN}:a:<account>
-- ARGV[1] account
-- ARGV[2] id of the key
-- ARGV[3] revision of the settings
-- ARGV[4] JSON: status, revision, settings and limits as fields of the key's hash (field, value, field, value); an empty value means no field
--
-- answers
--   set, count, settings  how many allowances were recalled: nodes admit calls from them until they have given them back; and the
--                 settings before
--   older         the stored revision is higher; nothing changes
--   not_ready     the shard has not been filled from Postgres
--   other_payer   the key belongs to another account: a defect of the caller

-- include allowances
-- include set-fields

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local key = redis.call('HMGET', KEYS[2], 'account', 'rev', 'settings')
if not key[1] then
  redis.call('HSET', KEYS[2], 'account', ARGV[1], 'spent', '0', 'held', '0')
else
  if key[1] ~= ARGV[1] then return 'other_payer' end
  if tonumber(key[2]) > tonumber(ARGV[3]) then return 'older' end
end
local is_other = set_fields(KEYS[2], cjson.decode(ARGV[4]))
local now = clock()
if not is_other and not is_recalling(KEYS[3], now) then return { 'set', '0', key[3] or '' } end
return { 'set', integer_of((recall_all(KEYS[3], now, ARGV[2]))), key[3] or '' }

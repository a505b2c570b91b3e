#!lua flags=allow-oom
-- Changes the limits of a tag: those of its name, or those of one value, whose scope it changes only if that is in Redis. Nodes pay
-- calls from allowances that have no limited tag, so allowances are recalled when a name becomes limited.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:g:<account>:<name>, or with =<value>
-- ARGV[1] the tag's name; empty for the limits of a value
-- ARGV[2] revision of the limits
-- ARGV[3] the limits of a name as the account's field has them (tags.lua); of a value: JSON, fields of its hash as for set-scope.lua
--
-- answers
--   set, count    how many allowances were recalled: nodes admit calls from them until they have given them back
--   older         the stored revision is higher; nothing changes
--   not_ready     the shard has not been filled from Postgres
--   unknown_account

-- include scopes
-- include tags
-- include allowances
-- include set-fields

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end
if redis.call('EXISTS', KEYS[2]) == 0 then return 'unknown_account' end

local rev = redis.call('HGET', KEYS[3], 'rev')
if rev and tonumber(rev) > tonumber(ARGV[2]) then return 'older' end
local is_set, is_new = true, false
if ARGV[1] ~= '' then
  is_set, is_new = set_name(KEYS[2], ARGV[1], ARGV[2], ARGV[3])
elseif rev then
  set_fields(KEYS[3], cjson.decode(ARGV[3]))
end
if not is_set then return 'older' end
redis.call('HINCRBY', KEYS[2], 'tags_rev', 1)
local now = clock()
if ARGV[1] == '' or not is_new and not is_recalling(KEYS[2], now, KEYS[2]) then return { 'set', '0' } end
return { 'set', integer_of((recall_all(KEYS[2], now, KEYS[2]))) }

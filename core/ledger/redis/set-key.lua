#!lua flags=allow-oom
-- Makes a key, or changes status, limits and settings of one that is there. Its counters stay.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:k:<key>
-- KEYS[3] {sNNN}:a:<account>
-- ARGV[1] account
-- ARGV[2] status
-- ARGV[3] limit in E8, empty for none
-- ARGV[4] revision of the settings
-- ARGV[5] JSON of the settings
-- ARGV[6] limit of a day in E8, empty for none
-- ARGV[7] limit of a month in E8, empty for none
-- ARGV[8] calls in a minute, empty for no limit
-- ARGV[9] tokens in a minute, empty for no limit
-- ARGV[10] id of the key
--
-- answers
--   set, count    with how many allowances were recalled: calls are admitted from them until nodes have given them back
--   older         what is there has a higher revision, nothing changes
--   not_ready     the shard has not been filled from Postgres
--   other_payer   the key belongs to another account: a defect of the caller

-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local key = redis.call('HMGET', KEYS[2], 'account', 'rev')
if not key[1] then
  redis.call('HSET', KEYS[2], 'account', ARGV[1], 'spent', '0', 'held', '0')
else
  if key[1] ~= ARGV[1] then return 'other_payer' end
  if tonumber(key[2]) > tonumber(ARGV[4]) then return 'older' end
end
local rules = { 'status', 'rev', 'limit', 'day_limit', 'month_limit', 'calls', 'tokens' }
local before = redis.call('HMGET', KEYS[2], unpack(rules))
redis.call('HSET', KEYS[2], 'status', ARGV[2], 'rev', ARGV[4], 'settings', ARGV[5])
local function set(field, value)
  if value == '' then redis.call('HDEL', KEYS[2], field) else redis.call('HSET', KEYS[2], field, value) end
end
set('limit', ARGV[3])
set('day_limit', ARGV[6])
set('month_limit', ARGV[7])
set('calls', ARGV[8])
set('tokens', ARGV[9])
set('caps', ARGV[6] .. ARGV[7] .. ARGV[8] .. ARGV[9] == '' and '' or '1')
local after = redis.call('HMGET', KEYS[2], unpack(rules))
local is_other = false
for at = 1, #rules do is_other = is_other or before[at] ~= after[at] end
local now = clock()
if not is_other and not is_recalling(KEYS[3], now) then return 'set' end
return { 'set', integer_of((recall_all(KEYS[3], now, ARGV[10]))) }

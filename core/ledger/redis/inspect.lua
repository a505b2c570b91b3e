#!lua flags=no-writes
-- Reads some accounts of a shard, some of their keys and all of their open holds at one moment, for verification. The accounts,
-- keys and reservations are not among its KEYS; all are in the shard's slot. Its time grows with the open holds of the whole
-- shard, about 2 µs for each.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:exp
-- ARGV[1] {sNNN}:
-- ARGV[2] JSON: accounts and keys, lists of ids
--
-- answers
--   inspected, JSON   now (milliseconds), accounts (id to status, available, held, posted, seq), keys (id to spent, held,
--                     limit), holds (lists of rid, account, key, amount, deadline, whether it has facts; an allowance is
--                     listed with its generation as rid); a missing value is false, amounts are strings
--   not_ready         the shard has not been filled from Postgres

-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local wanted = cjson.decode(ARGV[2])
local seen = { accounts = {}, keys = {}, holds = {} }
for _, id in ipairs(wanted.accounts) do
  seen.accounts[id] = redis.call('HMGET', ARGV[1] .. 'a:' .. id, 'status', 'available', 'held', 'posted', 'seq')
end
for _, id in ipairs(wanted.keys) do
  seen.keys[id] = redis.call('HMGET', ARGV[1] .. 'k:' .. id, 'spent', 'held', 'limit')
end
local index = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for _, id in ipairs(wanted.accounts) do
  each_allowance(ARGV[1] .. 'a:' .. id, function(generation, al)
    if al.total > 0 then
      table.insert(seen.holds, { generation, id, al.key, integer_of(al.total), integer_of(al.until_ms), true })
    end
  end)
end
for at = 1, #index, 2 do
  local hold = redis.call('HMGET', ARGV[1] .. 'r:' .. index[at], 'account', 'key', 'amount', 'facts')
  if hold[1] and seen.accounts[hold[1]] and hold[3] then
    table.insert(seen.holds, { index[at], hold[1], hold[2], hold[3], index[at + 1], hold[4] ~= '' })
  end
end
local time = redis.call('TIME')
seen.now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return { 'inspected', cjson.encode(seen) }

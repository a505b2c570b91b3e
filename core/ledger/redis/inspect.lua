#!lua flags=no-writes
-- Reads some accounts of a shard, some of their scopes and all of their open holds at one moment, for verification. The accounts,
-- scopes and reservations are not among its KEYS; all are in the shard's slot. Its time grows with the open holds of the whole
-- shard, about 2 µs for each.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:exp
-- ARGV[1] {sNNN}:
-- ARGV[2] JSON: accounts, a list of ids, and scopes, a list of names
--
-- answers
--   inspected, JSON   now (milliseconds), accounts (id to status, available, held, posted, seq), scopes (name to spent,
--                     held, limits), holds (lists of rid, account, key, amount, deadline, whether it has facts, scopes; an allowance is
--                     listed with its generation as rid); a missing value is false, amounts are strings
--   not_ready         the shard has not been filled from Postgres

-- include scopes
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local wanted = cjson.decode(ARGV[2])
local seen = { accounts = {}, scopes = {}, holds = {} }
for _, id in ipairs(wanted.accounts) do
  seen.accounts[id] = redis.call('HMGET', ARGV[1] .. 'a:' .. id, 'status', 'available', 'held', 'posted', 'seq')
end
for _, name in ipairs(wanted.scopes) do
  seen.scopes[name] = redis.call('HMGET', ARGV[1] .. name, 'spent', 'held', 'limits')
end
local index = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for _, id in ipairs(wanted.accounts) do
  each_allowance(ARGV[1] .. 'a:' .. id, function(generation, al)
    if al.total > 0 then
      table.insert(seen.holds, { generation, id, al.key, integer_of(al.total), integer_of(al.until_ms), true, al.scopes })
    end
  end)
end
for at = 1, #index, 2 do
  local hold = redis.call('HMGET', ARGV[1] .. 'r:' .. index[at], 'account', 'key', 'amount', 'facts', 'scopes')
  if hold[1] and seen.accounts[hold[1]] and hold[3] then
    table.insert(seen.holds, { index[at], hold[1], hold[2], hold[3], index[at + 1], hold[4] ~= '', hold[5] or '' })
  end
end
local time = redis.call('TIME')
seen.now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return { 'inspected', cjson.encode(seen) }

#!lua flags=allow-oom
-- Removes scopes of an account's tags that were not used for a while: those without an open hold, whose charges Postgres has all. The
-- next call with such a tag reads from Postgres what it has spent.
--
-- The scopes are not among its KEYS; all are in the account's slot.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:exp
-- KEYS[4] {sNNN}:ob
-- KEYS[5] {sNNN}:tags:<account>
-- ARGV[1] account
-- ARGV[2] {sNNN}:
-- ARGV[3] after how many milliseconds without use a scope leaves
--
-- answers
--   left, count   how many scopes have left
--   not_ready     the shard has not been filled from Postgres

local AT_ONCE = '500'

-- When the next ones are looked for if some must stay for now, in milliseconds.
local LOOK_MS = 10000

local function integer(number) return string.format('%.0f', number + 0) end

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local idle_ms = tonumber(ARGV[3])
-- Postgres has all entries before the first one of the outbox, because these are forgotten only then.
local head = redis.call('XRANGE', KEYS[4], '-', '+', 'COUNT', '1')[1]
local waiting_from = head and tonumber(string.match(head[1], '^%d+')) or math.huge
local idle = redis.call('ZRANGE', KEYS[5], '-inf', integer(now - idle_ms), 'BYSCORE', 'LIMIT', '0', AT_ONCE, 'WITHSCORES')
local left = 0
for at = 1, #idle, 2 do
  local name = ARGV[2] .. idle[at]
  if tonumber(redis.call('HGET', name, 'open')) > 0 then
    redis.call('ZADD', KEYS[5], integer(now), idle[at])
  elseif tonumber(idle[at + 1]) < waiting_from then
    redis.call('DEL', name)
    redis.call('ZREM', KEYS[5], idle[at])
    left = left + 1
  end
end
-- What was read from Postgres before is no longer sure to be the last state of these scopes.
if left > 0 then redis.call('HINCRBY', KEYS[2], 'tags_rev', 1) end
local oldest = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
if oldest[1] then
  redis.call('ZADD', KEYS[3], integer(math.max(oldest[2] + idle_ms, now + LOOK_MS)), 'g ' .. ARGV[1])
else
  redis.call('ZREM', KEYS[3], 'g ' .. ARGV[1])
end
return { 'left', integer(left) }

#!lua
-- Applies a top-up or an adjustment that already is a row of Postgres. The row's id makes it safe to repeat.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:r:<id of the credit>
-- KEYS[4] {sNNN}:ob
-- ARGV[1] id of the credit
-- ARGV[2] amount in E8, negative for an adjustment
-- ARGV[3] account
-- ARGV[4] the largest possible balance, in E8
--
-- answers
--   credited, E8           now or before; with the balance as it is now
--   not_ready              the shard has not been filled from Postgres
--   unknown_account
--   above_maximum          the balance would leave the range in which it is exact
--   recalling, milliseconds, scope   nodes may have what is missing: those of this scope give it back within this time, and the
--                                 caller asks again
--   insufficient_balance   an adjustment above what is available
--   other_payer            the id belongs to another account or to a reservation: a defect of the caller

-- include scopes
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local tombstone = redis.call('HMGET', KEYS[3], 'state', 'account')
if tombstone[1] then
  if tombstone[1] ~= 'credited' or tombstone[2] ~= ARGV[3] then return 'other_payer' end
  return { 'credited', redis.call('HGET', KEYS[2], 'posted') }
end

local account = redis.call('HMGET', KEYS[2], 'available', 'posted')
if not account[1] then return 'unknown_account' end
local amount = tonumber(ARGV[2])
if tonumber(account[2]) + amount > tonumber(ARGV[4]) then return 'above_maximum' end
if tonumber(account[1]) + amount < 0 then
  local left, scope = recall_for(KEYS[2], { KEYS[2] })
  if left > 0 then return { 'recalling', integer(left), scope } end
  if tonumber(redis.call('HGET', KEYS[2], 'available')) + amount < 0 then return 'insufficient_balance' end
end

redis.call('HINCRBY', KEYS[2], 'available', ARGV[2])
local posted = redis.call('HINCRBY', KEYS[2], 'posted', ARGV[2])
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
redis.call('HSET', KEYS[3], 'state', 'credited', 'account', ARGV[3])
redis.call('XADD', KEYS[4], '*', 'kind', 'credit', 'account', ARGV[3], 'key', '', 'rid', ARGV[1],
  'seq', integer(seq), 'amount', ARGV[2], 'posted', integer(posted), 'shortfall', '0', 'record', '')
return { 'credited', integer(posted) }

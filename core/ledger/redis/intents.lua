#!lua library
-- Idempotency-Keys of an account. {sNNN}:i:<account> has the call of each key's hash: its rid, the hash of its body and its
-- request id. {sNNN}:io:<account> has the order of the keys. A call's reservation says how the call ended, so an operation that
-- closes a call need not know its key.
--
-- The functions read reservations that are not among a script's KEYS; all are in the account's slot.

-- The same as in ledger.ts.
local MAX_INTENTS = 10000

-- A key is known for ten minutes after its call, and its reservation for fifteen. The reservation has this time left when the key
-- is forgotten.
local FREE_MS = 300000

-- How long an account's keys are kept without a new one: longer than any call runs. An account that sends no more keys leaves
-- nothing behind.
local INTENTS_KEPT_MS = '86400000'

-- How many of the oldest keys are searched for one whose call has ended.
local LOOKED_AT = 1000

local function intent_of(calls, key)
  local known = redis.call('HGET', calls, key)
  if not known then return nil end
  return string.match(known, '^(%S+) (%S+) (%S+)$')
end

-- Returns the state of a key's call and what it was charged, or nothing if the key may be used again. `name` is any key of the
-- shard.
local function call_of(name, rid)
  if not rid then return nil end
  local reservation = string.match(name, '^{.-}:') .. 'r:' .. rid
  local call = redis.call('HMGET', reservation, 'state', 'charged')
  local left = redis.call('PTTL', reservation)
  if left >= 0 and left <= FREE_MS then return nil end
  return call[1], call[2]
end

local function is_charged(state, charged) return state == 'settled' and charged ~= '0' end

-- Returns which keys a new key replaces, and which keys of open calls move to the end; nothing if there is no room. Each time, it
-- replaces up to two keys that may be used again, so that these never pile up.
local function find_room(calls, order, key)
  local added = redis.call('HEXISTS', calls, key) == 1 and 0 or 1
  local excess = redis.call('ZCARD', order) + added - MAX_INTENTS
  local room = { dropped = {}, moved = {} }
  for at = 0, LOOKED_AT - 1 do
    local oldest = redis.call('ZRANGE', order, at, at)[1]
    if not oldest or #room.dropped == 2 then break end
    local state = call_of(calls, (intent_of(calls, oldest)))
    if state and #room.dropped >= excess then break end
    table.insert(state == 'open' and room.moved or room.dropped, oldest)
  end
  if excess > 0 and #room.dropped == 0 then return nil end
  return room
end

local function note_intent(calls, order, room, key, call)
  local time = redis.call('TIME')
  local now = string.format('%.0f', time[1] * 1000000 + time[2])
  for _, dropped in ipairs(room.dropped) do
    redis.call('HDEL', calls, dropped)
    redis.call('ZREM', order, dropped)
  end
  for _, moved in ipairs(room.moved) do redis.call('ZADD', order, now, moved) end
  redis.call('HSET', calls, key, table.concat(call, ' '))
  redis.call('ZADD', order, now, key)
  redis.call('PEXPIRE', calls, INTENTS_KEPT_MS)
  redis.call('PEXPIRE', order, INTENTS_KEPT_MS)
end

local function names_of(account)
  return (string.gsub(account, ':a:', ':i:', 1)), (string.gsub(account, ':a:', ':io:', 1))
end

-- Records the key of an ended call, even if there is no room for it.
local function keep_intent(calls, order, key, call)
  note_intent(calls, order, find_room(calls, order, key) or { dropped = {}, moved = {} }, key, call)
end

-- Gives a late settle the key that its usage record names. Returns false if another call, open or charged, owns that key.
local function claim_intent(account, rid, record)
  local call = record ~= '' and cjson.decode(record) or {}
  local intent = call.routing and call.routing.intent
  if not intent then return true end
  local calls, order = names_of(account)
  local other = intent_of(calls, intent.key)
  local state, charged = call_of(account, other)
  if state and other ~= rid and (state == 'open' or is_charged(state, charged)) then return false end
  keep_intent(calls, order, intent.key, { rid, intent.body, call.requestId })
  return true
end

local function restore_intent(account, rid, intent)
  local calls, order = names_of(account)
  keep_intent(calls, order, intent.key, { rid, intent.body, intent.request })
end

#!lua flags=allow-oom
-- Maintains the allowances of an account. It gives back the free money of allowances whose lease has ended, and later what their
-- open calls held. It forgets a closed allowance some time after Postgres has its last entry.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:exp
-- KEYS[4] {sNNN}:ob
-- ARGV[1] account
--
-- answers
--   lapsed, count, count   how many leases had ended, and of how many allowances the open calls were given up
--   not_ready              the shard has not been filled from Postgres

-- include scopes
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local now = clock()
local head = redis.call('XRANGE', KEYS[4], '-', '+', 'COUNT', '1')[1]
local lapsed, given_up, look_at = 0, 0, nil
each_allowance(KEYS[2], function(generation, al)
  local at = now + OPEN_MS
  if al.state == 'live' then
    if al.until_ms <= now then
      lapse(KEYS[2], generation, al, now)
      lapsed = lapsed + 1
    else
      at = al.until_ms
    end
  elseif al.state == 'draining' then
    if al.until_ms <= now then
      change_allowance(KEYS[2], generation, al, { key = al.key, state = 'closed', sequence = al.sequence, digest = al.digest, total = 0,
        open = 0, until_ms = 0, entry = al.entry, scopes = al.scopes })
      given_up = given_up + 1
    else
      at = al.until_ms
    end
  elseif al.until_ms == 0 then
    if not head or is_before(al.entry, head[1]) then
      al.until_ms = now + KNOWN_MS
      write_allowance(KEYS[2], generation, al)
    end
  elseif al.until_ms <= now then
    redis.call('HDEL', KEYS[2], 'al:' .. generation)
    at = nil
  else
    at = al.until_ms
  end
  if at and (not look_at or at < look_at) then look_at = at end
end)
if look_at then
  redis.call('ZADD', KEYS[3], integer_of(look_at), 'a ' .. ARGV[1])
else
  redis.call('ZREM', KEYS[3], 'a ' .. ARGV[1])
end
return { 'lapsed', integer_of(lapsed), integer_of(given_up) }

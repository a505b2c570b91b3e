#!lua flags=allow-oom
-- Recalls the live allowances of a scope: takes back those whose lease has ended, and prevents the
-- renewal of the rest.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:<scope>
--
-- answers
--   recalled, count, milliseconds   how many are still live, and for how long at most
--   not_ready                       the shard has not been filled from Postgres

-- include scopes
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local now = clock()
local live, left = recall_all(KEYS[2], now, KEYS[3])
return { 'recalled', integer_of(live), integer_of(left) }

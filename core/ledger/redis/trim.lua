#!lua flags=allow-oom
-- Forgets the head of an outbox, whose rows are committed, and lets the closed reservations behind it expire. They stay for a
-- while, because a repetition of what closed them must get the same answer. Writing them back without their former record halves
-- their memory.
--
-- A late trim forgets nothing. After a loss and a clock that was set back, unread entries can have smaller ids than those that
-- were read.
--
-- KEYS[1]   {sNNN}:ob
-- KEYS[2..] {sNNN}:r:<rid>, one per entry
-- ARGV[1] the first id that stays
-- ARGV[2] milliseconds the reservations stay
-- ARGV[3] the id of the first entry
--
-- answers
--   trimmed
--   other_head   the outbox begins with another entry: these were forgotten before, or lost

local head = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', '1')
if not head[1] or head[1][1] ~= ARGV[3] then return 'other_head' end

for index = 2, #KEYS do
  local closed = redis.call('DUMP', KEYS[index])
  if closed then
    redis.call('RESTORE', KEYS[index], ARGV[2], closed, 'REPLACE')
  end
end
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
return 'trimmed'

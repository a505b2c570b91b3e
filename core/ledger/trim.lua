#!lua flags=allow-oom
-- Forgets the head of an outbox, whose rows are committed, and lets the closed reservations behind it end. They stay for a
-- while, so that a repetition of what closed them gets the same answer.
--
-- KEYS[1]   {sNNN}:ob
-- KEYS[2..] {sNNN}:r:<rid>, one per entry
-- ARGV[1] the first id that stays
-- ARGV[2] milliseconds the reservations stay
--
-- answers
--   trimmed

for index = 2, #KEYS do redis.call('PEXPIRE', KEYS[index], ARGV[2]) end
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
return 'trimmed'

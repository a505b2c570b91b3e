#!lua flags=allow-oom
-- Writes something after all that was written before: a replica that has it has all of that. A script because it must be
-- taken when Redis is full, as what closes calls is.
--
-- KEYS[1] replicated
-- ARGV[1] anything
--
-- answers
--   marked

redis.call('SET', KEYS[1], ARGV[1])
return 'marked'

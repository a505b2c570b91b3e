#!lua flags=allow-oom
-- Counts on, after all that was written before: a replica that has it has all of that. A script because it must be
-- taken when Redis is full, as what closes calls is.
--
-- KEYS[1] replicated
--
-- answers
--   marked

redis.call('INCR', KEYS[1])
return 'marked'

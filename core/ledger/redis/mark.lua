#!lua flags=allow-oom
-- Increments a counter after all earlier writes: a replica that has the increment has these writes, too. It is a script because
-- Redis must accept it even when it is full, like the scripts that close calls.
--
-- KEYS[1] replicated
--
-- answers
--   marked

redis.call('INCR', KEYS[1])
return 'marked'

#!lua flags=allow-oom
-- Writes who a key belongs to. It never changes; a script only because a revocation, which repeats it, must be taken when
-- Redis is full.
--
-- KEYS[1] key:<sha256>
-- ARGV[1] "accountId keyId"
--
-- answers
--   indexed

redis.call('SET', KEYS[1], ARGV[1])
return 'indexed'

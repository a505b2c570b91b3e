#!lua flags=allow-oom
-- Writes the account and key that a secret's hash belongs to. They never change. It is a script only because a revocation repeats
-- it, and Redis must accept that even when it is full.
--
-- KEYS[1] key:<sha256>
-- ARGV[1] "accountId keyId"
--
-- answers
--   indexed

redis.call('SET', KEYS[1], ARGV[1])
return 'indexed'

#!lua flags=allow-oom
-- Writes the account and key that a secret's hash belongs to. They never change. It is a script only because a change of a key
-- repeats it, and Redis must accept that even when it is full.
--
-- KEYS[1] key:<sha256>
-- ARGV[1] "accountId keyId"
-- ARGV[2] when the entry expires, in milliseconds since 1970; empty: never
--
-- answers
--   indexed

if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
end
return 'indexed'

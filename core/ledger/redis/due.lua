#!lua flags=no-writes
-- Finds the reservations of some shards whose lease has ended by the clock of Redis, of each shard the oldest first. One script
-- looks at all shards, because even an idle process looks at them every few seconds. A Cluster gets one script for each shard.
--
-- KEYS[1..] {sNNN}:exp of each shard
-- ARGV[1] the most reservations of a shard to return
--
-- answers
--   due, lines   each line is `n rid`: a reservation of the shard of KEYS[n]

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local lines = {}
for index = 1, #KEYS do
  for _, rid in ipairs(redis.call('ZRANGEBYSCORE', KEYS[index], '-inf', now, 'LIMIT', '0', ARGV[1])) do
    lines[#lines + 1] = index .. ' ' .. rid
  end
end
return { 'due', table.concat(lines, '\n') }

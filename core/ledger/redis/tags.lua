#!lua library
-- Tags of calls as scopes of spending (scopes.lua). Only tags count whose name has a limit: for itself, or for one of its values. Calls
-- with other tags cost nothing here.
--
-- The account's hash has these fields:
--
-- tags      for each name that has or had a limit: the name, the revision of its limits, and the limits of each value by window with
--           commas; `off` if neither the name nor one of its values has a limit. For example `customer 7 -,500,-,- project 3 off`
-- tags_rev  counts what makes limits and spending wrong that somebody has read from Postgres: changed limits, and scopes that left
--
-- The hash of a value's scope has `open`, how many holds are open, and `rev`, the revision of its own limits. A hold makes it, from
-- what Postgres knows, and leave.lua removes it when it was not used for a while. {sNNN}:tags:<account> has the scopes that are there,
-- with the time of their last use.

-- A call counts in at most this many tags.
local MAX_TAGS = 2

-- Returns the scopes of the call's tags whose names have a limit, in a list, or nil if there are too many.
local function limited_tags(tags, account, wanted)
  local names, found = limits_of_names(tags), {}
  for tag in string.gmatch(wanted, '%S+') do
    if names[string.match(tag, '^[^=]+')] then found[#found + 1] = 'g:' .. account .. ':' .. tag end
  end
  if #found <= MAX_TAGS then return found end
end

-- Returns the names of tags that have a limit, in one text.
local function names_of(tags)
  local names = {}
  for name, limits in string.gmatch(tags or '', '(%S+) %d+ (%S+)') do
    if limits ~= 'off' then names[#names + 1] = name end
  end
  return table.concat(names, ' ')
end

-- Says of what moment something is that was read from Postgres.
local function moment_of(meta, account)
  return (redis.call('HGET', meta, 'begun') or '') .. ':' .. (redis.call('HGET', account, 'tags_rev') or '0')
end

-- Returns the places of a chain whose scopes are not in Redis.
local function unknown_tags(chain, scopes)
  local unknown = {}
  if not chain.tags then return unknown end
  for place in ipairs(chain) do
    if chain.tags[place] and not scopes[place][2] then unknown[#unknown + 1] = place end
  end
  return unknown
end

-- Adds to what was read of a chain what Postgres knows of some of its scopes: `known` has their own limits, revision, spent and windows.
local function complete(chain, scopes, unknown, known)
  if #unknown == 0 then return end
  local names = limits_of_names(redis.call('HGET', chain[1], 'tags'))
  for _, place in ipairs(unknown) do
    local its = known[(string.gsub(chain[place], '^{.-}:', ''))]
    local own = its.limits ~= '' and its.limits
    scopes[place] = { limits_of_value(own, names[chain.tags[place]]), '0', its.spent, its.windows }
  end
end

-- Makes the scopes that are not in Redis yet. When the account has its first one, a sweeper looks after them from now on.
local function make_tags(chain, unknown, known, deadlines, account, ms)
  for _, place in ipairs(unknown) do
    local its = known[(string.gsub(chain[place], '^{.-}:', ''))]
    redis.call('HSET', chain[place], 'held', '0', 'spent', its.spent, 'windows', its.windows, 'rev', its.rev)
    if its.limits ~= '' then redis.call('HSET', chain[place], 'limits', its.limits) end
  end
  if #unknown > 0 then redis.call('ZADD', deadlines, 'NX', ms, 'g ' .. account) end
end

-- Replaces the limits of a name in the account's field, unless they are newer. Returns whether they were replaced, and whether calls
-- with the name count only from now on.
local function set_name(account, name, rev, limits)
  local tags, before = {}, nil
  for other, at, its in string.gmatch(redis.call('HGET', account, 'tags') or '', '(%S+) (%d+) (%S+)') do
    if other == name then
      if tonumber(at) > tonumber(rev) then return false, false end
      before, at, its = its, rev, limits
    end
    tags[#tags + 1] = other .. ' ' .. at .. ' ' .. its
  end
  if not before then tags[#tags + 1] = name .. ' ' .. rev .. ' ' .. limits end
  redis.call('HSET', account, 'tags', table.concat(tags, ' '))
  return true, limits ~= 'off' and (before or 'off') == 'off'
end

#!lua library
-- Scopes of spending: the account, the team, the member, the tags and the API key of a call. A call's chain are the hashes of its
-- scopes, from the account to the key; all are in the account's slot. `scopes` lists those between account and key, for example
-- `t:<team> m:<member> g:<account>:customer=4711`. tags.lua says what else tags have.
--
-- Each hash has what the scope holds (`held`) and has spent in all (`spent`). `windows` has the day of its last charge, and what was
-- spent on that day, in its week and in its month. `limits` has the limits in all, per day, per week and per month; `-` is none, and
-- the field is absent if the scope has no limit.
--
-- Days are counted since 1970 in UTC. A charge counts on the day of Redis' clock, or on the day of the account's last charge if that
-- is later, so that a window never goes back.

local function integer(number) return string.format('%.0f', number + 0) end

-- Returns year * 12 + month, where January is 1.
local function month_of(day)
  local shifted = day + 719468
  local era = math.floor(shifted / 146097)
  local of_era = shifted - era * 146097
  local leaps = math.floor(of_era / 1460) - math.floor(of_era / 36524) + math.floor(of_era / 146096)
  local year = math.floor((of_era - leaps) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local march = math.floor((5 * of_year + 2) / 153)
  local month = march < 10 and march + 3 or march - 9
  return (year + era * 400 + (month <= 2 and 1 or 0)) * 12 + month
end

-- 1970 began on a Thursday, and weeks begin on Mondays.
local function week_of(day) return math.floor((day + 3) / 7) end

-- Returns the names of the hashes of a call's scopes. `tags` has the names of its tags by their places; it is nil without tags.
local function chain_of(account, scopes, key)
  local chain = { account }
  if scopes and scopes ~= '' then
    local prefix = string.match(account, '^{.-}:')
    for scope in string.gmatch(scopes, '%S+') do
      chain[#chain + 1] = prefix .. scope
      local tag = string.match(scope, '^g:[^:]+:([^=]+)=')
      if tag then
        chain.tags = chain.tags or {}
        chain.tags[#chain] = tag
      end
    end
  end
  chain[#chain + 1] = key
  return chain
end

-- Returns the limits of the names of tags that have some, by name, from the field `tags` of the account.
local function limits_of_names(tags)
  local names = {}
  for name, limits in string.gmatch(tags or '', '(%S+) %d+ (%S+)') do
    if limits ~= 'off' then names[name] = limits end
  end
  return names
end

-- Returns the limits of a tag's value: its own, and where it has none, those of the name. A name without any limits its values no more.
local function limits_of_value(own, of_name)
  if not of_name then return false end
  local limits, names = {}, {}
  for limit in string.gmatch(of_name, '[^,]+') do names[#names + 1] = limit end
  for limit in string.gmatch(own or '- - - -', '%S+') do
    limits[#limits + 1] = limit == '-' and names[#limits + 1] or limit
  end
  return table.concat(limits, ' ')
end

local function uses_of(account) return (string.gsub(account, ':a:', ':tags:', 1)) end

-- Reads the scopes of a chain: limits, held, spent and windows of each, which a script may already have as the first values of account
-- and key. A script does so before its first write, because Redis refuses to read some of them while a Cluster moves the slot.
local function read_scopes(chain, account, key)
  local scopes = { account, [#chain] = key }
  for place, name in ipairs(chain) do
    scopes[place] = scopes[place] or redis.call('HMGET', name, 'limits', 'held', 'spent', 'windows')
  end
  if chain.tags then
    local names = limits_of_names(redis.call('HGET', chain[1], 'tags'))
    for place, tag in pairs(chain.tags) do scopes[place][1] = limits_of_value(scopes[place][1], names[tag]) end
    redis.call('EXISTS', uses_of(chain[1]))
  end
  return scopes
end

-- Returns the day on which a charge counts, by the account, which is the first scope.
local function day_of(scopes)
  local last = scopes[1][4] and tonumber(string.match(scopes[1][4], '^%d+')) or 0
  return math.max(math.floor(redis.call('TIME')[1] / 86400), last)
end

-- Returns what a scope has spent on a day, in its week and in its month.
local function spent_on(day, windows)
  if not windows then return 0, 0, 0 end
  local last, on_day, in_week, in_month = string.match(windows, '^(%d+) (%d+) (%d+) (%d+)$')
  last = tonumber(last)
  if last == day then return tonumber(on_day), tonumber(in_week), tonumber(in_month) end
  return 0, week_of(last) == week_of(day) and tonumber(in_week) or 0, month_of(last) == month_of(day) and tonumber(in_month) or 0
end

-- Returns for each scope of a chain with limits: its place in the chain, what they leave (negative if one was lowered), and the
-- limit that leaves least.
local function rooms_of(scopes)
  local rooms, day = {}, nil
  for place, its in ipairs(scopes) do
    if its[1] then
      day = day or day_of(scopes)
      local held, spent = tonumber(its[2] or 0), { tonumber(its[3] or 0), spent_on(day, its[4]) }
      local limits = { string.match(its[1], '^(%S+) (%S+) (%S+) (%S+)$') }
      local least = { place = place, left = math.huge, held = held, day = day }
      for window = 1, 4 do
        local limit = tonumber(limits[window])
        if limit and limit - spent[window] - held < least.left then
          least.left, least.window, least.limit, least.spent = limit - spent[window] - held, window, limit, spent[window]
        end
      end
      rooms[#rooms + 1] = least
    end
  end
  return rooms
end

-- Returns what all limits leave.
local function least_of(rooms)
  local least = math.huge
  for _, room in ipairs(rooms) do least = math.min(least, room.left) end
  return least
end

-- Returns the hashes whose balance or limits leave less than an amount, except those of tags, which no allowance holds money of.
local function short_of(available, chain, rooms, amount)
  local short = { available < amount and chain[1] or nil }
  for _, room in ipairs(rooms) do
    if room.left < amount and not (chain.tags and chain.tags[room.place]) then short[#short + 1] = chain[room.place] end
  end
  return short
end

-- Returns the limit that leaves least of those that do not cover an amount, as an answer has it; nil if the balance leaves less.
local function reached(available, chain, rooms, amount)
  local least
  for _, room in ipairs(rooms) do
    if room.left < amount and room.left < (least and least.left or available) then least = room end
  end
  if not least then return end
  local scope = string.gsub(chain[least.place], '^{.-}:', '')
  return { integer(math.max(0, least.left)), scope, integer(least.window), integer(least.limit), integer(least.spent),
    integer(least.held), integer(least.day), redis.call('HGET', chain[least.place], 'name') or '' }
end

-- Adds to what each scope holds and has spent. `scopes` must be what was read of them since the last change. Returns the day on which
-- a charge counts.
local function book(chain, scopes, held, spent)
  if spent == 0 then
    if held ~= 0 then
      for _, name in ipairs(chain) do redis.call('HINCRBY', name, 'held', integer(held)) end
    end
    return ''
  end
  local day = day_of(scopes)
  for place, name in ipairs(chain) do
    local its = scopes[place]
    local on_day, in_week, in_month = spent_on(day, its[4])
    redis.call('HSET', name, 'held', integer((its[2] or 0) + held), 'spent', integer((its[3] or 0) + spent),
      'windows', string.format('%.0f %.0f %.0f %.0f', day, on_day + spent, in_week + spent, in_month + spent))
  end
  return integer(day)
end

-- Notes a use of the tags of a chain at a time in ms: 1 more or less open hold, or neither.
local function use_tags(chain, opened, ms)
  if not chain.tags then return end
  local uses = uses_of(chain[1])
  for place in pairs(chain.tags) do
    redis.call('HINCRBY', chain[place], 'open', opened)
    redis.call('ZADD', uses, 'GT', ms, (string.gsub(chain[place], '^{.-}:', '')))
  end
end

-- Notes that a hold has ended, and when: not before its entry, because a scope must stay until Postgres has its last charge.
local function end_tags(chain, entry) use_tags(chain, -1, string.match(entry, '^%d+')) end

#!lua library
-- Allowances of an account: money that nodes took in advance. The account's hash has a field `al:<generation>` for each, with the
-- words key, state, sequence, digest, total, open, until, entry and scopes (with commas; `-` for none). Each scope of an allowance's
-- chain (scopes.lua) also has these fields:
--
-- al_live       how many allowances are live
-- free          what live allowances have beyond open calls
-- recall_until  until when no allowance is granted or renewed
--
-- The account's hash also has `lost_until`: until when nodes may admit calls from allowances that an earlier Redis has lost.
--
-- An allowance has one of these states:
--
-- live      its node may admit calls from what is free, until its lease ends
-- draining  its node admits no more calls; total is what its open calls hold
-- closed    it holds nothing; it is kept so that a late report is recognized
--
-- The functions use keys of the account that are not among a script's KEYS; all are in the account's slot.

local RECALLED_MS = 10000

-- The same as ALLOWANCE_LEASE_MS in allowance-store.ts.
local LEASE_MS = 3000

-- No lease is as long. If one seems to be, Redis' clock was set back after the lease was granted.
local MAX_LEASE_MS = 1800000

-- How long open calls stay covered if their node does not report.
local OPEN_MS = 120000

-- How long a closed allowance is known after Postgres has its last entry: as long as a closed reservation.
local KNOWN_MS = 900000

-- The share of what the balance and each limit leave that live allowances may have. Each may have an equal part of it.
local SHARE = 0.05

local function integer_of(number) return string.format('%.0f', number + 0) end

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function parse_allowance(text)
  local words = {}
  for word in string.gmatch(text, '%S+') do words[#words + 1] = word end
  return { key = words[1], state = words[2], sequence = tonumber(words[3]), digest = words[4], total = tonumber(words[5]),
    open = tonumber(words[6]), until_ms = tonumber(words[7]), entry = words[8],
    scopes = words[9] == '-' and '' or string.gsub(words[9], ',', ' ') }
end

local function read_allowance(account, generation)
  local text = redis.call('HGET', account, 'al:' .. generation)
  return text and parse_allowance(text)
end

local function write_allowance(account, generation, al)
  redis.call('HSET', account, 'al:' .. generation, table.concat({ al.key, al.state, integer_of(al.sequence), al.digest,
    integer_of(al.total), integer_of(al.open), integer_of(al.until_ms), al.entry,
    al.scopes == '' and '-' or (string.gsub(al.scopes, ' ', ',')) }, ' '))
end

local function add(name, field, number)
  if number ~= 0 then redis.call('HINCRBY', name, field, integer_of(number)) end
end

local function key_of(account, id) return string.match(account, '^{.-}:') .. 'k:' .. id end

local function chain_of_allowance(account, al) return chain_of(account, al.scopes, key_of(account, al.key)) end

local function free_of(al) return al.state == 'live' and al.total - al.open or 0 end

-- Changes an allowance from one state to another, and adjusts the sums of its account and of its scopes.
local function change_allowance(account, generation, before, after)
  local held = after.total - (before and before.total or 0)
  local free = free_of(after) - (before and free_of(before) or 0)
  local live = (after.state == 'live' and 1 or 0) - ((before and before.state == 'live') and 1 or 0)
  local chain = chain_of_allowance(account, after)
  add(account, 'available', 0 - held)
  for _, name in ipairs(chain) do
    add(name, 'held', held)
    add(name, 'free', free)
    add(name, 'al_live', live)
  end
  write_allowance(account, generation, after)
end

-- Ends a live allowance whose lease has ended: its free part is available again, and its open part is held for OPEN_MS.
local function lapse(account, generation, al, now)
  local open = al.open > 0
  change_allowance(account, generation, al, { key = al.key, state = open and 'draining' or 'closed', sequence = al.sequence,
    digest = al.digest, total = al.open, open = al.open, until_ms = open and now + OPEN_MS or 0, entry = al.entry,
    scopes = al.scopes })
end

-- Returns when a lease ends. If that is impossibly late, the clock was set back, and the lease ends LEASE_MS from now.
local function end_of(until_ms, now)
  return until_ms > now + MAX_LEASE_MS and now + LEASE_MS or until_ms
end

local function each_allowance(account, work)
  local fields = redis.call('HGETALL', account)
  for at = 1, #fields, 2 do
    if string.sub(fields[at], 1, 3) == 'al:' then work(string.sub(fields[at], 4), parse_allowance(fields[at + 1])) end
  end
end

-- Whether an allowance belongs to one of these scopes.
local function is_under(account, al, scopes)
  for _, name in ipairs(chain_of_allowance(account, al)) do
    for _, scope in ipairs(scopes) do
      if name == scope then return true end
    end
  end
  return false
end

-- Takes back live allowances whose lease has ended. Returns how many others of these scopes are live, and for how long at most.
local function take_back(account, now, scopes)
  local others, left = 0, 0
  each_allowance(account, function(generation, al)
    if al.state ~= 'live' then return end
    if al.until_ms <= now then return lapse(account, generation, al, now) end
    if not is_under(account, al, scopes) then return end
    if end_of(al.until_ms, now) < al.until_ms then
      al.until_ms = end_of(al.until_ms, now)
      write_allowance(account, generation, al)
    end
    others = others + 1
    left = math.max(left, al.until_ms - now)
  end)
  return others, left
end

local function mark_recall(scopes, now)
  for _, name in ipairs(scopes) do redis.call('HSET', name, 'recall_until', integer_of(now + RECALLED_MS)) end
end

local function time_left(name, field, now)
  local until_ms = tonumber(redis.call('HGET', name, field) or 0)
  if end_of(until_ms, now) < until_ms then
    until_ms = end_of(until_ms, now)
    redis.call('HSET', name, field, integer_of(until_ms))
  end
  return until_ms - now
end

-- Whether an operation has recalled the allowances of one of these scopes a moment ago.
local function is_recalled(chain, now)
  for _, name in ipairs(chain) do
    if tonumber(redis.call('HGET', name, 'recall_until') or 0) > now then return true end
  end
  return false
end

-- Recalls all live allowances of a scope, for an operation that stops calls. Returns how many there are, and for how long at most
-- they live. Lost allowances count as one more.
local function recall_all(account, now, scope)
  local live, left = take_back(account, now, { scope })
  if live > 0 then mark_recall({ scope }, now) end
  local lost = time_left(account, 'lost_until', now)
  if lost > 0 then return live + 1, math.max(left, lost) end
  return live, left
end

-- Whether a recall is under way. A repetition of the operation that caused it must wait for it, too.
local function is_recalling(account, now, scope)
  return time_left(scope, 'recall_until', now) > 0 or time_left(account, 'lost_until', now) > 0
end

-- Takes back ended allowances for an operation that lacks money, and recalls the live ones that may have what is missing: those of
-- the scopes whose balance or limits are short. Returns for how many milliseconds nodes may keep it, or 0 if none has it, and the
-- scope that must wait for them.
local function recall_for(account, short)
  if #short == 0 then return 0 end
  if tonumber(redis.call('HGET', account, 'al_live') or 0) == 0 then return 0 end
  local now = clock()
  local others, left = take_back(account, now, short)
  if others > 0 then mark_recall(short, now) end
  return left, (string.gsub(#short == 1 and short[1] or account, '^{.-}:', ''))
end

-- Does the same for an allowance that lacks money. Returns whether other allowances may have it.
local function recall_from_others(account, generation, now, short)
  local others = 0
  take_back(account, now, short)
  each_allowance(account, function(other, al)
    if other ~= generation and al.state == 'live' and is_under(account, al, short) then others = others + 1 end
  end)
  if others > 0 then mark_recall(short, now) end
  return others > 0
end

-- Returns how much of the wanted money a node may get that already has some free money (`has`). `more` is what the balance and all
-- limits leave beyond what was read; `new` is 1 if the allowance is not counted among the live ones.
local function grantable(available, chain, rooms, more, new, wanted, beside, has)
  local function part(left, name)
    local live = tonumber(redis.call('HGET', name, 'al_live') or 0) + new
    return math.min(left - beside, math.floor(left * SHARE / live) - has)
  end
  local most = part(available + more, chain[1])
  for _, room in ipairs(rooms) do most = math.min(most, part(room.left + more, chain[room.place])) end
  return math.max(0, math.min(wanted, most))
end

-- Lists the calls of a report that are not charged in full if only `charge` is charged: one line each, with its place and what is
-- missing.
local function shortfalls_of(calls, charge)
  local lines, place = {}, 0
  for line in string.gmatch(calls, '[^\n]+') do
    local cost = tonumber(string.match(line, '^%S+ %S+ (%d+)'))
    local paid = math.min(cost, charge)
    charge = charge - paid
    if paid < cost then lines[#lines + 1] = place .. ' ' .. integer_of(cost - paid) end
    place = place + 1
  end
  return table.concat(lines, '\n')
end

-- Whether one entry of a stream comes before another; '-' means no entry.
local function is_before(entry, other)
  if entry == '-' then return true end
  local ms, number = string.match(entry, '^(%d+)-(%d+)$')
  local other_ms, other_number = string.match(other, '^(%d+)-(%d+)$')
  if ms ~= other_ms then return tonumber(ms) < tonumber(other_ms) end
  return tonumber(number) < tonumber(other_number)
end

#!lua library
-- Allowances of an account: money that nodes took in advance. The account's hash has a field `al:<generation>` for each, with the
-- words key, state, sequence, digest, total, open, until and entry. It also has these fields:
--
-- al_live       how many allowances are live
-- free          what live allowances have beyond open calls; each key's hash has this field, too
-- recall_until  until when no allowance is granted or renewed
-- lost_until    until when nodes may admit calls from allowances that an earlier Redis has lost
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

-- The share of the available money that live allowances may have. Each may have an equal part of it.
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
    open = tonumber(words[6]), until_ms = tonumber(words[7]), entry = words[8] }
end

local function read_allowance(account, generation)
  local text = redis.call('HGET', account, 'al:' .. generation)
  return text and parse_allowance(text)
end

local function write_allowance(account, generation, al)
  redis.call('HSET', account, 'al:' .. generation, table.concat({ al.key, al.state, integer_of(al.sequence), al.digest,
    integer_of(al.total), integer_of(al.open), integer_of(al.until_ms), al.entry }, ' '))
end

local function add(name, field, number)
  if number ~= 0 then redis.call('HINCRBY', name, field, integer_of(number)) end
end

local function key_of(account, id) return string.match(account, '^{.-}:') .. 'k:' .. id end

local function free_of(al) return al.state == 'live' and al.total - al.open or 0 end

-- Changes an allowance from one state to another, and adjusts the sums of its account and key.
local function change_allowance(account, generation, before, after)
  local key = key_of(account, after.key)
  local held = after.total - (before and before.total or 0)
  local free = free_of(after) - (before and free_of(before) or 0)
  local live = (after.state == 'live' and 1 or 0) - ((before and before.state == 'live') and 1 or 0)
  add(account, 'available', 0 - held)
  add(account, 'held', held)
  add(key, 'held', held)
  add(account, 'free', free)
  add(key, 'free', free)
  add(account, 'al_live', live)
  write_allowance(account, generation, after)
end

-- Ends a live allowance whose lease has ended: its free part is available again, and its open part is held for OPEN_MS.
local function lapse(account, generation, al, now)
  local open = al.open > 0
  change_allowance(account, generation, al, { key = al.key, state = open and 'draining' or 'closed', sequence = al.sequence,
    digest = al.digest, total = al.open, open = al.open, until_ms = open and now + OPEN_MS or 0, entry = al.entry })
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

-- Takes back live allowances whose lease has ended. Returns how many others of the key (or of all keys) are live, and for how
-- long at most.
local function take_back(account, now, key)
  local others, left = 0, 0
  each_allowance(account, function(generation, al)
    if al.state ~= 'live' then return end
    if al.until_ms <= now then return lapse(account, generation, al, now) end
    if key and al.key ~= key then return end
    if end_of(al.until_ms, now) < al.until_ms then
      al.until_ms = end_of(al.until_ms, now)
      write_allowance(account, generation, al)
    end
    others = others + 1
    left = math.max(left, al.until_ms - now)
  end)
  return others, left
end

local function mark_recall(account, now)
  redis.call('HSET', account, 'recall_until', integer_of(now + RECALLED_MS))
end

local function time_left(account, field, now)
  local until_ms = tonumber(redis.call('HGET', account, field) or 0)
  if end_of(until_ms, now) < until_ms then
    until_ms = end_of(until_ms, now)
    redis.call('HSET', account, field, integer_of(until_ms))
  end
  return until_ms - now
end

-- Recalls all live allowances of an account or key, for an operation that stops calls. Returns how many there are, and for how
-- long at most they live. Lost allowances count as one more.
local function recall_all(account, now, key)
  local live, left = take_back(account, now, key)
  if live > 0 then mark_recall(account, now) end
  local lost = time_left(account, 'lost_until', now)
  if lost > 0 then return live + 1, math.max(left, lost) end
  return live, left
end

-- Whether a recall is under way. A repetition of the operation that caused it must wait for it, too.
local function is_recalling(account, now)
  return time_left(account, 'recall_until', now) > 0 or time_left(account, 'lost_until', now) > 0
end

-- Takes back ended allowances for an operation that lacks money, and recalls the live ones that may have what is missing. These
-- are the account's, or the key's if only its limits are short. Returns for how many milliseconds nodes may keep it, or 0 if none
-- has it.
local function recall_for(account, is_account_short, key)
  if tonumber(redis.call('HGET', account, 'al_live') or 0) == 0 then return 0 end
  local now = clock()
  local others, left = take_back(account, now, not is_account_short and key or nil)
  if others > 0 then mark_recall(account, now) end
  return left
end

-- Does the same for an allowance that lacks money. Returns whether other allowances may have it.
local function recall_from_others(account, generation, now, is_account_short, key)
  local others = 0
  take_back(account, now)
  each_allowance(account, function(other, al)
    if other ~= generation and al.state == 'live' and (is_account_short or al.key == key) then others = others + 1 end
  end)
  if others > 0 then mark_recall(account, now) end
  return others > 0
end

-- Returns how much of the wanted money a node may get that already has some free money (`has`), with so many live allowances.
local function grantable(available, room, live, wanted, beside, has)
  local most = math.min(available - beside, room - beside, math.floor(available * SHARE / live) - has)
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

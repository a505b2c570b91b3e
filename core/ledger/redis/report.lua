#!lua flags=allow-oom
-- Applies a node's report of an allowance: charges the calls that ended since the last report as one entry, states what open
-- calls hold, renews the lease, and gives back or takes free money. Only the node that may spend a live allowance takes money
-- from it.
--
-- KEYS[1] {sNNN}:meta
-- KEYS[2] {sNNN}:a:<account>
-- KEYS[3] {sNNN}:k:<key>
-- KEYS[4] {sNNN}:ob
-- KEYS[5] {sNNN}:exp
-- ARGV[1] generation
-- ARGV[2] sequence: one more than that of the previous report; the grant has 0
-- ARGV[3] digest of the calls
-- ARGV[4] account
-- ARGV[5] key
-- ARGV[6] revision of the key's settings that the node uses
-- ARGV[7] cost of the calls in E8
-- ARGV[8] what open calls hold, in E8
-- ARGV[9] what the node gives back and no longer uses, in E8
-- ARGV[10] what the node wants in addition to what it keeps, in E8
-- ARGV[11] what must stay available on the account and within each limit, in E8
-- ARGV[12] admits, if the node may be admitting calls from what is free; empty otherwise
-- ARGV[13] lease in milliseconds
-- ARGV[14] id of the entry
-- ARGV[15] the calls (reported-calls.ts); empty for none
-- ARGV[16] the part of the calls' cost that the node could get no money for, in E8
-- ARGV[17] patient, if the node waits for missing money that other allowances may have; empty otherwise
-- ARGV[18] settling, if an open call needs a larger hold because it already cost that, which a frozen account pays, too; otherwise empty
--
-- answers
--   reported, E8, admit, E8, tags   now or before; with what is free. admit is 1 if the lease was renewed, and empty if the node must
--                             admit no more calls. Then what open calls hold without cover, because the lease had ended, and the
--                             names of tags that have a limit
--   recalling                 other allowances may have what is missing: their nodes give it back, and the caller asks again
--   not_ready                 the shard has not been filled from Postgres
--   unknown_generation        the ledger has lost the allowance, or an earlier report of it
--   other_report              the report with this sequence had other calls
--   other_payer               the generation belongs to another key: a defect of the caller

-- include scopes
-- include tags
-- include allowances

if redis.call('HEXISTS', KEYS[1], 'epoch') == 0 then return 'not_ready' end

local al = read_allowance(KEYS[2], ARGV[1])
if not al then return 'unknown_generation' end
if al.key ~= ARGV[5] then return 'other_payer' end
local now = clock()
if al.state == 'live' and al.until_ms <= now then
  lapse(KEYS[2], ARGV[1], al, now)
  al = read_allowance(KEYS[2], ARGV[1])
end
local account = redis.call('HMGET', KEYS[2], 'status', 'available', 'tags')
local tags = names_of(account[3])
local key = redis.call('HMGET', KEYS[3], 'status', 'rev', 'calls', 'tokens')
local chain = chain_of_allowance(KEYS[2], al)
local may_admit = account[1] == 'active' and key[1] == 'active' and tonumber(key[2]) <= tonumber(ARGV[6])
  and not key[3] and not key[4] and not is_recalled(chain, now)

local sequence = tonumber(ARGV[2])
if sequence <= al.sequence then
  if sequence == al.sequence and al.digest ~= ARGV[3] then return 'other_report' end
  local renews = al.state == 'live' and may_admit
  -- The first attempt may have been applied while money was recalled, without renewing the lease.
  if renews and sequence == al.sequence then
    al.until_ms = now + tonumber(ARGV[13])
    write_allowance(KEYS[2], ARGV[1], al)
  end
  return { 'reported', integer(free_of(al)), renews and '1' or '', integer(math.max(0, tonumber(ARGV[8]) - al.open)), tags }
end
if sequence ~= al.sequence + 1 then return 'unknown_generation' end

local cost, open = tonumber(ARGV[7]), tonumber(ARGV[8])
local total = al.total
local available = tonumber(account[2])
local read = read_scopes(chain)
local rooms = rooms_of(read)
-- A call holds more than before. Or the lease had ended, and free money was given back while the node admitted calls from it.
local may_grow = account[1] == 'active' or ARGV[18] ~= ''
local wanted = cost + (may_grow and open or math.min(open, al.open))
local more = 0
if wanted > total then
  if ARGV[17] ~= '' and wanted - total > math.min(available, least_of(rooms)) then
    if recall_from_others(KEYS[2], ARGV[1], now, short_of(available, chain, rooms, wanted - total)) then return 'recalling' end
    read = read_scopes(chain)
    available, rooms = tonumber(redis.call('HGET', KEYS[2], 'available')), rooms_of(read)
  end
  more = math.max(0, math.min(wanted - total, available, least_of(rooms)))
  total = total + more
end
local charge = math.min(cost, total)
local covered = math.min(open, total - charge)
local free = total - charge - covered
local admits = ARGV[12] ~= ''
local stays = al.state == 'live' and admits
local back = stays and math.min(tonumber(ARGV[9]), free) or free
local taken = 0
if may_admit and (stays or not admits) then
  taken = grantable(available, chain, rooms, back - more, al.state == 'live' and 0 or 1, tonumber(ARGV[10]), tonumber(ARGV[11]),
    free - back)
end
local is_live = stays or taken > 0
local is_renewed = is_live and may_admit
total = total - charge - back + taken
local state = is_live and 'live' or (total > 0 and 'draining' or 'closed')
local until_ms = al.until_ms
if is_renewed then
  until_ms = now + tonumber(ARGV[13])
  if al.state ~= 'live' then redis.call('ZADD', KEYS[5], 'LT', integer(until_ms), 'a ' .. ARGV[4]) end
elseif state ~= 'live' then
  until_ms = state == 'draining' and now + OPEN_MS or 0
end

local entry = al.entry
local day = book(chain, read, 0, charge)
if ARGV[15] ~= '' then
  local posted = redis.call('HINCRBY', KEYS[2], 'posted', integer(0 - charge))
  local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
  local fields = { 'kind', 'charge', 'account', ARGV[4], 'key', ARGV[5], 'rid', ARGV[14], 'seq', integer(seq), 'amount',
    integer(0 - charge), 'posted', integer(posted), 'shortfall', integer(cost - charge + tonumber(ARGV[16])), 'record', '', 'calls', ARGV[15], 'scopes', al.scopes,
    'day', day }
  if cost > charge then
    fields[#fields + 1] = 'shortfalls'
    fields[#fields + 1] = shortfalls_of(ARGV[15], charge)
  end
  entry = redis.call('XADD', KEYS[4], '*', unpack(fields))
  -- The charge leaves the account here, because the change below adds it to what is available.
  add(KEYS[2], 'available', 0 - charge)
end
change_allowance(KEYS[2], ARGV[1], al, { key = al.key, state = state, sequence = sequence, digest = ARGV[3], total = total,
  open = covered, until_ms = until_ms, entry = entry, scopes = al.scopes })
return { 'reported', integer(is_live and total - covered or 0), is_renewed and '1' or '', integer(open - covered), tags }

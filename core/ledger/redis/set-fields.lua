#!lua library
-- Writes fields of a hash from a list of name, value, name, value. An empty value removes its field. Returns whether a field changed.

local function set_fields(hash, fields)
  local is_other = false
  for at = 1, #fields, 2 do
    local field, value = fields[at], fields[at + 1]
    if (redis.call('HGET', hash, field) or '') ~= value then
      is_other = true
      if value == '' then redis.call('HDEL', hash, field) else redis.call('HSET', hash, field, value) end
    end
  end
  return is_other
end

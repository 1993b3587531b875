-- Lists documents, newest first. KEYS: a sorted set. ARGV: the time, the sequence number before which to start, the
-- limit.
local at, limit = moment(ARGV[1]), tonumber(ARGV[3])
local before = '+inf'
if ARGV[2] ~= '' then before = '(' .. ARGV[2] end
local found, gone, seen = {}, {}, 0
while #found < limit do
  local keys = redis.call('ZREVRANGEBYSCORE', KEYS[1], before, '-inf', 'LIMIT', seen, math.min(limit, 100))
  if #keys == 0 then break end
  for _, key in ipairs(keys) do
    if not lives(key, at) then
      table.insert(gone, key)
    elseif #found < limit then
      table.insert(found, show(key))
    end
  end
  seen = seen + #keys
end
for _, key in ipairs(gone) do drop(key) end
return found

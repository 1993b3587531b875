-- Changes numbers, once. KEYS: the mark of this batch, the set of subjects.
-- ARGV: how long the mark is kept, then for each change: key, subject, name, kind, value.
if not redis.call('SET', KEYS[1], 1, 'NX', 'PX', ARGV[1]) then return 0 end
for place = 2, #ARGV, 5 do
  local key, subject, name, kind, value = unpack(ARGV, place, place + 4)
  redis.call('SADD', KEYS[2], subject)
  if kind == 'add' then
    local sum = redis.pcall('HINCRBY', key, name, value)
    if type(sum) == 'table' and sum.err then redis.call('HSET', key, name, '9223372036854775807') end
  else
    local known = redis.call('HGET', key, name)
    if not known or tonumber(known) < tonumber(value) then redis.call('HSET', key, name, value) end
  end
end
return 1

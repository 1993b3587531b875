-- Applies a batch of counter updates once. KEYS: the last batch of the writer, the set of subjects.
-- ARGV: how long to remember the batch, its sequence number, then for each update: key, subject, name, operation,
-- value.
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[2]) <= last then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
for i = 3, #ARGV, 5 do
  local key, subject, name, op, value = unpack(ARGV, i, i + 4)
  redis.call('SADD', KEYS[2], subject)
  if op == 'add' then
    add(key, name, value)
  else
    local known = redis.call('HGET', key, name)
    if not known or tonumber(known) < tonumber(value) then redis.call('HSET', key, name, value) end
  end
end
return 1

-- Reserves an amount. KEYS: the reservations, the key that exists once this one is settled, the set of subjects.
-- ARGV: its id, its record, its amount, then for each budget: key, subject, counter of spent amounts, counter of
-- reserved amounts, limit.
local known = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if not known and redis.call('EXISTS', KEYS[2]) == 1 then return {'closed'} end
local amount = tonumber(ARGV[3])

local function states()
  local found = {}
  for i = 4, #ARGV, 5 do
    local values = redis.call('HMGET', ARGV[i], ARGV[i + 2], ARGV[i + 3])
    table.insert(found, tonumber(values[1] or '0'))
    table.insert(found, tonumber(values[2] or '0'))
  end
  return found
end

local function reply(outcome, found)
  local texts = {outcome}
  for _, value in ipairs(found) do table.insert(texts, whole(value)) end
  return texts
end

local before = states()
if known then return reply('held', before) end
for budget = 1, #before / 2 do
  local limit = tonumber(ARGV[4 + (budget - 1) * 5 + 4])
  if limit and before[budget * 2 - 1] + before[budget * 2] + amount > limit then
    return reply('exceeded', before)
  end
end
for i = 4, #ARGV, 5 do
  redis.call('SADD', KEYS[3], ARGV[i + 1])
  add(ARGV[i], ARGV[i + 3], ARGV[3])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return reply('held', states())

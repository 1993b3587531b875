-- Sets money aside. KEYS: the reservations, the mark of this one once it is settled, the set of subjects.
-- ARGV: its id, its record, its amount, then for each budget: key, subject, counter of what is spent, counter
-- of what is reserved, the most.
local known = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if not known and redis.call('EXISTS', KEYS[2]) == 1 then return {'closed'} end
local amount = tonumber(ARGV[3])

local function states()
  local found = {}
  for place = 4, #ARGV, 5 do
    local values = redis.call('HMGET', ARGV[place], ARGV[place + 2], ARGV[place + 3])
    table.insert(found, tonumber(values[1] or '0'))
    table.insert(found, tonumber(values[2] or '0'))
  end
  return found
end

local function answer(outcome, found)
  local shown = {outcome}
  for _, number in ipairs(found) do table.insert(shown, whole(number)) end
  return shown
end

local before = states()
if known then return answer('held', before) end
for budget = 1, #before / 2 do
  local most = tonumber(ARGV[4 + (budget - 1) * 5 + 4])
  if most and before[budget * 2 - 1] + before[budget * 2] + amount > most then
    return answer('exceeded', before)
  end
end
for place = 4, #ARGV, 5 do
  redis.call('SADD', KEYS[3], ARGV[place + 1])
  add(ARGV[place], ARGV[place + 3], ARGV[3])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return answer('held', states())

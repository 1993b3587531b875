-- Settles a reservation once. KEYS: the reservations, the key that exists once this one is settled, the set of
-- subjects.
-- ARGV: its id, the value of that key, how long to retain it, whether the updates count if the reservation is unknown
-- (because Redis lost data that was not yet on disk), its amount, the number of budgets, then for each budget: key,
-- counter of reserved amounts; then for each update: key, subject, name, value.
local known = redis.call('HDEL', KEYS[1], ARGV[1]) == 1
local marked = redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3], 'NX')
local lost = not known and marked and ARGV[4] == '1'
if not known and not lost then return 0 end
local i = 7
for _ = 1, tonumber(ARGV[6]) do
  if known then
    local left = redis.pcall('HINCRBY', ARGV[i], ARGV[i + 1], '-' .. ARGV[5])
    if type(left) == 'table' or left <= 0 then redis.call('HDEL', ARGV[i], ARGV[i + 1]) end
  end
  i = i + 2
end
while i <= #ARGV do
  local key, subject, name, value = unpack(ARGV, i, i + 3)
  redis.call('SADD', KEYS[3], subject)
  add(key, name, value)
  i = i + 4
end
return 1

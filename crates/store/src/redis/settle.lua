-- Settles a reservation, once. KEYS: the reservations, the mark of this one once it is settled, the set of
-- subjects.
-- ARGV: its id, what the mark says, how long it is kept, whether the changes count although the reservation is
-- not known (it was lost with what Redis had not yet written), its amount, the number of budgets, then for each
-- budget: key, counter of what is reserved; then for each change: key, subject, name, value.
local known = redis.call('HDEL', KEYS[1], ARGV[1]) == 1
local marked = redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3], 'NX')
local lost = not known and marked and ARGV[4] == '1'
if not known and not lost then return 0 end
local place = 7
for _ = 1, tonumber(ARGV[6]) do
  if known then
    local left = redis.pcall('HINCRBY', ARGV[place], ARGV[place + 1], '-' .. ARGV[5])
    if type(left) == 'table' or left <= 0 then redis.call('HDEL', ARGV[place], ARGV[place + 1]) end
  end
  place = place + 2
end
while place <= #ARGV do
  local key, subject, name, value = unpack(ARGV, place, place + 3)
  redis.call('SADD', KEYS[3], subject)
  add(key, name, value)
  place = place + 4
end
return 1

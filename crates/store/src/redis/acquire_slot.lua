-- Acquires a slot. KEYS: the slots. ARGV: its id, its record, its group, the maximum number of groups (empty for no
-- limit), whether durable slots count. A record is "group durable holder".
if ARGV[4] ~= '' then
  local groups, count = {}, 0
  local entries = redis.call('HGETALL', KEYS[1])
  for i = 1, #entries, 2 do
    local group, durable = string.match(entries[i + 1], '^(%S*) (%d) ')
    local counts = durable == '0' or ARGV[5] == '1'
    if group and counts and entries[i] ~= ARGV[1] and not groups[group] then
      groups[group] = true
      count = count + 1
    end
  end
  if count >= tonumber(ARGV[4]) then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1

-- Consumes from a rate-limit window. KEYS: its key. ARGV: the time, the limit, the amount, the length.
local at = moment(ARGV[1])
local limit, amount, length = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local state = redis.call('HMGET', KEYS[1], 'u', 'e')
local used, ends = tonumber(state[1]), tonumber(state[2])
if not ends or ends <= at then used, ends = 0, at + length end
if used + amount > limit then return {0, used, ends - at} end
if amount > 0 then
  redis.call('HSET', KEYS[1], 'u', whole(used + amount), 'e', whole(ends))
  redis.call('PEXPIRE', KEYS[1], whole(ends - at + 60000))
end
return {1, used + amount, 0}

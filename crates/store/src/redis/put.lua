-- Writes a document. KEYS: its key, the set of its owner, the set of all owners, the expiries, the last sequence
-- number. ARGV: the time, the body, the expected revision, the maximum of the owner, the time to live, owner, id, and
-- a unique name of this write, which makes it idempotent.
local key, own, all, ends = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local at = moment(ARGV[1])

for _, ended in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', whole(at), 'LIMIT', 0, 100)) do
  drop(ended)
end

local present = lives(key, at)
local revision = 0
if present then
  local found = redis.call('HMGET', key, 'r', 't')
  revision = tonumber(found[1])
  if found[2] == ARGV[8] then return {'put', revision} end
end

local expected = ARGV[3]
if expected == 'nothing' then
  if present then return {'conflict', 0} end
elseif expected ~= 'anything' then
  if not present or revision ~= tonumber(expected) then return {'conflict', 0} end
end

local max = tonumber(ARGV[4])
if max and not present and redis.call('ZCARD', own) >= max then
  for _, other in ipairs(redis.call('ZRANGE', own, 0, -1)) do
    if not lives(other, at) then drop(other) end
  end
  if redis.call('ZCARD', own) >= max then return {'many', max} end
end

revision = revision + 1
if not present then
  redis.call('DEL', key)
  local number = redis.call('INCR', KEYS[5])
  redis.call('HSET', key, 'o', ARGV[6], 'i', ARGV[7], 'n', number, 'c', whole(at))
  redis.call('ZADD', own, number, key)
  redis.call('ZADD', all, number, key)
end
redis.call('HSET', key, 'b', ARGV[2], 'r', revision, 'm', whole(at), 't', ARGV[8])

local life = tonumber(ARGV[5])
if life then
  redis.call('HSET', key, 'e', whole(at + life))
  redis.call('ZADD', ends, whole(at + life), key)
  -- The document holds its expiry; this only cleans up if no further document is written.
  redis.call('PEXPIRE', key, whole(life + 60000))
else
  redis.call('HDEL', key, 'e')
  redis.call('ZREM', ends, key)
  redis.call('PERSIST', key)
end
return {'put', revision}

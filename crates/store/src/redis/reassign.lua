-- Replaces the record of a reservation. KEYS: the reservations, optionally a claim.
-- ARGV: its id, the current record, the new record, how long to retain the claim.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[3] then return 'done' end
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 'gone' end
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4], 'NX')
  if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'claimed' end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 'done'

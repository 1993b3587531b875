-- Changes the holder and the record of a reservation. KEYS: the reservations, and perhaps a claim.
-- ARGV: its id, the present record, the new record, how long the claim is kept.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[3] then return 'done' end
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 'gone' end
if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4], 'NX')
  if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'claimed' end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 'done'

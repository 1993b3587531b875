-- Sets a value unless it is set, and returns the stored one. KEYS: the hash of version and epoch.
-- ARGV: the name, the value.
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HGET', KEYS[1], ARGV[1])

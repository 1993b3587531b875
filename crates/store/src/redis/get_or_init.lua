-- Decides a value unless it is decided, and gives what was decided. KEYS: where version and epoch are.
-- ARGV: the name, the value.
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HGET', KEYS[1], ARGV[1])

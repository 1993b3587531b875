-- Returns the epoch of the data, or creates it. KEYS: the hash of version and epoch.
-- ARGV: the supported format version, a unique new epoch, the version of the program.
local found = redis.call('HMGET', KEYS[1], 'version', 'epoch', 'program')
if found[1] and tonumber(found[1]) > tonumber(ARGV[1]) then
  return redis.error_reply('EXANEWER ' .. found[1] .. ' ' .. (found[3] or ''))
end
if found[2] then return found[2] end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'epoch', ARGV[2], 'program', ARGV[3])
return ARGV[2]

-- What all scripts share.
--
-- A document is a hash at PREFIX doc:COLLECTION:OWNER:ID, the last two encoded so that no colon is in them.
-- Two sorted sets know it by its number: one of its owner, one of everybody. A third knows when it ends.
--
-- The last two arguments of every script are the version of the format that the program knows, and the epoch
-- of the data that it means. Nothing is done with other data.
local epoch = table.remove(ARGV)
local version = tonumber(table.remove(ARGV))
local found = redis.call('HMGET', 'exa-mcp:store', 'version', 'epoch', 'program')
if found[1] and tonumber(found[1]) > version then
  return redis.error_reply('EXANEWER ' .. found[1] .. ' ' .. (found[3] or ''))
end
if found[2] ~= epoch then return redis.error_reply('EXAEPOCH the data is of another epoch') end

-- The time in milliseconds: the server's own, so that all who share it agree; tests bring theirs.
local function moment(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Lua would write large numbers with an exponent.
local function whole(number)
  return string.format('%.0f', number)
end

-- Adds to a number of a hash. A sum that is too large to count is the largest number, not an error: a script that
-- ends in the middle leaves half of its changes behind.
local function add(key, name, value)
  local sum = redis.pcall('HINCRBY', key, name, value)
  if type(sum) == 'table' and sum.err then redis.call('HSET', key, name, '9223372036854775807') end
end

-- Whether a document is there at this time.
local function lives(key, at)
  local found = redis.call('HMGET', key, 'n', 'e')
  return found[1] and (not found[2] or tonumber(found[2]) > at)
end

-- Takes a document away, and all that knows of it.
local function drop(key)
  local prefix, collection, owner = string.match(key, '^(.-:)doc:([^:]*):([^:]*):')
  redis.call('DEL', key)
  redis.call('ZREM', prefix .. 'own:' .. collection .. ':' .. owner, key)
  redis.call('ZREM', prefix .. 'all:' .. collection, key)
  redis.call('ZREM', prefix .. 'ends', key)
end

-- A document as a list of texts.
local function show(key)
  return redis.call('HMGET', key, 'o', 'i', 'b', 'r', 'n', 'c', 'm')
end

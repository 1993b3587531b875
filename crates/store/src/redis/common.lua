-- Shared by all scripts.
--
-- A document is a hash at PREFIX doc:COLLECTION:OWNER:ID, the last two encoded so that they contain no colon.
-- Two sorted sets index it by sequence number: one of its owner, one of all owners. A third holds its expiry.
--
-- The last two arguments of every script are the supported format version and the expected epoch of the data. Other
-- data is rejected.
local epoch = table.remove(ARGV)
local version = tonumber(table.remove(ARGV))
local found = redis.call('HMGET', 'exa-mcp:store', 'version', 'epoch', 'program')
if found[1] and tonumber(found[1]) > version then
  return redis.error_reply('EXANEWER ' .. found[1] .. ' ' .. (found[3] or ''))
end
if found[2] ~= epoch then return redis.error_reply('EXAEPOCH the data is of another epoch') end

-- Returns the time in milliseconds: that of Redis, so that all servers agree, unless a test provides its own.
local function moment(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Formats an integer. Lua would use an exponent for large ones.
local function whole(value)
  return string.format('%.0f', value)
end

-- Adds to a field of a hash, saturating at the largest integer: an error would abort the script and leave half of its
-- changes behind.
local function add(key, name, value)
  local sum = redis.pcall('HINCRBY', key, name, value)
  if type(sum) == 'table' and sum.err then redis.call('HSET', key, name, '9223372036854775807') end
end

-- Returns whether a document exists and has not expired.
local function lives(key, at)
  local found = redis.call('HMGET', key, 'n', 'e')
  return found[1] and (not found[2] or tonumber(found[2]) > at)
end

-- Deletes a document and its index entries.
local function drop(key)
  local prefix, collection, owner = string.match(key, '^(.-:)doc:([^:]*):([^:]*):')
  redis.call('DEL', key)
  redis.call('ZREM', prefix .. 'own:' .. collection .. ':' .. owner, key)
  redis.call('ZREM', prefix .. 'all:' .. collection, key)
  redis.call('ZREM', prefix .. 'ends', key)
end

-- Returns the fields of a document.
local function show(key)
  return redis.call('HMGET', key, 'o', 'i', 'b', 'r', 'n', 'c', 'm')
end

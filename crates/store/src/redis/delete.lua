-- Deletes a document. KEYS: its key. ARGV: the time.
local there = lives(KEYS[1], moment(ARGV[1]))
drop(KEYS[1])
return there and 1 or 0

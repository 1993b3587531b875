-- Gets a document. KEYS: its key. ARGV: the time.
if lives(KEYS[1], moment(ARGV[1])) then return show(KEYS[1]) end
return {}

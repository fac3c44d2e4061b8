-- adopt: puts another policy epoch in force, by compare-and-set on generation and epoch.
-- KEYS: token. ARGV: generation, epoch expected, epoch. Reply: 1 if adopted or in force already, else 0.
local found = redis.call('HMGET', KEYS[1], 'generation', 'epoch')
if found[1] ~= ARGV[1] then return 0 end
if found[2] == ARGV[3] then return 1 end
if found[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'epoch', ARGV[3])
return 1

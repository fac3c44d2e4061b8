-- adopt: puts other open documents in force, by compare-and-set on those found. Texts of documents that are open no longer
-- are forgotten.
-- KEYS: token. ARGV: generation, epoch expected, epoch, number of names, names of texts to forget. Reply: 1 if it is in force
-- now, else 0; the epoch in force, '' if the token is missing or of another generation; and the latest time that a script was
-- answered with.
local found = redis.call('HMGET', KEYS[1], 'generation', 'epoch', 'mark')
local mark = tonumber(found[3] or 0)
if found[1] ~= ARGV[1] then return {0, '', mark} end
if found[2] ~= ARGV[3] then
  if found[2] ~= ARGV[2] then return {0, found[2], mark} end
  redis.call('HSET', KEYS[1], 'epoch', ARGV[3])
end
for i = 1, tonumber(ARGV[4]) do redis.call('HDEL', KEYS[1], ARGV[4 + i]) end
return {1, ARGV[3], mark}

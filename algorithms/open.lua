-- open: begins a generation of this store, by compare-and-set on the generation found ('' where there is none).
-- A store that lost its data notes when: cells it may have promised or spent before count as fully lent and used.
-- KEYS: token. ARGV: generation expected, generation, region, epoch, 1 if data may have been lost.
-- Reply: 1 if opened; else 0 and what stands there: generation, region, epoch.
local found = redis.call('HMGET', KEYS[1], 'generation', 'region', 'epoch')
if (found[1] or '') ~= ARGV[1] then
  return {0, found[1] or '', found[2] or '', found[3] or ''}
end
redis.call('HSET', KEYS[1], 'generation', ARGV[2], 'region', ARGV[3], 'epoch', ARGV[4])
redis.call('HDEL', KEYS[1], 'lost_at')
if ARGV[5] == '1' then
  local t = redis.call('TIME')
  local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
  now = math.max(now, tonumber(redis.call('HGET', KEYS[1], 'mark') or 0))
  redis.call('HSET', KEYS[1], 'lost_at', string.format('%.0f', now))
end
return {1, ARGV[2], ARGV[3], ARGV[4]}

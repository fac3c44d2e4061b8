-- open: begins a generation of this store, by compare-and-set on the generation found ('' where there is none).
-- A store that lost its data notes when: cells it may have promised or spent before count as fully lent and used.
-- The time of the loss is the latest time that anybody knows the store to have shown: its clock may have been set
-- back, or be that of another machine.
-- KEYS: token. ARGV: generation expected, generation, region, epoch, 1 if data may have been lost, latest time known, a
-- secret to seal receipts with.
-- Reply: 1 if opened, else 0; and what stands there: generation, region, epoch, time of the last loss, secret.
local found = redis.call('HMGET', KEYS[1], 'generation', 'region', 'epoch', 'lost_at', 'mark', 'secret')
if (found[1] or '') ~= ARGV[1] then
  return {0, found[1] or '', found[2] or '', found[3] or '', found[4] or '0', found[6] or ''}
end
local lost_at = '0'
redis.call('HSET', KEYS[1], 'generation', ARGV[2], 'region', ARGV[3], 'epoch', ARGV[4], 'secret', ARGV[7])
if ARGV[5] == '1' then
  local t = redis.call('TIME')
  local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
  lost_at = string.format('%.0f', math.max(now, tonumber(found[5] or 0), tonumber(ARGV[6])))
  redis.call('HSET', KEYS[1], 'mark', lost_at)
end
redis.call('HSET', KEYS[1], 'lost_at', lost_at)
return {1, ARGV[2], ARGV[3], ARGV[4], lost_at, ARGV[7]}

-- open: begins a generation of this store, by compare-and-set on the generation found ('' where there is none) and, where
-- there is one, on the epoch: documents that another node has just opened must not be forgotten.
-- A store that lost its data notes when: cells it may have promised or spent before count as fully lent and used.
-- The time of the loss is the latest time that anybody knows the store to have shown: its clock may have been set
-- back, or be that of another machine. A store that lost nothing keeps what it knows of earlier losses.
-- KEYS: token. ARGV: generation expected, generation, region, epoch, 1 if data may have been lost, latest time known, a
-- secret to seal receipts with, the server's master_replid, the node, the layout in which the opener's scripts write, the
-- mark that was found: a store that shows less is an older copy of that one. What a node has found to be an older copy is
-- opened only as after a loss.
-- Reply: 1 if opened, else 0; and what stands there: generation, region, epoch, time of the last loss, secret,
-- master_replid it was opened under, the generation since which nothing was lost, when this one began (not before any
-- time that a script was answered with), the mark: the latest time that a script was answered with, the latest that the
-- node was, the layout, and 1 if a node has found an older copy. A token that names no layout is of a version before
-- there was a number, which wrote layout 1.
local found = redis.call('HMGET', KEYS[1], 'generation', 'region', 'epoch', 'lost_at', 'secret', 'replid', 'since', 'begun', 'mark',
  'seen:' .. ARGV[9], 'layout', 'older')
local stands = found[1] or ''
if stands ~= ARGV[1] or stands ~= '' and found[3] ~= ARGV[4] or tonumber(found[9] or 0) < tonumber(ARGV[11])
  or found[12] and ARGV[5] ~= '1' then
  return {0, stands, found[2] or '', found[3] or '', found[4] or '0', found[5] or '', found[6] or '', found[7] or '0', found[8] or '0', found[9] or '0',
    string.format('%.0f', math.max(tonumber(found[10] or 0), tonumber(found[8] or 0))), found[11] or '1', found[12] or '0'}
end
local t = redis.call('TIME')
local latest = math.max(tonumber(t[1]) * 1000000 + tonumber(t[2]), tonumber(found[9] or 0))
local lost_at, since = found[4] or '0', found[7] or ARGV[2]
if ARGV[5] == '1' then
  latest = math.max(latest, tonumber(ARGV[6]))
  lost_at, since = string.format('%.0f', latest), ARGV[2]
  redis.call('HDEL', KEYS[1], 'older')
end
local begun = string.format('%.0f', latest)
-- After a loss nobody needs to know who was answered before. Who may not read the names leaves them there.
local names = ARGV[5] == '1' and redis.pcall('HKEYS', KEYS[1]) or {}
for _, field in ipairs(names.err and {} or names) do
  if string.sub(field, 1, 5) == 'seen:' then redis.call('HDEL', KEYS[1], field) end
end
redis.call('HSET', KEYS[1], 'generation', ARGV[2], 'region', ARGV[3], 'epoch', ARGV[4], 'secret', ARGV[7], 'replid', ARGV[8],
  'lost_at', lost_at, 'since', since, 'begun', begun, 'mark', begun, 'layout', ARGV[10])
return {1, ARGV[2], ARGV[3], ARGV[4], lost_at, ARGV[7], ARGV[8], since, begun, begun, begun, ARGV[10], '0'}

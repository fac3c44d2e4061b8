-- assign: what a node holds of a cell of a token_bucket or a fixed_window, this one or the next, for Envoys that it tells to admit
-- by themselves: of a bucket its rate in the cell, of a window units, spent or to be spent.
-- The rows of a node are those of a peer of its own, "=NODE": l what it ever held of the cell, g what it returned of that. They
-- are no loan: they may be of borrowed rights too, and no lending cap holds for them. The call names the values that both should
-- reach, so that a repeated call holds nothing twice. Where the row has less than the node knows that it held, the bucket was lost
-- and restored since: what was held counts as used, and nothing is done before the node has heard of it.
-- HOLDERS nodes at most have a row in a cell. One more is answered CROWDED, and holds nothing.
-- KEYS: token, bucket. ARGV: guard, terms, node, cell, known to be held, returned to reach, held to reach, units that the store keeps.
-- Reply: LOST, now, when, where the bucket must be restored first; else OK, now, state, held, returned, what is left beyond the kept units.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
assert(h.kind == 'token_bucket' or h.kind == 'fixed_window', 'rights of another kind cannot be assigned')
local node, cell, known, returned, to_hold, kept = ASSIGNED .. arg(), num(), num(), num(), num(), num()
local s = open(h)
if is_lost(h) then return {LOST, now, h.lost_at} end
local reply = {movable(h, cell), now}
if reply[1] ~= OK then
  add_state(reply, #reply, h, s)
  return reply
end

local held, gave = hold_of(h, cell, node)
local crowded = not held and holders(h, cell) >= HOLDERS
held, gave = held or 0, gave or 0
if held < known then returned, to_hold = 0, 0 end
if crowded and to_hold > 0 then
  reply[1] = CROWDED
  add_state(reply, #reply, h, s)
  return reply
end
local function change(l, g)
  s:settle(0)
  s:save()
  held, gave = l, g
  set_hold(h, cell, node, l, g)
  keep(h, cell)
  s = open(h)
end

if math.min(returned, held) > gave then change(held, math.min(returned, held)) end
local room = crowded and 0 or math.max(s:room(cell, node, math.max(kept, 0)), 0)
local more = math.max(math.min(to_hold - held, room), 0)
if more > 0 then change(held + more, gave) end
add_state(reply, #reply, h, s)
for _, v in ipairs({held, gave, room - more}) do reply[#reply + 1] = v end
return reply

-- restore: gives a lost bucket back what is known of it: its use, and for each peer of which it is known all that this
-- region lent to it and returned to it. What was lent to the other peers counts as all that may be lent, until they are
-- known or it weighs no more. As long as not all nodes of this region told what they used before the loss, as much counts as
-- used as could be. A call about another loss than the bucket's, or about what is restored already, changes nothing.
-- KEYS: token, bucket. ARGV: guard, terms, time of the loss, lending cap, the most that can have been used (0: all nodes
-- told), cell, units and time of the use seen last, number of known peers, their names, number of unknown peers, their
-- names, then per row: cell, peer, lent, returned.
-- Reply: OK, now, state, then as inspect.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
local loss, cap, most, cell, units, at = num(), num(), num(), num(), num(), num()
local function names()
  local set = {}
  for _ = 1, num() do set[arg()] = true end
  return set
end
local known, unknown = names(), names()
local s = open(h)
local changed, first = false, false

-- hear takes in what all nodes together used. Nothing was admitted since the loss but what was booked, which comes on top.
local function hear()
  local of = cell_at(h, loss)
  if h.kind == 'sliding_window_log' then
    if at + h.window > now then s:book(of, math.max(units - h.base, 0)) end
  elseif cell < of then
    s:restore(cell, units, at)
  else
    s:book(of, math.max(units - h.base, 0))
  end
  s:save()
  changed, h.most = true, nil
end

if closed(h) > now and h.lost_at == loss then
  changed, first = true, true
  h.whole, h.unknown = loss, unknown
  if s.restore and most == 0 then s:restore(cell, units, at) end
  if s.known and most > 0 then h.base, h.most = s:known(), most end
  s:save()
elseif h.lost_at == 0 and h.whole == loss and (next(h.unknown) or h.most) then
  if h.most and most == 0 then
    hear()
  elseif not h.most then
    if s.restore then s:restore(cell, units, at) end
    s:save()
  end
  for peer in pairs(known) do
    if not h.unknown[peer] then known[peer] = nil end
    if h.unknown[peer] then changed, h.unknown[peer] = true, nil end
  end
end

if changed then
  local last = cell_at(h, loss) + 1
  if first then lose_holds(h, last) end
  for k, rows in pairs(rows_of(h)) do
    for peer, row in pairs(rows) do -- an old copy: what it borrowed may have been given back since
      if k <= last and h.unknown[peer] then row.b = row.r end
      -- And debits were made in it that were never announced, before anybody noticed whose copy it is.
      if k <= last and first then
        if h.unknown[peer] then row.g = 0 else row.r = 0 end
        row.l = row.g -- only what was lent came back
      end
    end
  end
  while arg_at < #ARGV do
    local k, peer, lent, returned = num(), arg(), num(), num()
    if known[peer] and k <= last and weighs(h, k) > now then
      local row = row_of(h, k, peer)
      row.l, row.r = math.max(row.l, lent), math.max(row.r, returned)
      row.b = math.max(row.b, row.r) -- only what is borrowed is returned
      h.rows[k] = h.rows[k] or {}
      h.rows[k][peer] = row
    end
  end
  local k = last
  while weighs(h, k) > now do
    local rows = h.rows[k] or {}
    rows['?' .. int(k)] = nil
    h.rows[k] = rows
    local rest = cap
    for _, row in pairs(rows) do rest = rest - (row.l - row.g) end
    if next(h.unknown) and rest > 0 then rows['?' .. int(k)] = {l = rest, r = 0, b = 0, g = 0, y = 0, z = 0} end
    k = k - 1
  end
  keep(h, true)
  h.lost_at = lost_at
  s = open(h)
end
local reply = {OK, now}
add_state(reply, #reply, h, s)
add_rows(reply, h)
return reply
